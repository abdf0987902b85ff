//! Who may know whom. Reads the sources as text; each checker is first tried on a text that breaks the
//! rule, so that none of them can pass by seeing nothing.

use crate::sources::{Source, rooms_used, sources, without_comments, without_tests};

/// The modules of the core, in a line: a module may use itself and those before it. `fast::isa` is an entry of its own.
const CORE_ORDER: [&str; 25] = [
    "error",
    "shape",
    "number",
    "control",
    "sums",
    "parallel",
    "random",
    "fast::isa",
    "table",
    "trajectory",
    "policy",
    "actions",
    "model",
    "evaluate",
    "knowledge",
    "estimate",
    "confidence",
    "certify",
    "plan",
    "learn",
    "simulate",
    "record",
    "fast",
    "run",
    "lib",
];

/// [`CORE_ORDER`] with ranks.
fn core_ranks() -> Vec<(&'static str, u8)> {
    CORE_ORDER.into_iter().zip(0..).collect()
}

/// What the learner must never see: the truth.
const TRUTH: [&str; 2] = ["ConstrainedMdp", "TransitionKernel"];

const CRATES: [&str; 2] = ["rust/optpess-core/src", "rust/optpess-py/src"];

/// Files longer than this, their unit tests not counted, are printed: a hint that two ideas may share a file.
const MAX_LINES: usize = 400;

fn rank(ranks: &[(&str, u8)], room: &str) -> Option<u8> {
    let entry = ranks.iter().find(|(name, _)| *name == room);
    entry.map(|(_, rank)| *rank)
}

/// Uses that go upwards, or to a room without a rank.
fn upward_uses(source: &Source, ranks: &[(&str, u8)], used: &[String]) -> Vec<String> {
    let own = rank(ranks, &source.room());
    let path = source.path.display();
    if own.is_none() {
        return vec![format!("{path}: give {} a rank", source.room())];
    }
    let upwards = used
        .iter()
        .filter(|used| rank(ranks, used).is_none_or(|rank| Some(rank) > own));
    upwards.map(|used| format!("{path} uses {used}")).collect()
}

/// Names of the truth in a learner's file; unit tests are no excuse.
fn truth_seen(source: &Source) -> Vec<String> {
    if source.room() != "learn" {
        return vec![];
    }
    let text = without_comments(&source.text);
    let seen = TRUTH.iter().filter(|name| text.contains(*name));
    seen.map(|name| format!("{} names {name}", source.path.display()))
        .collect()
}

fn too_long(source: &Source) -> Vec<String> {
    let lines = without_tests(&source.text).lines().count();
    let path = source.path.display();
    let found = (lines > MAX_LINES).then(|| format!("{path} has {lines} lines"));
    found.into_iter().collect()
}

/// `unsafe` without its words right above: a block needs a proof (`SAFETY:`), a function says in its
/// documentation what it asks of the caller (`# Safety`).
fn unproved_unsafe(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap();
        let mut words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let needed = if code.contains("unsafe fn") {
            "# Safety"
        } else {
            "SAFETY:"
        };
        let above = lines[..number].iter().rev();
        let mut above = above.take_while(|line| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("#[")
        });
        if words.any(|word| word == "unsafe") && !above.any(|line| line.contains(needed)) {
            found.push(format!("{}:{}", source.path.display(), number + 1));
        }
    }
    found
}

#[track_caller]
fn assert_none(findings: impl Iterator<Item = String>) {
    let findings: Vec<String> = findings.collect();
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn the_core_uses_only_what_stands_below() {
    let found = sources(CRATES[0], "rs");
    assert!(
        found.iter().flat_map(rooms_used).count() > 20,
        "the checker sees nothing"
    );
    assert_none(
        found
            .iter()
            .flat_map(|source| upward_uses(source, &core_ranks(), &rooms_used(source))),
    );
}

#[test]
fn the_learner_never_sees_the_truth() {
    assert_none(sources(CRATES[0], "rs").iter().flat_map(truth_seen));
}

/// Modules of the theory: they use neither the engines nor the choice of the instruction set.
const WITHOUT_SPEED: [&str; 5] = ["confidence", "certify", "plan", "learn", "record"];

/// Names that a file must not contain, comments left out.
fn names_found(source: &Source, forbidden: &[&str]) -> Vec<String> {
    let text = without_comments(without_tests(&source.text));
    let found = forbidden.iter().filter(|name| text.contains(*name));
    found
        .map(|name| format!("{} contains {name}", source.path.display()))
        .collect()
}

#[test]
fn the_theory_names_no_engine() {
    let core = sources(CRATES[0], "rs");
    let theory = core
        .iter()
        .filter(|source| WITHOUT_SPEED.contains(&&*source.room()));
    assert!(theory.clone().count() > 30, "the checker sees nothing");
    assert_none(theory.flat_map(|source| names_found(source, &["crate::fast"])));
    let plan = core.iter().filter(|source| source.room() == "plan");
    assert_none(plan.flat_map(|source| names_found(source, &["Estimates", "EmpiricalKernel"])));
}

/// Every square root of a logarithm is a radius, and radii belong to `confidence`.
#[test]
fn roots_and_logarithms_are_in_confidence() {
    let elsewhere = ["model/noise.rs", "plan/mirror_ascent.rs"]; // a standard deviation, a log-probability
    let allowed = |source: &Source| {
        source.room() == "confidence" || elsewhere.iter().any(|end| source.path.ends_with(end))
    };
    let core = sources(CRATES[0], "rs");
    let others = core.iter().filter(|source| !allowed(source));
    assert_none(others.flat_map(|source| names_found(source, &[".ln()", ".sqrt()"])));
}

/// An algorithm is one page in the order of its box, with no word of speed, comments included.
#[test]
fn an_algorithm_is_one_page_without_a_word_of_speed() {
    const WORDS: [&str; 8] = [
        "board", "pack", "lane", "lazy", "version", "watch", "cache", "fast",
    ];
    let core = sources(CRATES[0], "rs");
    let pages: Vec<&Source> = core
        .iter()
        .filter(|source| source.path.to_str().unwrap().starts_with("learn/optpess_"))
        .collect();
    assert_eq!(pages.len(), 3);
    for page in pages {
        let (path, text) = (page.path.display(), page.text.to_lowercase());
        assert!(text.lines().count() <= 200, "{path} is longer than a page");
        for word in WORDS {
            assert!(!text.contains(word), "{path} contains {word}");
        }
    }
}

#[test]
fn long_files_are_printed() {
    for folder in CRATES.iter().chain(&["tests/rust", "benches/rust"]) {
        for hint in sources(folder, "rs").iter().flat_map(too_long) {
            println!("{folder}/{hint}");
        }
    }
}

#[test]
fn unsafe_code_is_proved() {
    for folder in CRATES {
        assert_none(sources(folder, "rs").iter().flat_map(unproved_unsafe));
    }
}

#[test]
fn the_checkers_find_what_they_are_for() {
    let upward = |path: &str, text: &str| {
        let source = Source::new(path, text);
        upward_uses(&source, &core_ranks(), &rooms_used(&source))
    };
    let table_uses_plan = ["table.rs uses plan"];
    assert_eq!(
        upward("table.rs", "use crate::plan::Plan;"),
        table_uses_plan
    );
    assert_eq!(
        upward("table.rs", "use crate::{error::{A, B}, plan};"),
        table_uses_plan
    );
    assert_eq!(
        upward("table.rs", "let x = crate::plan::f(super::error::g());"),
        table_uses_plan
    );
    assert_eq!(
        upward("table.rs", "use super::plan::Plan;"),
        table_uses_plan
    );
    assert_eq!(
        upward("plan/mod.rs", "use super::run::go;"),
        ["plan/mod.rs uses run"]
    );
    assert_eq!(
        upward("plan/a.rs", "use super::super::run::go;"),
        ["plan/a.rs uses run"]
    );
    assert_eq!(
        upward("cellar/a.rs", ""),
        ["cellar/a.rs: give cellar a rank"]
    );
    assert!(upward("plan/a.rs", "use super::chord::T; use crate::plan::U;").is_empty());
    assert!(upward("table.rs", "// use crate::plan::Plan;").is_empty());
    assert!(upward("table.rs", "use crate::fast::isa::Job;").is_empty());
    assert_eq!(
        upward("table.rs", "use crate::{fast::isabel, fast::{isa::Job}};"),
        ["table.rs uses fast"; 2]
    );
    assert_eq!(
        upward("fast/isa.rs", "use crate::table::Signal;"),
        ["fast/isa.rs uses table"]
    );

    let text = "fn new(model: &ConstrainedMdp) {}";
    assert_eq!(truth_seen(&Source::new("learn/a.rs", text)).len(), 1);
    assert!(truth_seen(&Source::new("run/a.rs", text)).is_empty());

    let engine = Source::new("learn/a.rs", "use crate::fast::Engine; // .sqrt()");
    assert_eq!(names_found(&engine, &["crate::fast", ".sqrt()"]).len(), 1);

    assert_eq!(
        too_long(&Source::new("a.rs", &"x\n".repeat(MAX_LINES + 1))).len(),
        1
    );
    let tested = ["x\n".repeat(MAX_LINES), "y\n".repeat(9)].join("#[cfg(test)]\nmod tests {\n");
    assert!(too_long(&Source::new("a.rs", &tested)).is_empty());

    let bare = "fn f() {\n    unsafe { g() }\n}";
    assert_eq!(unproved_unsafe(&Source::new("a.rs", bare)), ["a.rs:2"]);
    let proved = "    // SAFETY: g asks for nothing.\n    // Really.\n    unsafe { g() }";
    assert!(unproved_unsafe(&Source::new("a.rs", proved)).is_empty());
    let silent = "/// SAFETY: none.\n#[inline]\nunsafe fn g() {}";
    assert_eq!(unproved_unsafe(&Source::new("a.rs", silent)), ["a.rs:3"]);
    let warned = "/// # Safety\n///\n/// Be careful.\n#[inline]\nunsafe fn g() {}";
    assert!(unproved_unsafe(&Source::new("a.rs", warned)).is_empty());
    let spoken = "// unsafe is a word\nlet unsafely = 1;";
    assert!(unproved_unsafe(&Source::new("a.rs", spoken)).is_empty());
}
