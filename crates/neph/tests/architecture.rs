//! The shape of the house, held by a test: arrows between crates only downwards, `unsafe` in one
//! crate, printing in one file, no file that nobody can read in one sitting, no circle of modules.

#[path = "architecture/crate_diagram.rs"]
mod crate_diagram;
#[path = "architecture/cycles.rs"]
mod cycles;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/modules_tests.rs"]
mod modules_tests;
#[path = "architecture/parameters.rs"]
mod parameters;
#[path = "architecture/sleeps.rs"]
mod sleeps;
#[path = "architecture/test_targets.rs"]
mod test_targets;
#[path = "shared/tree.rs"]
mod tree;
#[path = "architecture/unreachable_files.rs"]
mod unreachable_files;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::Table;
use tree::root;

/// Which crates of ours each crate may use: the table of docs/design.md. `neph` may use all.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    (
        "neph-agent",
        &[
            "neph-journal",
            "neph-lab",
            "neph-listen",
            "neph-load",
            "neph-model",
            "neph-probe",
            "neph-sys",
            "neph-text",
        ],
    ),
    (
        "neph-analysis",
        &[
            "neph-capture",
            "neph-flows",
            "neph-model",
            "neph-stats",
            "neph-store",
            "neph-text",
        ],
    ),
    (
        "neph-campaign",
        &[
            "neph-journal",
            "neph-model",
            "neph-stats",
            "neph-store",
            "neph-text",
        ],
    ),
    (
        "neph-capture",
        &["neph-model", "neph-stats", "neph-text", "neph-wire"],
    ),
    (
        "neph-control",
        &[
            "neph-agent",
            "neph-journal",
            "neph-listen",
            "neph-model",
            "neph-sys",
            "neph-text",
        ],
    ),
    (
        "neph-documents",
        &[
            "neph-agent",
            "neph-analysis",
            "neph-campaign",
            "neph-capture",
            "neph-export",
            "neph-flows",
            "neph-lab",
            "neph-listen",
            "neph-load",
            "neph-model",
            "neph-probe",
            "neph-stats",
            "neph-text",
            "neph-wire",
        ],
    ),
    ("neph-export", &["neph-model", "neph-sys", "neph-wire"]),
    ("neph-flows", &["neph-model", "neph-stats"]),
    ("neph-journal", &["neph-model"]),
    ("neph-lab", &["neph-model", "neph-sys", "neph-text"]),
    (
        "neph-listen",
        &[
            "neph-capture",
            "neph-model",
            "neph-sys",
            "neph-text",
            "neph-wire",
        ],
    ),
    (
        "neph-load",
        &[
            "neph-model",
            "neph-stats",
            "neph-sys",
            "neph-text",
            "neph-wire",
        ],
    ),
    ("neph-model", &[]),
    (
        "neph-probe",
        &["neph-model", "neph-sys", "neph-text", "neph-wire"],
    ),
    (
        "neph-report",
        &[
            "neph-analysis",
            "neph-capture",
            "neph-flows",
            "neph-model",
            "neph-stats",
            "neph-text",
        ],
    ),
    ("neph-stats", &[]),
    ("neph-store", &["neph-journal", "neph-model", "neph-text"]),
    ("neph-sys", &[]),
    ("neph-text", &[]),
    ("neph-wire", &[]),
];

/// Arrows that only tests need: shipped plans are held against shipped topologies, what is reported about
/// flows against the links of the lab, and the reflector against transfers.
const ALLOWED_TEST_DEPENDENCIES: &[(&str, &str)] = &[
    ("neph-agent", "neph-campaign"),
    ("neph-campaign", "neph-lab"),
    ("neph-control", "neph-campaign"),
    ("neph-control", "neph-probe"),
    ("neph-control", "neph-store"),
    ("neph-flows", "neph-lab"),
    ("neph-flows", "neph-text"),
    ("neph-probe", "neph-load"),
    ("neph-report", "neph-store"),
];

/// Lines of a file, at most (docs/design.md, section 6).
const MAX_LINES: usize = 400;

/// Files that were longer when this test came, and how long they may be until they are split: no
/// line may be added to them. An entry goes when its file is short enough.
const LONG_FILES: &[(&str, usize)] = &[];

/// The Cargo.toml of each crate, by name.
fn manifests() -> BTreeMap<String, Table> {
    let folders = fs::read_dir(root().join("crates")).expect("the crates folder");
    let mut manifests = BTreeMap::new();
    for folder in folders {
        let path = folder.expect("a folder").path().join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("every crate has a Cargo.toml");
        let manifest: Table = text.parse().expect("TOML");
        let name = manifest["package"]["name"].as_str().expect("a name");
        manifests.insert(name.to_owned(), manifest);
    }
    manifests
}

/// The crates of ours that a manifest names in `section`.
fn own_dependencies(manifest: &Table, section: &str) -> BTreeSet<String> {
    let table = manifest.get(section).and_then(toml::Value::as_table);
    let names = table.into_iter().flat_map(Table::keys);
    names
        .filter(|name| name.starts_with("neph"))
        .cloned()
        .collect()
}

/// Every Rust file of the crates, with its path from the root.
fn sources() -> Vec<(String, String)> {
    let paths = tree::files(&root().join("crates"));
    let rust = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let files: Vec<(String, String)> = rust
        .map(|path| {
            (
                path_from_root(path),
                fs::read_to_string(path).expect("Rust is UTF-8"),
            )
        })
        .collect();
    assert!(files.len() > 100, "the crates were not found");
    files
}

fn path_from_root(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root");
    path.display().to_string()
}

/// The program without comments, strings' contents aside: enough to look for keywords.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn crates_use_only_allowed_crates() {
    let manifests = manifests();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for (name, manifest) in &manifests {
        if name == "neph" {
            continue;
        }
        let allowed = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} is not in the table of docs/design.md"));
        for section in ["dependencies", "build-dependencies"] {
            for dependency in own_dependencies(manifest, section) {
                assert!(
                    allowed.contains(&dependency.as_str()),
                    "{name} uses {dependency}"
                );
            }
        }
        for dependency in own_dependencies(manifest, "dev-dependencies") {
            let is_allowed = allowed.contains(&dependency.as_str())
                || ALLOWED_TEST_DEPENDENCIES.contains(&(name.as_str(), dependency.as_str()));
            assert!(is_allowed, "the tests of {name} use {dependency}");
        }
    }
    for (name, _) in ALLOWED_DEPENDENCIES {
        assert!(manifests.contains_key(*name), "there is no crate {name}");
    }
}

#[test]
fn the_design_page_shows_the_same_table() {
    let page = fs::read_to_string(root().join("docs/design.md")).expect("docs/design.md");
    for (name, dependencies) in ALLOWED_DEPENDENCIES {
        let row = page
            .lines()
            .find(|line| line.contains(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("docs/design.md has no row for {name}"));
        let cell = row.trim_end_matches('|').rsplit('|').next();
        let crates: BTreeSet<String> = match cell.unwrap_or_default().trim() {
            "none of ours" => BTreeSet::new(),
            cell => cell
                .split(", ")
                .map(|part| format!("neph-{part}"))
                .collect(),
        };
        let dependencies: BTreeSet<String> =
            dependencies.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(crates, dependencies, "docs/design.md about {name}");
    }
}

#[test]
fn only_neph_sys_is_unsafe() {
    for (path, text) in sources() {
        if path.starts_with("crates/neph-sys/") || path.ends_with("tests/architecture.rs") {
            continue;
        }
        for (line, code) in code_lines(&text) {
            let mut codes = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let is_unsafe = codes.any(|word| word == "unsafe") && !code.contains('"');
            assert!(!is_unsafe, "{path}:{line} is unsafe");
        }
    }
}

#[test]
fn only_one_file_prints() {
    let prints = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    for (path, text) in sources() {
        let exempt = path.contains("/tests") || path.contains("/benches/");
        let exempt = exempt || path.contains("/examples/") || path.ends_with("/build.rs");
        if exempt || path == "crates/neph/src/output.rs" {
            continue;
        }
        // What follows is the file's tests, which may say SKIP.
        let program = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (line, code) in code_lines(program) {
            let found = prints.iter().any(|print| code.contains(print));
            assert!(!found, "{path}:{line} prints");
        }
    }
}

#[test]
fn files_have_at_most_400_lines() {
    let allowed = |path: &str| {
        let listed = LONG_FILES.iter().find(|(listed, _)| *listed == path);
        listed.map_or(MAX_LINES, |(_, lines)| *lines)
    };
    let sources = sources();
    let lines = |path: &str| {
        let source_file = sources.iter().find(|(listed, _)| listed == path);
        source_file.map_or(0, |(_, text)| text.lines().count())
    };
    let long: Vec<String> = sources
        .iter()
        .map(|(path, _)| (path, lines(path)))
        .filter(|(path, lines)| *lines > allowed(path))
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "split these: {long:#?}");
    for (path, _) in LONG_FILES {
        assert!(lines(path) > MAX_LINES, "{path} is short enough: strike it");
    }
}
