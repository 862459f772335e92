//! How the documentation, the output and the comments are written: no home-made words, no sentence of more than
//! 30 words. The rules are those of docs/internals/language.md.
//!
//! `NEPH_PROSE=docs/commands/ping.md` checks only files whose path begins so.

#[path = "prose/markdown.rs"]
mod markdown;
#[path = "prose/rust.rs"]
mod rust;
#[path = "shared/tree.rs"]
mod tree;
#[path = "prose/words.rs"]
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tree::{files, root};
use words::{Fault, faults};

/// A piece of text in the order of its file, with the line on which it begins.
struct Text {
    line: usize,
    text: String,
}

/// The faults of every page and source file, by its path from the root.
fn all_faults() -> BTreeMap<String, Vec<(usize, Fault)>> {
    let root = root();
    let mut paths = ["README.md", "CHANGELOG.md", "plans/README.md"]
        .map(|name| root.join(name))
        .to_vec();
    paths.extend(files(&root.join("docs")));
    paths.extend(files(&root.join("crates")));
    let mut faults_by_rule = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(&root).expect("below the root");
        let name = name.display().to_string();
        let is_test = name.contains("/tests")
            || name.ends_with("tests.rs")
            || name.contains("/benches/")
            || name.contains("/examples/");
        if name == "docs/internals/language.md" {
            // It names the words that are not to be used.
            continue;
        }
        let read = |path: &Path| fs::read_to_string(path).expect("UTF-8");
        let texts = match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => markdown::texts(&read(&path)),
            Some("rs") if !is_test => rust::texts(&read(&path)),
            _ => continue,
        };
        let faults: Vec<(usize, Fault)> = texts
            .iter()
            .flat_map(|text| {
                faults(&text.text)
                    .into_iter()
                    .map(|fault| (text.line, fault))
            })
            .collect();
        if !faults.is_empty() {
            faults_by_rule.insert(name, faults);
        }
    }
    assert!(
        root.join("docs").exists() && !faults_by_rule.contains_key("docs/glossary.md"),
        "the glossary itself"
    );
    faults_by_rule
}

#[test]
fn no_page_and_no_source_file_has_a_home_made_word_or_a_long_sentence() {
    let only = std::env::var("NEPH_PROSE").unwrap_or_default();
    let faults_by_rule = all_faults();
    let of = faults_by_rule
        .iter()
        .filter(|(file, _)| file.starts_with(&only));
    let lines: Vec<String> = of
        .flat_map(|(file, faults)| {
            let lines = faults.iter();
            lines.map(move |(line, fault)| format!("{file}:{line}: {fault}"))
        })
        .collect();
    let count = lines.len();
    assert!(
        count == 0,
        "{count} faults, write them plainly:\n{}",
        lines.join("\n")
    );
}
