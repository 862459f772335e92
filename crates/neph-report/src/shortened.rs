//! Texts that are too long for their place.
//!
//! Owns what is left out. Labels of one figure begin alike and differ at their end, or the other way round:
//! "stress streaming, hashing beside" and "stress streaming" cut at the same place would be one.

/// The text, or as much of its two ends as fits with an ellipsis between them.
pub(crate) fn shortened(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let all: Vec<char> = text.chars().collect();
    let with = |kept: usize| {
        let begin: String = all[..kept.div_ceil(2)].iter().collect();
        let end: String = all[all.len() - kept / 2..].iter().collect();
        format!("{}…{}", begin.trim_end(), end.trim_start())
    };
    let mut shorter = (0..all.len()).rev().map(with);
    shorter
        .find(|short| fits(short))
        .unwrap_or_else(|| "…".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_differ_at_one_end_differ_when_they_are_cut() {
        let cut = |text: &str| shortened(text, |short| short.chars().count() <= 14);
        assert_eq!(cut("stress none"), "stress none");
        assert_eq!(cut("stress streaming 1450kbit/s"), "stress…0kbit/s");
        assert_eq!(
            cut("stress streaming 1450kbit/s, hashing 95%"),
            "stress…ing 95%"
        );
        assert_eq!(shortened("long", |_| false), "…");
    }
}
