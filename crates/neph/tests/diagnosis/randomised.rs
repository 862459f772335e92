//! The labs, one after the other, and what comes of them.

#![expect(
    clippy::print_stdout,
    reason = "a test tells what it measured and what it skipped"
)]

use std::fs;
use std::path::PathBuf;

use neph_sys::deadline::Stopwatch;
use neph_text::Source;

use crate::carry::{DiagnosedCauses, measure_and_diagnose};
use crate::draw::labs;
use crate::lab::Lab;
use crate::score::Score;

/// What both shares have to reach.
const MIN_SCORE: f64 = 0.97;
/// How many labs are carried out unless somebody asks for more.
const DEFAULT_LAB_COUNT: usize = 2;

/// A number that the environment gives, or else this one.
fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    let expected = format!("{name}={text} is no number");
    text.parse().expect(&expected)
}

fn count(number: u64) -> usize {
    usize::try_from(number).expect("labs that can be counted")
}

/// Whether namespaces can be made; without root the test is skipped and says so.
fn privileged(test: &str) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !root {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "{test} needs root");
        println!("SKIP {test}: network namespaces need root");
    }
    root
}

/// In a folder of its own, kept where the environment wants it.
fn diagnose_lab(lab: &Lab) -> DiagnosedCauses {
    let temporary_folder = tempfile::tempdir().expect("a temporary folder");
    let path = std::env::var("NEPH_LABS_FOLDER").map(PathBuf::from);
    let folder = path.unwrap_or_else(|_| temporary_folder.path().to_owned());
    let folder = folder.join(format!("lab{}", lab.number));
    fs::create_dir_all(&folder).expect("a folder");
    measure_and_diagnose(lab, &folder)
}

#[test]
fn of_random_labs_the_causes_are_named_and_nothing_else() {
    let test = "of_random_labs_the_causes_are_named_and_nothing_else";
    if !privileged(test) {
        return;
    }
    let number = count(setting("NEPH_LABS", DEFAULT_LAB_COUNT as u64));
    let seed = setting("NEPH_LABS_SEED", 1);
    let only_lab = std::env::var("NEPH_LABS_ONLY").is_ok();
    let only_lab = only_lab.then(|| count(setting("NEPH_LABS_ONLY", 0)));
    println!("{number} labs of NEPH_LABS_SEED={seed}");
    let mut score = Score::default();
    let wanted = |lab: &Lab| only_lab.is_none_or(|only_lab| only_lab == lab.number);
    for lab in labs(seed, number).into_iter().filter(wanted) {
        let start = Stopwatch::start();
        let diagnosed = diagnose_lab(&lab);
        let mistakes = score.add(&lab, &diagnosed);
        println!(
            "lab {}: {:?}, {} endpoints, {} blocks, {:.0} s: {}",
            lab.number,
            lab.causes,
            lab.endpoints.len(),
            lab.blocks,
            start.elapsed().as_secs_f64(),
            if mistakes.is_empty() {
                "right"
            } else {
                "WRONG"
            },
        );
        for line in mistakes.iter().chain(&diagnosed.disturbances) {
            println!("    {line}");
        }
    }
    println!("{score}");
    let (precision, recall) = (score.precision(), score.recall());
    assert!(precision >= MIN_SCORE && recall >= MIN_SCORE, "{score}");
}

#[test]
fn random_labs_are_valid_and_short_and_cover_every_cause() {
    let drawn = labs(1, 60);
    for lab in &drawn {
        let text = lab.topology();
        let topology = neph_lab::Topology::parse(&Source::new("lab.toml", text.clone()));
        assert!(topology.is_ok(), "{topology:?}\n{text}");
        let text = lab.plan();
        let plan = neph_campaign::plan::read(&Source::new("plan.toml", text.clone()));
        assert!(plan.is_ok(), "{plan:?}\n{text}");
        assert!(lab.seconds() <= 12.5, "{}: {}", lab.number, lab.seconds());
    }
    for cause in &crate::causes::CAUSES {
        let labs = drawn.iter();
        let with_cause = labs.filter(|lab| lab.causes.iter().any(|at| at.0 == cause.rule));
        assert!(with_cause.count() >= 5, "{}", cause.rule);
    }
}
