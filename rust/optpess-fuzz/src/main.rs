//! Fuzz targets of the core: one for each place where numbers or bytes from outside come in.
//!
//! - `optpess-fuzz list` prints the names of the targets.
//! - `optpess-fuzz seeds FOLDER` writes valid inputs, a folder a target.
//! - `optpess-fuzz TARGET FILE...` runs a target on stored inputs, to repeat a finding.
//!
//! A finding is a panic: a target checks by assertions what must hold for any input. With the feature `guided` the
//! program run as `optpess-fuzz TARGET` takes its inputs from AFL++; `scripts/fuzz-rust` does that.

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../../../tests/rust/cases.rs"]
mod cases;
mod exact;
mod input;
mod learners;
mod targets;

use std::path::Path;
use std::process::ExitCode;

use targets::{TARGETS, Target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => {
            TARGETS
                .iter()
                .for_each(|target| println!("{}", target.name));
            Ok(())
        }
        ["seeds", folder] => write_seeds(Path::new(folder)),
        [name, ref files @ ..] => match TARGETS.iter().find(|target| target.name == name) {
            Some(target) => run(target, files),
            None => Err(format!("there is no target {name}")),
        },
        [] => Err("usage: optpess-fuzz list | seeds FOLDER | TARGET FILE...".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn write_seeds(folder: &Path) -> Result<(), String> {
    for target in TARGETS {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            let written = std::fs::write(folder.join(format!("{number:03}")), seed);
            written.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn run(target: &Target, files: &[&str]) -> Result<(), String> {
    #[cfg(feature = "guided")]
    if files.is_empty() {
        afl::fuzz!(|bytes: &[u8]| (target.run)(bytes));
        return Ok(());
    }
    for file in files {
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        (target.run)(&bytes);
    }
    Ok(())
}
