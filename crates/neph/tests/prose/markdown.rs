//! The prose of a page of Markdown: paragraphs, list items, headings, cells of tables, and the help in its code
//! blocks. Other code blocks are no prose.

use super::Text;

/// The prose of a page, piece by piece.
pub(super) fn texts(page: &str) -> Vec<Text> {
    let mut pieces = Pieces::default();
    let mut fence = None;
    for (line, text) in (1..).zip(page.lines()) {
        let trimmed = text.trim();
        if trimmed.starts_with("```") {
            fence = match fence {
                None => Some(trimmed),
                Some(_) => None,
            };
            pieces.end();
            continue;
        }
        if fence.is_some() || trimmed.starts_with("<!--") || trimmed.starts_with("![") {
            continue;
        }
        if trimmed.is_empty() {
            pieces.end();
        } else if trimmed.starts_with('|') {
            pieces.end();
            for cell in trimmed.trim_matches('|').split(" | ") {
                pieces.add(line, cell);
                pieces.end();
            }
        } else {
            if is_item(trimmed) || trimmed.starts_with('#') {
                pieces.end();
            }
            pieces.add(line, trimmed);
            if trimmed.starts_with('#') {
                pieces.end();
            }
        }
    }
    pieces.end();
    pieces.done
}

fn is_item(line: &str) -> bool {
    let number = line.split_once(". ").map(|(number, _)| number);
    let is_number = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    line.starts_with("- ") || line.starts_with("* ") || is_number
}

/// Pieces that are done, and the one that goes on.
#[derive(Default)]
struct Pieces {
    done: Vec<Text>,
    open: Option<Text>,
}

impl Pieces {
    fn add(&mut self, line: usize, text: &str) {
        let open = self.open.get_or_insert(Text {
            line,
            text: String::new(),
        });
        if !open.text.is_empty() {
            open.text.push(' ');
        }
        open.text.push_str(text);
    }

    fn end(&mut self) {
        if let Some(open) = self.open.take() {
            let text = plain(&open.text);
            self.done.push(Text { text, ..open });
        }
    }
}

/// Text without code spans and without the targets of links: a code span counts as one word.
fn plain(text: &str) -> String {
    let spans = text.split('`').enumerate();
    let text: String = spans
        .map(|(number, span)| if number % 2 == 1 { "code" } else { span })
        .collect();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("](") {
        plain.push_str(&rest[..at]);
        rest = rest[at..].split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.replace(['[', ']', '*'], "")
}

#[test]
fn paragraphs_items_and_cells_are_pieces_and_code_is_none() {
    let page = "# Title\n\nOne line\nand [another](page.md#here).\n\n```\ncode told\n```\n- item `told x`\n| a | b |\n";
    let shown: Vec<(usize, String)> = texts(page)
        .into_iter()
        .map(|text| (text.line, text.text.trim().to_owned()))
        .collect();
    let piece = |line, text: &str| (line, text.to_owned());
    assert_eq!(
        shown,
        [
            piece(1, "# Title"),
            piece(3, "One line and another."),
            piece(9, "- item code"),
            piece(10, "a"),
            piece(10, "b"),
        ]
    );
}
