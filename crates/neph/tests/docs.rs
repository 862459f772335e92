//! The pages of the documentation: each is in the table of contents, and each link of a page leads to a file, and
//! to a heading where it names one.

#[path = "docs/keys.rs"]
mod keys;
#[path = "shared/tree.rs"]
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use tree::{files, root};

/// Folders and files outside of docs that have pages.
const OUTSIDE_DOCS: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "plans/README.md",
    "benches/README.md",
    "fuzz/README.md",
];

const TABLE_OF_CONTENTS: &str = "docs/SUMMARY.md";

/// The text of each page, by its path from the root.
fn pages() -> BTreeMap<String, String> {
    let root = root();
    let docs = files(&root.join("docs")).into_iter();
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let paths = docs.chain(OUTSIDE_DOCS.iter().map(|name| root.join(name)));
    let pages: BTreeMap<String, String> = paths
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the root");
            let text = fs::read_to_string(&path).expect("UTF-8");
            (name.display().to_string(), text)
        })
        .collect();
    assert!(pages.len() > 50, "the pages were not found");
    pages
}

/// The lines of a page that are not code.
fn lines(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(page.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The destinations of the links of a line: `[text](destination)`. Code between backquotes has none.
fn links(line: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for (number, part) in line.split('`').enumerate() {
        if number % 2 == 0 {
            let after = part.split("](").skip(1);
            links.extend(after.filter_map(|rest| rest.split_once(')').map(|(to, _)| to)));
        }
    }
    links
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = lines(page).filter_map(|(_, line)| line.strip_prefix('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let headings = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            headings.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// `folder/../file` without the detour.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                assert!(normalized.pop(), "{} leaves the repository", path.display());
            }
            other => normalized.push(other),
        }
    }
    normalized
}

#[test]
fn every_link_leads_to_a_file_and_to_a_heading_of_it() {
    let (root, pages) = (root(), pages());
    let headings: BTreeMap<&String, BTreeSet<String>> = pages
        .iter()
        .map(|(name, text)| (name, anchors(text)))
        .collect();
    let (mut wrong, mut link_count) = (Vec::new(), 0);
    for (name, text) in &pages {
        let folder = Path::new(name).parent().expect("a file");
        for (line, link) in
            lines(text).flat_map(|(line, text)| links(text).into_iter().map(move |l| (line, l)))
        {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            link_count += 1;
            let (file, heading) = link
                .split_once('#')
                .map_or((link, None), |(f, h)| (f, Some(h)));
            let to = if file.is_empty() {
                PathBuf::from(name)
            } else {
                normalize(&folder.join(file))
            };
            let exists = root.join(&to).exists();
            let is_heading = |heading: &str| {
                let of = headings.get(&to.display().to_string());
                of.is_some_and(|entries| entries.contains(heading))
            };
            if !exists || !heading.is_none_or(is_heading) {
                wrong.push(format!("{name}:{line}: {link}"));
            }
        }
    }
    assert!(link_count > 500, "only {link_count} links were found");
    assert!(
        wrong.is_empty(),
        "these lead nowhere:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let pages = pages();
    let mut listed: Vec<String> = links_of(&pages[TABLE_OF_CONTENTS]);
    listed.sort();
    let mut expected: Vec<String> = pages
        .into_keys()
        .filter(|name| name.starts_with("docs/") && name != TABLE_OF_CONTENTS)
        .collect();
    expected.push("plans/README.md".to_owned());
    expected.sort();
    assert_eq!(listed, expected);
}

/// Where the lines of the table of contents lead, from the root.
fn links_of(contents: &str) -> Vec<String> {
    let all_args = contents.lines().flat_map(links);
    let to = all_args.map(|link| normalize(&Path::new("docs").join(link)));
    to.map(|path| path.display().to_string()).collect()
}

#[test]
fn links_and_headings_are_read_as_written() {
    assert_eq!(
        links("see [a](b.md#c), `[x](y)` and [d](e)"),
        ["b.md#c", "e"]
    );
    let page = "# One, two\n```\n# no\n```\n## `neph run`: 3 of 4\n";
    let expected = ["neph-run-3-of-4", "one-two"];
    assert!(anchors(page).iter().eq(expected), "{:?}", anchors(page));
}
