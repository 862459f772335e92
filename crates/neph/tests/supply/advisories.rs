//! Known advisories, from a snapshot of the `RustSec` database that tools/advisories refreshes.

use std::fs;

use jiff::civil::Date;
use neph_sys::clock;
use semver::{Version, VersionReq};

use crate::crates::{Locked, locked, root, toml};

/// An older snapshot is worth a warning, not a failure: a commit does not become wrong by itself.
const MAX_AGE_DAYS: i64 = 120;

/// A row of the snapshot.
#[derive(Debug)]
struct Advisory {
    id: String,
    name: String,
    kind: String,
    /// Versions without the fault: those that were mended, and those that never had it.
    unaffected: Vec<VersionReq>,
    title: String,
}

fn snapshot() -> String {
    fs::read_to_string(root().join("supply/advisories.tsv")).expect("the snapshot is there")
}

fn advisories(text: &str) -> Vec<Advisory> {
    let rows = text.lines().filter(|line| line.starts_with("RUSTSEC-"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let [id, name, kind, patched, unaffected, _, title] = cells[..] else {
            panic!("seven columns: {row}")
        };
        let unaffected = [patched, unaffected]
            .into_iter()
            .flat_map(|text| text.split("; "));
        let unaffected = unaffected.filter(|unaffected| !unaffected.is_empty());
        Advisory {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            unaffected: unaffected
                .map(|unaffected| VersionReq::parse(unaffected).expect(row))
                .collect(),
            title: title.to_owned(),
        }
    })
    .collect()
}

/// What is known against these crates, a sentence each.
fn open_advisories(crates: &[Locked], advisories: &[Advisory], accepted: &[&str]) -> Vec<String> {
    let affects = |advisory: &&Advisory, package: &Locked| {
        let version = Version::parse(&package.version).expect("Cargo wrote it");
        advisory.name == package.name
            && advisory.kind != "notice"
            && !accepted.contains(&advisory.id.as_str())
            && !advisory
                .unaffected
                .iter()
                .any(|unaffected| unaffected.matches(&version))
    };
    let mut affecting = Vec::new();
    for package in crates {
        let matching = advisories
            .iter()
            .filter(|advisory| affects(advisory, package));
        affecting.extend(matching.map(|advisory| {
            let Advisory {
                id, kind, title, ..
            } = advisory;
            format!(
                "{id} ({kind}): {} {}: {title}",
                package.name, package.version
            )
        }));
    }
    affecting
}

#[test]
fn no_crate_has_an_advisory_that_is_not_accepted() {
    let text = snapshot();
    let advisories = advisories(&text);
    assert!(advisories.len() > 1_000, "{}", advisories.len());
    let rules = toml("deny.toml");
    let accepted = rules["advisories"]["ignore"].as_array().expect("a list");
    let accepted: Vec<&str> = accepted
        .iter()
        .filter_map(|entry| entry["id"].as_str())
        .collect();
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let affecting = open_advisories(&locked(lock), &advisories, &accepted);
        assert!(affecting.is_empty(), "{lock}: {}", affecting.join("\n"));
    }
    warn_if_old(&text);
}

#[expect(clippy::print_stdout, reason = "the test harness shows it")]
fn warn_if_old(text: &str) {
    let date = text.lines().find_map(|line| line.strip_prefix("# date "));
    let date: Date = date.and_then(|date| date.parse().ok()).expect("a date");
    let taken = date
        .to_zoned(jiff::tz::TimeZone::UTC)
        .expect("in range")
        .timestamp();
    let days = (clock::wall().0 / 1_000_000_000 - taken.as_second()) / 86_400;
    if days > MAX_AGE_DAYS {
        println!("WARNING: the snapshot of advisories is {days} days old: run tools/advisories");
    }
}

#[test]
fn a_crate_with_a_fault_is_found_and_a_mended_one_is_not() {
    let of_version = |version: &str| Locked {
        name: "ring".to_owned(),
        version: version.to_owned(),
        source: None,
        checksum: None,
        uses: Vec::new(),
    };
    let advisories = advisories(&snapshot());
    let open_advisories =
        |version| open_advisories(&[of_version(version)], &advisories, &["RUSTSEC-2025-0010"]);
    let affecting = open_advisories("0.17.11");
    assert_eq!(affecting.len(), 1, "{affecting:?}");
    assert!(
        affecting[0].starts_with("RUSTSEC-2025-0009 (vulnerability): ring 0.17.11"),
        "{affecting:?}"
    );
    assert_eq!(open_advisories("0.17.12"), Vec::<String>::new());
}
