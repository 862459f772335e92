//! Texts that are too long for their place.
//!
//! Owns what is left out. Of labels that are shown together, the common parts are left out first, never the
//! differences (see `distinguishing`). If that is not enough, the texts are cut and stay distinct. Labels of
//! one figure have the same beginning and differ at their end, or the other way round.

mod distinguishing;

/// The text, or as much of its two ends as fits with an ellipsis between them.
pub(crate) fn shortened(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    joined(&ends(text, &fits))
}

/// As [`shortened`], for one of several texts: the result differs from every other shortened text.
/// Texts that are equal after shortening are numbered.
pub(crate) fn shortened_among(text: &str, among: &[String], fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let others = among.iter().map(String::as_str);
    let cut_too: Vec<&str> = others.filter(|other| !fits(other)).collect();
    let is_distinct = |text: &str| {
        let others: Vec<&str> = cut_too
            .iter()
            .copied()
            .filter(|other| *other != text)
            .collect();
        let is_clear = |pieces: &[&str]| !others.iter().any(|other| is_left_of(pieces, other));
        let other_texts: Vec<&str> = among
            .iter()
            .map(String::as_str)
            .filter(|other| *other != text)
            .collect();
        let distinguished = distinguishing::cut(text, &other_texts, &fits, &is_clear);
        distinguished.or_else(|| clear(text, &fits, &is_clear))
    };
    if let Some(cut) = is_distinct(text) {
        return cut;
    }
    let ordinary = shortened(text, &fits);
    let mut identical: Vec<&str> = Vec::new();
    for other in cut_too.iter().copied() {
        let is_identical =
            other == text || (shortened(other, &fits) == ordinary && is_distinct(other).is_none());
        if is_identical && !identical.contains(&other) {
            identical.push(other);
        }
    }
    match identical.iter().position(|other| *other == text) {
        Some(index) if identical.len() > 1 => numbered(text, index + 1, &fits),
        _ => ordinary,
    }
}

/// The cut of a text that equals no other one: as usual; between words; with a third piece; anywhere.
fn clear(
    text: &str,
    fits: &impl Fn(&str) -> bool,
    is_clear: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    let ordinary = ends(text, fits);
    if is_clear(&ordinary) {
        return Some(joined(&ordinary));
    }
    let word_starts = starts(text);
    let kinds = [
        gaps(text, &word_starts),
        thirds(text, &word_starts),
        pieces_of(text),
    ];
    kinds.into_iter().find_map(|cuts| {
        let good = cuts
            .into_iter()
            .filter(|pieces| fits(&joined(pieces)) && is_clear(pieces));
        // The longest that fits; of equal ones, the one with the most similar length of both ends.
        let best = good.max_by_key(|pieces| {
            let long = pieces.iter().map(|piece| piece.len()).sum::<usize>();
            let uneven = pieces[0].len().abs_diff(pieces[pieces.len() - 1].len());
            (long, std::cmp::Reverse(uneven))
        });
        best.map(|pieces| joined(&pieces))
    })
}

/// As much of both ends as fits.
fn ends<'t>(text: &'t str, fits: &impl Fn(&str) -> bool) -> Vec<&'t str> {
    let at: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let with = |length: usize| {
        let begin = &text[..at[length.div_ceil(2)]];
        let end = at
            .get(at.len() - length / 2)
            .map_or("", |from| &text[*from..]);
        vec![begin.trim_end(), end.trim_start()]
    };
    let mut shorter = (0..at.len()).rev().map(with);
    shorter
        .find(|pieces| fits(&joined(pieces)))
        .unwrap_or_else(|| vec!["", ""])
}

fn joined(pieces: &[&str]) -> String {
    pieces.join("…")
}

/// Whether a cut could be this text's.
fn is_left_of(pieces: &[&str], text: &str) -> bool {
    let [first, between @ .., last] = pieces else {
        return false;
    };
    let inner = text.strip_prefix(first);
    let Some(mut inner) = inner.and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    between.iter().all(|piece| {
        let position = inner.find(piece);
        inner = position.map_or("", |at| &inner[at + piece.len()..]);
        position.is_some()
    })
}

/// Where words begin.
fn starts(text: &str) -> Vec<usize> {
    let mut before = true;
    let mut starts = Vec::new();
    for (at, character) in text.char_indices() {
        if before && !character.is_whitespace() {
            starts.push(at);
        }
        before = character.is_whitespace();
    }
    starts
}

/// Both ends, cut anywhere.
fn pieces_of(text: &str) -> Vec<Vec<&str>> {
    let at: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    gaps(text, &at)
}

/// What is left of a text without what lies between two of the places.
fn gaps<'t>(text: &'t str, word_starts: &[usize]) -> Vec<Vec<&'t str>> {
    let mut cuts = Vec::new();
    for (index, from) in word_starts.iter().enumerate() {
        for to in &word_starts[index + 1..] {
            cuts.push(vec![text[..*from].trim_end(), text[*to..].trim_start()]);
        }
    }
    cuts
}

/// The first word, some that follow each other, and the last one.
fn thirds<'t>(text: &'t str, word_starts: &[usize]) -> Vec<Vec<&'t str>> {
    let [_, second, inner @ .., last] = word_starts else {
        return Vec::new();
    };
    let mut cuts = Vec::new();
    for (index, from) in inner.iter().enumerate() {
        for to in &inner[index + 1..] {
            let (first, middle) = (&text[..*second], &text[*from..*to]);
            cuts.push(vec![first.trim_end(), middle.trim(), &text[*last..]]);
        }
    }
    cuts
}

fn numbered(text: &str, number: usize, fits: &impl Fn(&str) -> bool) -> String {
    let suffix = format!(" ({number})");
    let begin = ends(text, &|short: &str| fits(&format!("{short}{suffix}")));
    format!("{}{suffix}", joined(&begin))
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

    fn together(labels: &[&str], columns: usize) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let cut = |label: &String| {
            shortened_among(label, &labels, |short| short.chars().count() <= columns)
        };
        labels.iter().map(cut).collect()
    }

    const LOADS: [&str; 4] = [
        "stress none",
        "stress host flow 10.90.1.1:8080 max",
        "stress host flow 10.90.1.2:8080 max",
        "stress host flow 10.90.1.1:8080 max, host flow 10.90.1.2:8080 max",
    ];

    #[test]
    fn labels_with_equal_ends_are_cut_where_they_differ() {
        assert_eq!(
            together(&LOADS[2..], 28),
            ["stress host flow 10.90.1.2…x", "…10.90.1.1:8080 max,…"]
        );
    }

    #[test]
    fn labels_that_stand_together_stay_distinct_in_any_room() {
        let long = LOADS.map(|load| format!("limited · every 10 ms · 64 B · {load}"));
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        for labels in [LOADS.as_slice(), &long] {
            for columns in 12..90 {
                let cut = together(labels, columns);
                let kinds: std::collections::BTreeSet<&String> = cut.iter().collect();
                assert_eq!(kinds.len(), labels.len(), "{columns}: {cut:#?}");
                let fit = cut.iter().all(|label| label.chars().count() <= columns);
                assert!(fit, "{columns}: {cut:#?}");
            }
        }
    }

    #[test]
    fn labels_that_are_distinct_are_cut_as_if_they_stood_alone() {
        let labels = ["stress streaming 1450kbit/s", "stress hashing 95%, no rest"];
        assert_eq!(
            together(&labels, 14),
            labels.map(|label| shortened(label, |short| short.chars().count() <= 14))
        );
    }
}
