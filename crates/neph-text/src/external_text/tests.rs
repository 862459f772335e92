use std::io::Write;

use proptest::prelude::*;

use super::*;

#[test]
fn terminal_control_characters_are_escaped() {
    let hostile = "\x1b]52;c;Y3VybA==\x07 a\u{9b}31m b\u{202e}c\u{200b}d\u{7f}";
    let observed = "\\u001b]52;c;Y3VybA==\\u0007 a\\u009b31m b\\u202ec\\u200bd\\u007f";
    assert_eq!(visible(hostile), observed);
    assert_eq!(PrintableText::text(hostile).as_str(), observed);
    assert_eq!(PrintableText::bytes(hostile.as_bytes()).as_str(), observed);
}

#[test]
fn a_name_cannot_inject_an_output_line() {
    assert_eq!(
        PrintableText::text("a\nneph: done\r\u{2028}b").as_str(),
        "a\\u000aneph: done\\u000d\\u2028b"
    );
    assert_eq!(visible_lines("a\n\tb\x1b"), "a\n\tb\\u001b");
}

#[test]
fn colour_sequences_are_kept_and_other_escape_sequences_removed() {
    let text = "\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;t\x07\x1b[";
    let shown = "\x1b[1;31mred\x1b[0m \\u001b[2J\\u001b]0;t\\u0007\\u001b[";
    assert_eq!(coloured(text), shown);
}

#[test]
fn all_bidi_and_invisible_characters_are_escaped() {
    let ranges = [
        0..=0x1f,
        0x7f..=0x9f,
        0x61c..=0x61c,
        0x200b..=0x200f,
        0x202a..=0x202e,
        0x2060..=0x2069,
        0xfeff..=0xfeff,
        0xe0001..=0xe007f,
    ];
    for code in ranges.into_iter().flatten() {
        let letter = char::from_u32(code).expect("a character");
        assert!(is_hidden(letter), "U+{code:04X}");
    }
    for letter in "aZ~ äß€·→µ日本\u{a0}\u{fffd}é👍ع".chars() {
        assert!(!is_hidden(letter), "{letter}");
    }
}

#[test]
fn the_character_ranges_are_sorted() {
    assert!(HIDDEN.iter().all(|(first, last)| first <= last));
    assert!(HIDDEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
}

#[test]
fn a_long_value_is_truncated_with_a_mark() {
    let long = "x".repeat(10_000_000);
    let cut = PrintableText::text(&long);
    assert_eq!(cut.as_str().chars().count(), LONGEST_VALUE);
    assert!(cut.as_str().ends_with("x..."));
    let fits = "x".repeat(LONGEST_VALUE);
    assert_eq!(PrintableText::text(&fits).as_str(), fits);
    assert!(!one_line(&"\u{e0001}".repeat(9), 40).ends_with("\\udb40..."));
}

#[test]
fn filtered_json_has_the_same_content() {
    let value = "a\u{202e}\u{7f}\u{85}\u{e0041}\x1b\n\"\\";
    let json = format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    let json = json.replace('\x1b', "\\u001b").replace('\n', "\\n");
    let mut out = Visible::new(Vec::new());
    out.write_all(json.as_bytes()).expect("memory");
    let written = String::from_utf8(out.inner().clone()).expect("UTF-8");
    assert_eq!(written, r#""a\u202e\u007f\u0085\udb40\udc41\u001b\n\"\\""#);
}

proptest! {
    #[test]
    fn escaped_text_is_bounded_and_stable(text in any::<String>(), max in 0_usize..80) {
        let shown = one_line(&text, max).into_owned();
        prop_assert!(!shown.contains(is_hidden));
        prop_assert!(shown.chars().count() <= max.max(CUT.len()));
        prop_assert_eq!(one_line(&shown, max), shown.as_str());
        let whole = visible(&text).into_owned();
        prop_assert_eq!(visible(&whole), whole.as_str());
    }

    #[test]
    fn a_stream_is_filtered_the_same_however_it_is_split(bytes in any::<Vec<u8>>(), at in any::<usize>()) {
        let written = |parts: &[&[u8]]| {
            let mut out = Vec::new();
            let mut filter = Visible::new(&mut out);
            parts.iter().try_for_each(|part| filter.write_all(part)).expect("memory");
            drop(filter);
            String::from_utf8(out).expect("UTF-8")
        };
        let at = at % (bytes.len() + 1);
        let whole = written(&[&bytes]);
        prop_assert_eq!(&written(&[&bytes[..at], &bytes[at..]]), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&written(&single), &whole);
        let kept = |letter: char| matches!(letter, '\n' | '\t' | '\r');
        prop_assert!(!whole.contains(|letter| is_hidden(letter) && !kept(letter)));
    }
}
