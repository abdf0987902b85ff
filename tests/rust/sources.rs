//! Reads source files as text, for the architecture test: who uses whom.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path below the root it was found in, and its text.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: PathBuf::from(path),
            text: text.to_owned(),
        }
    }

    /// The room: the first part of the path; `fast/isa.rs` is one of its own.
    pub fn room(&self) -> String {
        if self.path == Path::new("fast/isa.rs") {
            return "fast::isa".to_owned();
        }
        let first = self.path.components().next().unwrap();
        let first = Path::new(first.as_os_str());
        first.file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// How many `super` lead from this file's module to the crate's root; 0 for the root itself.
    fn depth(&self) -> usize {
        let inner = ["mod.rs", "lib.rs"]
            .iter()
            .any(|end| self.path.ends_with(end));
        self.path.components().count() - usize::from(inner)
    }
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below a folder of the repository with this ending.
pub fn sources(folder: &str, ending: &str) -> Vec<Source> {
    fn walk(folder: &Path, root: &Path, ending: &str, found: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, ending, found);
            } else if path.extension().is_some_and(|end| end == ending) {
                found.push(Source {
                    text: fs::read_to_string(&path).unwrap(),
                    path: path.strip_prefix(root).unwrap().to_owned(),
                });
            }
        }
    }
    let (root, mut found) = (repository().join(folder), Vec::new());
    walk(&root, &root, ending, &mut found);
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// A Rust text without its comments. A `//` within a string is cut too, which can only hide a name in
/// the rest of that line.
pub fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The text before the unit tests.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap()
}

/// The identifier at the start of a text.
fn identifier(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The room at the start of a path: its first name, or `fast::isa`.
fn room_of(path: &str) -> String {
    let name = identifier(path);
    let inner = path[name.len()..].strip_prefix("::").map_or("", identifier);
    if (name, inner) == ("fast", "isa") {
        "fast::isa".to_owned()
    } else {
        name.to_owned()
    }
}

/// The rooms of what a path names: `a` of `a::b`, `a` and `c` of `{a::b, c}`.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.trim_start().strip_prefix('{') else {
        return vec![room_of(path.trim_start())];
    };
    let (mut names, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !letter.is_whitespace() => {
                names.push(room_of(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// The rooms a Rust file uses: whatever follows `crate::`, or as many `super::` as lead to the root.
pub fn rooms_used(source: &Source) -> Vec<String> {
    let text = without_comments(&source.text);
    let mut used: Vec<String> = text
        .match_indices("crate::")
        .flat_map(|(at, found)| first_names(&text[at + found.len()..]))
        .collect();
    // In the unit tests one `super` leads only to the file itself.
    let text = without_comments(without_tests(&source.text));
    let upwards = "super::".repeat(source.depth());
    if !upwards.is_empty() {
        for (at, _) in text.match_indices(&upwards) {
            used.extend(first_names(&text[at + upwards.len()..]));
        }
    }
    used
}
