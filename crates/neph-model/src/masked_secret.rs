//! The text of a plan as it may be shown: without the secrets that it contains.
//!
//! Owns the search for them: values of `--stamp-key` that name neither a file nor a variable. Does
//! not own their refusal.

const OPTION: &str = "--stamp-key";

/// The text with an asterisk for each byte of a bare secret, so that places in it stay the same.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some(at) = remaining.find(OPTION) {
        let (before, after) = remaining.split_at(at + OPTION.len());
        shown.push_str(before);
        remaining = after;
        let Some((between, value)) = value(after) else {
            continue;
        };
        let names_a_source = value.starts_with("file:") || value.starts_with("env:");
        if !names_a_source {
            shown.push_str(between);
            shown.extend(std::iter::repeat_n('*', value.len()));
            remaining = &after[between.len() + value.len()..];
        }
    }
    shown + remaining
}

/// The value after an option in a list of quoted flags, and its separator: `=` within the same
/// quotes, or a closing and an opening quote.
fn value(after: &str) -> Option<(&str, &str)> {
    let is_quote = |c: char| c == '"' || c == '\'';
    let start = if after.starts_with('=') {
        1
    } else {
        let remaining = after.strip_prefix(is_quote)?;
        let next = remaining.find(|c: char| !c.is_whitespace() && c != ',')?;
        if !remaining[next..].starts_with(is_quote) {
            return None;
        }
        next + 2
    };
    let end = after[start..].find(is_quote)?;
    Some((&after[..start], &after[start..start + end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_secrets_are_masked_and_other_text_is_unchanged() {
        for (text, expected) in [
            (r#"["--stamp-key", "abc"]"#, r#"["--stamp-key", "***"]"#),
            (
                r#"["--stamp-key=abc", "-q"]"#,
                r#"["--stamp-key=***", "-q"]"#,
            ),
            ("['--stamp-key',\n 'a' ]", "['--stamp-key',\n '*' ]"),
            (r#"["--stamp-key", "é"]"#, r#"["--stamp-key", "**"]"#),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
        for same in [
            r#"["--stamp-key", "file:k"]"#,
            r#"["--stamp-key=env:K"]"#,
            r#"["--stamp-key"]"#,
            "--stamp-key",
            "flags = []",
        ] {
            assert_eq!(without_secrets(same), same);
        }
    }
}
