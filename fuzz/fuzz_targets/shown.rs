//! Text from outside to the terminal: whatever the bytes, what is shown has no character that a
//! terminal obeys or hides, is bounded, and stays as it is when it is shown once more; a stream is the
//! same however it is cut, and a field of CSV is one field that no spreadsheet calculates.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use neph_text::{
    LONGEST_VALUE, PrintableText, Visible, csv_field, is_hidden, one_line, several_lines, visible,
    visible_file, visible_lines,
};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let visible_text = PrintableText::bytes(bytes);
    assert_one_line(&text, visible_text.as_str(), LONGEST_VALUE);
    let max_chars = usize::from(bytes.first().copied().unwrap_or(9));
    assert_one_line(&text, &one_line(&text, max_chars), max_chars.max(3));
    assert_one_line(&text, &visible(&text), usize::MAX);
    let lines = several_lines(&text, max_chars);
    assert!(
        lines
            .chars()
            .all(|letter| !is_hidden(letter) || is_layout(letter))
    );
    assert!(lines.chars().count() <= max_chars.max(3));
    assert_eq!(several_lines(&lines, max_chars), lines);
    assert_csv_field(&text);
    assert_stream(bytes, max_chars);
});

fn is_layout(letter: char) -> bool {
    matches!(letter, '\n' | '\t')
}

/// One line of at most `most` characters.
fn assert_one_line(text: &str, visible_text: &str, max_chars: usize) {
    assert!(
        !visible_text.contains(is_control_or_invisible),
        "{visible_text:?}"
    );
    assert!(!visible_text.contains(is_hidden), "{visible_text:?}");
    let length = visible_text.chars().count();
    assert!(length <= max_chars);
    assert_eq!(
        one_line(visible_text, max_chars),
        visible_text,
        "shown once more"
    );
    assert_eq!(visible(visible_text), visible_text);
    if !text.contains(is_hidden) && text.chars().count() <= max_chars {
        assert_eq!(visible_text, text, "clean text stays");
    }
}

/// Controls, bidirectional controls and zero-width characters, written down a second time.
fn is_control_or_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            u32::from(letter),
            0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff
        )
}

fn assert_csv_field(text: &str) {
    let field = csv_field(text);
    assert!(!field.starts_with(['=', '+', '-', '@', '\t', '\r']));
    assert!(!field.contains(|letter| is_hidden(letter) && !is_layout(letter)));
    let unquoted = match field.strip_prefix('"') {
        Some(rest) => {
            let unquoted = rest.strip_suffix('"').expect("quotes come in pairs");
            assert!(!unquoted.replace("\"\"", "").contains('"'), "{field}");
            unquoted.replace("\"\"", "\"")
        }
        None => {
            assert!(!field.contains([',', '"', '\n']), "{field}");
            field.into_owned()
        }
    };
    assert!(!unquoted.starts_with(['=', '+', '-', '@', '\t', '\r']));
    let quoted_for_spreadsheets = format!("'{}", visible_lines(text));
    assert!(
        unquoted == visible_lines(text) || unquoted == quoted_for_spreadsheets,
        "{unquoted}"
    );
}

fn assert_stream(bytes: &[u8], piece_size: usize) {
    let whole = filter_pieces(std::iter::once(bytes));
    assert_eq!(filter_pieces(bytes.chunks(piece_size.max(1))), whole);
    let is_allowed = |letter| is_layout(letter) || letter == '\r';
    assert!(!whole.contains(|letter| is_hidden(letter) && !is_allowed(letter)));
    assert!(!whole.replace("\r\n", "").contains('\r'));
    assert_eq!(visible_file(&whole), whole);
}

fn filter_pieces<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> String {
    let mut out = Vec::new();
    let mut filter = Visible::new(&mut out);
    for piece in pieces {
        filter.write_all(piece).expect("memory takes everything");
    }
    drop(filter);
    String::from_utf8(out).expect("it is UTF-8")
}
