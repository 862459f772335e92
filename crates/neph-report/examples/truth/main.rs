//! How often reports are wrong: worlds with a known truth, simulated and reported many times.
//!
//! Owns the worlds, the counting and the table. What is counted are the sentences and intervals of
//! `neph-report`, as a reader gets them; no statistic is calculated here a second time.
//! `make truth` runs it.

mod clocks;
mod coverage;
mod detectors;
mod equivalence;
mod families;
mod outcome;
mod seasons;
mod world;

use std::io::Write;

use outcome::Section;

/// Reports of each world, unless `--reports` names another number.
const REPORTS: u64 = 1000;

/// A section's title, and how it is made with so many reports of each world.
type SectionEntry = (&'static str, fn(u64) -> Section);

const SECTIONS: [SectionEntry; 7] = [
    ("False verdicts", families::false_verdict_section),
    ("Power", families::power_section),
    ("Equivalence", equivalence::equivalence_section),
    ("Seasons", seasons::season_section),
    ("Coverage", coverage::coverage_section),
    ("Path changes", detectors::path_change_section),
    ("Clocks", clocks::clock_section),
];

fn main() {
    let mut reports = REPORTS;
    let mut only = String::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(word) = arguments.next() {
        match (word.as_str(), arguments.next()) {
            ("--reports", Some(number)) => reports = number.parse().expect("a whole number"),
            // Only sections whose title contains this text.
            ("--only", Some(text)) => only = text.to_lowercase(),
            _ => panic!("options: --reports NUMBER, --only TEXT"),
        }
    }
    let mut stdout = std::io::stdout().lock();
    for (title, make) in SECTIONS {
        if title.to_lowercase().contains(&only) {
            let section = make(reports);
            writeln!(stdout, "## {title}\n\n{section}").expect("standard output");
            stdout.flush().expect("standard output");
        }
    }
}
