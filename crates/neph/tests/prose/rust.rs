//! The prose of a source file: comments, and strings of three words or more, which are output. Tests at the end of
//! a file are left out.

use super::Text;

/// Words that make a string a sentence.
const MIN_SENTENCE_WORDS: usize = 3;

/// The prose of a file.
pub(super) fn texts(source: &str) -> Vec<Text> {
    let program = source.split("\n#[cfg(test)]").next().unwrap_or_default();
    let mut texts = parse_comments(program);
    texts.extend(parse_strings(program));
    texts
}

/// Comments: lines that follow each other are one.
fn parse_comments(program: &str) -> Vec<Text> {
    let mut comments: Vec<Text> = Vec::new();
    let (mut is_open, mut is_code) = (false, false);
    for (line, text) in (1..).zip(program.lines()) {
        let comment = text.trim().strip_prefix("//");
        let comment = comment.map(|text| text.trim_start_matches(['/', '!']).trim());
        match comment {
            None | Some("") => is_open = false,
            Some(fence) if fence.starts_with("```") => (is_open, is_code) = (false, !is_code),
            Some(_) if is_code => {}
            Some(text) => {
                let is_item =
                    text.starts_with("- ") || text.starts_with('#') || text.starts_with('|');
                match comments.last_mut().filter(|_| is_open && !is_item) {
                    Some(last) => last.text = format!("{} {text}", last.text),
                    None => comments.push(Text {
                        line,
                        text: text.to_owned(),
                    }),
                }
                is_open = true;
            }
        }
    }
    for text in &mut comments {
        let spans = text.text.split('`').enumerate();
        let plain = spans.map(|(number, span)| if number % 2 == 1 { "code" } else { span });
        text.text = plain.collect();
    }
    comments
}

/// Whether a string is a script, a query or a configuration of another program.
fn is_program(text: &str) -> bool {
    let options = text.split_whitespace().filter(|word| word.starts_with('-'));
    let is_query = ["INSERT ", "UPDATE ", "SELECT "]
        .iter()
        .any(|verb| text.starts_with(verb));
    is_query
        || text.contains('$')
        || text.contains("{{")
        || text.contains(">&2")
        || options.count() > 3
}

type Chars<'p> = std::iter::Peekable<std::str::CharIndices<'p>>;

/// Strings, with `\` at the end of a line joined; of raw ones too.
fn parse_strings(program: &str) -> Vec<Text> {
    let mut strings = Vec::new();
    let mut chars = program.char_indices().peekable();
    let mut line = 1;
    while let Some((at, c)) = chars.next() {
        let rest = &program[at..];
        match c {
            '\n' => line += 1,
            '/' if rest.starts_with("//") => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            // A character; a lifetime has no quotation mark and no backslash.
            '\'' if rest.starts_with("'\"'") => drop(chars.nth(1)),
            '\'' if rest.starts_with("'\\") => drop(chars.nth(2)),
            '"' => {
                let first = line;
                let text = parse_string(program, at, &mut chars, &mut line);
                if text.split_whitespace().count() >= MIN_SENTENCE_WORDS && !is_program(&text) {
                    strings.extend(text.split('\n').map(|text| Text {
                        line: first,
                        text: text.to_owned(),
                    }));
                }
            }
            _ => {}
        }
    }
    strings
}

/// The string whose quotation mark is at `start`; counts the lines that it spans.
fn parse_string(program: &str, start: usize, chars: &mut Chars<'_>, line: &mut usize) -> String {
    let hashes = hashes_before(&program[..start]);
    let mut text = String::new();
    while let Some((at, c)) = chars.next() {
        match (c, hashes) {
            ('\\', None) => match chars.next() {
                Some((_, '\n')) => {
                    *line += 1;
                    let is_indent = |(_, c): &(usize, char)| c.is_whitespace() && *c != '\n';
                    while chars.next_if(is_indent).is_some() {}
                }
                Some((_, 'n')) => text.push('\n'),
                other => text.extend(other.map(|(_, c)| c)),
            },
            ('"', None) => break,
            ('"', Some(hashes)) if program[at + 1..].starts_with(&"#".repeat(hashes)) => break,
            _ => {
                *line += usize::from(c == '\n');
                text.push(c);
            }
        }
    }
    text
}

/// The hashes of a raw string that begins here; `None` of a plain one.
fn hashes_before(before: &str) -> Option<usize> {
    let bare = before.trim_end_matches('#');
    let is_raw = bare.ends_with('r') && !bare.ends_with(|c: char| c.is_alphanumeric() && c != 'r');
    is_raw.then_some(before.len() - bare.len())
}

#[test]
fn comments_and_strings_of_a_program_are_its_prose() {
    let source = "//! What it owns\n//! and more.\n\n/// A `told` thing.\nfn f() {\n    \
                  say(\"one two \\\n        three\");\n    let c = '\"'; g(\"no\", r#\"a \"raw\" one\"#);\n}\n\
                  #[cfg(test)]\nmod tests { \"told told told\" }\n";
    let shown: Vec<(usize, String)> = texts(source)
        .into_iter()
        .map(|text| (text.line, text.text))
        .collect();
    let expected_text = |line, text: &str| (line, text.to_owned());
    assert_eq!(
        shown,
        [
            expected_text(1, "What it owns and more."),
            expected_text(4, "A code thing."),
            expected_text(6, "one two three"),
            expected_text(8, "a \"raw\" one"),
        ]
    );
}
