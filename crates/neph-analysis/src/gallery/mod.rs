//! The gallery: published findings, each with the results that neph must report for its network.
//!
//! Owns the entries (a folder of `gallery/` each, with a row in the table here) and the judgement of neph's
//! results for a campaign. Runs nothing.

mod entry;
mod entry_result;
mod expectation;
mod statement;

use std::sync::LazyLock;

pub use entry::{Control, Entry, EntryFile, ShippedFile, Side};
pub use entry_result::EntryResult;
pub use expectation::{ComparedNumber, Expectation, ExpectationResult, Number};
pub use statement::{Statement, Topic, all_statements};

/// The texts of an entry: its name, the file of its control (a plan `control.toml`, or a topology
/// `control.lab.toml`), and the topologies of its plan's seasons.
macro_rules! entries {
    ($($name:literal, $control:literal $(, $season:literal)*;)*) => {
        [$(entry::EntryTexts {
            name: $name,
            entry: text!($name, "entry.toml"),
            plan: text!($name, "plan.toml"),
            lab: text!($name, "lab.toml"),
            control: ShippedFile { file: $control, text: text!($name, $control) },
            seasons: &[$(ShippedFile { file: $season, text: text!($name, $season) }),*],
        }),*]
    };
}

macro_rules! text {
    ($name:literal, $file:literal) => {
        include_str!(concat!("../../../../gallery/", $name, "/", $file))
    };
}

/// Every entry, in the order of the sources.
const SOURCES: [entry::EntryTexts; 22] = entries! {
    "ecmp", "control.lab.toml";
    "near-far", "control.lab.toml";
    "balancers", "control.lab.toml";
    "far-bulk", "control.lab.toml";
    "providers", "control.lab.toml";
    "time-of-day", "control.lab.toml";
    "uplink", "control.lab.toml";
    "bufferbloat", "control.lab.toml";
    "idle", "control.lab.toml";
    "rest", "control.toml";
    "cable", "control.lab.toml";
    "guest-share", "control.lab.toml";
    "guest-pinned", "control.lab.toml";
    "guest-starved", "control.lab.toml";
    "guest-load", "control.lab.toml";
    "mesh", "control.lab.toml";
    "rerouting", "control.lab.toml";
    "unfairness", "control.lab.toml";
    "advice", "control.lab.toml";
    "seasons", "control.toml", "high.lab.toml";
    "transfers", "control.lab.toml";
    "overlay", "control.lab.toml";
};

/// Every entry, in the order of the sources.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> =
        LazyLock::new(|| SOURCES.iter().map(Entry::from).collect());
    &ENTRIES
}

/// The entry with that name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}
