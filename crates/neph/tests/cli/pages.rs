//! docs/commands shows each command's help as it is. `NEPH_BLESS=1` writes the pages anew.

use std::fs;
use std::path::PathBuf;

use crate::broken_outputs::COMMANDS;
use crate::neph::command;

const MARK: &str = "<!-- help: ";
const OPEN: &str = "```text\n";
const CLOSE: &str = "```\n";

/// Commands that the page of all commands covers.
const WITHOUT_PAGE: [&str; 2] = ["completions", "man"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands")
}

/// The help of `name`, at a width that does not depend on the terminal.
fn help(name: &str) -> String {
    let output = command()
        .args(name.split(' '))
        .arg("-h")
        .env("COLUMNS", "100")
        .output()
        .expect("neph runs");
    assert!(output.status.success(), "neph {name} -h");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// The page with the help of the program below each mark.
fn with_help(page: &str) -> String {
    let mut parts = page.split_inclusive(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, text_after_mark) = part.split_once(" -->\n").expect("a mark ends its line");
        text.push_str(&format!("{name} -->\n{OPEN}{}{CLOSE}", help(name)));
        let text_after_mark = match text_after_mark.strip_prefix(OPEN) {
            Some(old) => old
                .split_once(CLOSE)
                .map_or("", |(_, text_after_mark)| text_after_mark),
            None => text_after_mark,
        };
        text.push_str(text_after_mark);
    }
    text
}

#[test]
fn the_pages_show_the_help_as_it_is() {
    let bless = std::env::var_os("NEPH_BLESS").is_some();
    for name in COMMANDS {
        if WITHOUT_PAGE.contains(&name) {
            continue;
        }
        let path = folder().join(format!("{name}.md"));
        let page = fs::read_to_string(&path).expect("a page for each command");
        assert!(page.contains(MARK), "{name}.md shows no help");
        let right = with_help(&page);
        if bless {
            fs::write(&path, right).expect("a page of ours");
        } else {
            let hint = "NEPH_BLESS=1 cargo test -p neph --test cli pages";
            assert!(page == right, "{name}.md is behind the program: {hint}");
        }
    }
}

#[test]
fn the_list_of_pages_is_complete() {
    let list = fs::read_to_string(folder().join("README.md")).expect("it is there");
    for name in COMMANDS {
        let is_listed =
            list.contains(&format!("]({name}.md)")) || list.contains(&format!("neph {name}"));
        assert!(is_listed, "docs/commands/README.md does not tell of {name}");
    }
}
