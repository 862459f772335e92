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
    let shown = PrintableText::bytes(bytes);
    line(&text, shown.as_str(), LONGEST_VALUE);
    let most = usize::from(bytes.first().copied().unwrap_or(9));
    line(&text, &one_line(&text, most), most.max(3));
    line(&text, &visible(&text), usize::MAX);
    let lines = several_lines(&text, most);
    assert!(lines.chars().all(|letter| !is_hidden(letter) || is_layout(letter)));
    assert!(lines.chars().count() <= most.max(3));
    assert_eq!(several_lines(&lines, most), lines);
    csv(&text);
    stream(bytes, most);
});

fn is_layout(letter: char) -> bool {
    matches!(letter, '\n' | '\t')
}

/// One line of at most `most` characters.
fn line(text: &str, shown: &str, most: usize) {
    assert!(!shown.contains(is_named), "{shown:?}");
    assert!(!shown.contains(is_hidden), "{shown:?}");
    let length = shown.chars().count();
    assert!(length <= most);
    assert_eq!(one_line(shown, most), shown, "shown once more");
    assert_eq!(visible(shown), shown);
    if !text.contains(is_hidden) && text.chars().count() <= most {
        assert_eq!(shown, text, "clean text stays");
    }
}

/// Controls, bidirectional controls and zero-width characters, written down a second time.
fn is_named(letter: char) -> bool {
    letter.is_control()
        || matches!(
            u32::from(letter),
            0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff
        )
}

fn csv(text: &str) {
    let field = csv_field(text);
    assert!(!field.starts_with(['=', '+', '-', '@', '\t', '\r']));
    assert!(!field.contains(|letter| is_hidden(letter) && !is_layout(letter)));
    let inner = match field.strip_prefix('"') {
        Some(rest) => {
            let inner = rest.strip_suffix('"').expect("quotes come in pairs");
            assert!(!inner.replace("\"\"", "").contains('"'), "{field}");
            inner.replace("\"\"", "\"")
        }
        None => {
            assert!(!field.contains([',', '"', '\n']), "{field}");
            field.into_owned()
        }
    };
    assert!(!inner.starts_with(['=', '+', '-', '@', '\t', '\r']));
    let marked = format!("'{}", visible_lines(text));
    assert!(inner == visible_lines(text) || inner == marked, "{inner}");
}

fn stream(bytes: &[u8], piece: usize) {
    let whole = written(std::iter::once(bytes));
    assert_eq!(written(bytes.chunks(piece.max(1))), whole);
    let kept = |letter| is_layout(letter) || letter == '\r';
    assert!(!whole.contains(|letter| is_hidden(letter) && !kept(letter)));
    assert!(!whole.replace("\r\n", "").contains('\r'));
    assert_eq!(visible_file(&whole), whole);
}

fn written<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> String {
    let mut out = Vec::new();
    let mut filter = Visible::new(&mut out);
    for piece in pieces {
        filter.write_all(piece).expect("memory takes everything");
    }
    drop(filter);
    String::from_utf8(out).expect("it is UTF-8")
}
