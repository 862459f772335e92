//! CSV fields (RFC 4180). No other module quotes one.

use std::borrow::Cow;

use crate::visible_lines;

/// First characters that a spreadsheet reads as the start of a formula.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A CSV field: in quotes if the text has a comma, a quote or a line break; hidden characters are
/// escaped. A text that a spreadsheet would calculate gets a leading apostrophe (OWASP, "CSV
/// Injection"). Such a text begins with `=`, `+`, `-` or `@`, with one of these in full width, or
/// with a tab, LF or CR. Do not use this for neph's own numbers.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(FORMULA);
    let shown = visible_lines(text);
    let needs_quotes = shown.contains([',', '"', '\n', '\r']);
    if !is_formula && !needs_quotes {
        return shown;
    }
    let mark = if is_formula { "'" } else { "" };
    if needs_quotes {
        return Cow::Owned(format!("\"{mark}{}\"", shown.replace('"', "\"\"")));
    }
    Cow::Owned(format!("{mark}{shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreadsheet_formulas_are_escaped_as_text() {
        for (given, field) in [
            ("=1+2", "'=1+2"),
            ("+49", "'+49"),
            ("-3.5", "'-3.5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\\u000d=1"),
            ("\n=1", "\"'\n=1\""),
            ("＝1+2", "'＝1+2"),
            ("＠SUM(A1)", "'＠SUM(A1)"),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(csv_field(given), field, "{given:?}");
        }
    }

    #[test]
    fn fields_are_quoted_only_if_needed() {
        assert_eq!(csv_field("a, \"b\"\nc"), "\"a, \"\"b\"\"\nc\"");
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("\x1b[2J"), "\\u001b[2J");
    }
}
