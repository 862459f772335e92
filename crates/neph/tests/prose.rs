//! How the documentation, the output and the comments are written: no home-made words, no sentence of more than
//! 30 words. The rules are those of docs/internals/language.md.
//!
//! `counts.tsv` has what is still to be rewritten, by file: a count may only fall. `NEPH_BLESS=1` writes lower
//! counts; nothing raises one. `NEPH_PROSE=docs/commands/ping.md` lists the faults of files whose path begins so.

#[path = "prose/markdown.rs"]
mod markdown;
#[path = "prose/rust.rs"]
mod rust;
#[path = "prose/words.rs"]
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use words::{Fault, faults};

/// A piece of text in the order of its file, with the line on which it begins.
struct Text {
    line: usize,
    text: String,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the repository")
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of ours") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The faults of every page and source file, by its path from the root.
fn all_faults() -> BTreeMap<String, Vec<(usize, Fault)>> {
    let root = root();
    let mut found = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    files(&root.join("docs"), &mut found);
    files(&root.join("crates"), &mut found);
    let mut all = BTreeMap::new();
    for path in found {
        let name = path.strip_prefix(&root).expect("below the root");
        let name = name.display().to_string();
        let is_test =
            name.contains("/tests") || name.contains("/benches/") || name.contains("/examples/");
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
            all.insert(name, faults);
        }
    }
    assert!(
        root.join("docs").exists() && !all.contains_key("docs/glossary.md"),
        "the glossary itself"
    );
    all
}

fn counts_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prose/counts.tsv")
}

/// What is still to be rewritten: faults by file.
fn counts() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(counts_path()).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (count, file) = line.split_once('\t').expect("COUNT<TAB>FILE");
            (file.to_owned(), count.parse().expect("a count"))
        })
        .collect()
}

#[test]
fn no_page_and_no_source_file_has_more_home_made_words_and_long_sentences_than_before() {
    let (all, before) = (all_faults(), counts());
    if let Ok(asked) = std::env::var("NEPH_PROSE") {
        let of = all.iter().filter(|(file, _)| file.starts_with(&asked));
        let lines: Vec<String> = of
            .flat_map(|(file, faults)| {
                let lines = faults.iter();
                lines.map(move |(line, fault)| format!("{file}:{line}: {fault}"))
            })
            .collect();
        assert!(
            lines.is_empty(),
            "{} faults:\n{}",
            lines.len(),
            lines.join("\n")
        );
        return;
    }
    let mut worse = Vec::new();
    for (file, faults) in &all {
        if faults.len() > before.get(file).copied().unwrap_or(0) {
            worse.extend(
                faults
                    .iter()
                    .map(|(line, fault)| format!("{file}:{line}: {fault}")),
            );
        }
    }
    assert!(
        worse.is_empty(),
        "write these plainly:\n{}",
        worse.join("\n")
    );
    let now = |file: &str| all.get(file).map_or(0, Vec::len);
    let mut lower = before.clone();
    lower.retain(|file, _| now(file) > 0);
    for (file, count) in &mut lower {
        *count = now(file);
    }
    if lower != before {
        assert!(
            std::env::var_os("NEPH_BLESS").is_some(),
            "fewer faults than counts.tsv has: write that down with NEPH_BLESS=1"
        );
        let lines = lower
            .iter()
            .map(|(file, count)| format!("{count}\t{file}\n"));
        let text: String = lines.collect();
        let head = "# Faults of language still to be mended, by file. Only lower counts are written (prose.rs).\n";
        fs::write(counts_path(), format!("{head}{text}")).expect("writable");
    }
}
