//! The keys of plans and topologies: the code that reads a file and the pages that describe it name the same keys.
//!
//! Owns finding keys in source files and in tables. What a key means, and its default, is text of the pages.

use std::collections::BTreeSet;
use std::fs;

use crate::tree::{files, root};

/// A file format: the folder of the code that reads it, the folders in which names of its keys are
/// written, and its pages.
struct FileFormat {
    reader: &'static str,
    names: &'static [&'static str],
    pages: &'static [&'static str],
}

const TOPOLOGY: FileFormat = FileFormat {
    reader: "crates/neph-lab/src/topology",
    // Guests, overlays and balancers list their keys beside what they do.
    names: &["crates/neph-lab/src"],
    pages: &[
        "docs/topology.md",
        "docs/topology-services.md",
        "docs/topology-overlays.md",
        "docs/topology-guests.md",
        "docs/topology-paths.md",
    ],
};

const PLAN: FileFormat = FileFormat {
    reader: "crates/neph-campaign/src/plan",
    // Parameters have their names where their types are.
    names: &["crates/neph-campaign/src", "crates/neph-model/src"],
    pages: &["plans/README.md"],
};

/// The methods of `Fields` that read a key.
const METHODS: [&str; 10] = [
    "entry",
    "needed",
    "optional",
    "optional_with",
    "required",
    "required_with",
    "one_or_list",
    "one_or_list_with",
    "table",
    "tables",
];

/// The source files of a folder without their tests.
fn sources(folder: &str) -> Vec<String> {
    let paths = files(&root().join(folder)).into_iter();
    let paths = paths.filter(|path| !path.to_string_lossy().contains("test"));
    let sources: Vec<String> = paths
        .map(|path| fs::read_to_string(path).expect("UTF-8"))
        .collect();
    assert!(sources.len() > 10, "{folder} has no sources");
    sources
}

impl FileFormat {
    fn page_texts(&self) -> Vec<String> {
        let read = |page: &&str| fs::read_to_string(root().join(page)).expect("the page exists");
        self.pages.iter().map(read).collect()
    }
}

/// The keys that a source file reads by a literal name.
fn read_keys(source: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for method in METHODS {
        for call in source.split(&format!(".{method}")).skip(1) {
            let Some((generics, arguments)) = call.split_once('(') else {
                continue;
            };
            let is_call = generics.is_empty() || generics.starts_with("::<");
            let literal = arguments.trim_start().strip_prefix('"');
            if let (true, Some((key, _))) = (is_call, literal.and_then(|text| text.split_once('"')))
            {
                keys.insert(key.to_owned());
            }
        }
    }
    keys
}

/// Whether a page names a key: in backquotes, as the name of a table (also within another), or with
/// a value in an example.
fn names_key(page: &str, key: &str) -> bool {
    let is_set = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let ends = [format!("`{key}`"), format!("[{key}]")];
    let inner_ends = [format!(".{key}`"), format!(".{key}]")];
    ends.iter().chain(&inner_ends).any(|end| page.contains(end)) || page.lines().any(is_set)
}

/// The keys in the first column of the page's tables of keys.
fn listed_keys(page: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut is_table_of_keys = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix('|') else {
            is_table_of_keys = false;
            continue;
        };
        is_table_of_keys |= row.starts_with(" key");
        let first = row.split('|').next().expect("split gives one");
        if is_table_of_keys {
            let quoted = first.split('`').skip(1).step_by(2);
            // `ready.timeout` is the key `timeout` of the table `ready`.
            let names = quoted.filter_map(|key| key.rsplit('.').next());
            keys.extend(names.map(str::to_owned));
        }
    }
    keys
}

#[test]
fn every_key_that_is_read_is_on_a_page() {
    for format in [TOPOLOGY, PLAN] {
        let keys: BTreeSet<String> = sources(format.reader)
            .iter()
            .flat_map(|source| read_keys(source))
            .collect();
        assert!(keys.len() > 40, "{}: {keys:?}", format.reader);
        let pages = format.page_texts();
        let missing: Vec<&String> = keys
            .iter()
            .filter(|key| !pages.iter().any(|page| names_key(page, key)))
            .collect();
        assert!(missing.is_empty(), "{:?} lack {missing:?}", format.pages);
    }
}

#[test]
fn every_key_in_a_table_is_read() {
    for format in [TOPOLOGY, PLAN] {
        let sources: Vec<String> = format.names.iter().flat_map(|name| sources(name)).collect();
        let is_read = |key: &String| {
            let literal = format!("\"{key}\"");
            sources.iter().any(|source| source.contains(&literal))
        };
        let keys: BTreeSet<String> = format
            .page_texts()
            .iter()
            .flat_map(|page| listed_keys(page))
            .collect();
        assert!(keys.len() > 20, "{:?}: {keys:?}", format.pages);
        let unknown: Vec<&String> = keys.iter().filter(|key| !is_read(key)).collect();
        assert!(
            unknown.is_empty(),
            "{:?} do not read {unknown:?}",
            format.names
        );
    }
}

#[test]
fn keys_are_found_in_code_and_in_tables() {
    let source = "fields.optional::<u32>(\"mtu\"); fields\n.needed(\n \"at\"); other.entry(key)";
    assert!(read_keys(source).iter().eq(["at", "mtu"]));
    let page =
        "| key | meaning |\n|---|---|\n| `a`, `b` | `c` |\n\n| word | x |\n|---|---|\n| `d` | |\n";
    assert!(listed_keys(page).iter().eq(["a", "b"]));
    assert!(names_key("[[link]]\n  rate = 3", "rate") && !names_key("rates = 3", "rate"));
}
