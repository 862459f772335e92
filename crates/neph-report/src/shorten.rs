//! Texts that are too long for their place.
//!
//! Owns what is left out. Of labels that are shown together, the common parts are left out first, never the
//! differences (see `distinguishing`). If that is not enough, the texts are cut and stay distinct. Labels of
//! one figure have the same beginning and differ at their end, or the other way round.

mod distinguishing;

/// The text, or as much of its two ends as fits with an ellipsis between them.
pub(crate) fn shorten(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    join_pieces(&cut_middle(text, &fits))
}

/// As [`shorten`], for one of several texts: the result differs from every other shortened text.
/// Texts that are equal after shortening are numbered.
pub(crate) fn shorten_among(text: &str, labels: &[String], fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let others = labels.iter().map(String::as_str);
    let others_to_cut: Vec<&str> = others.filter(|other| !fits(other)).collect();
    let distinct_cut_of = |text: &str| {
        let ambiguous: Vec<&str> = others_to_cut
            .iter()
            .copied()
            .filter(|other| *other != text)
            .collect();
        let is_unique = |pieces: &[&str]| {
            let mut others = ambiguous.iter();
            !others.any(|other| can_be_cut_from(pieces, other))
        };
        let other_texts: Vec<&str> = labels
            .iter()
            .map(String::as_str)
            .filter(|other| *other != text)
            .collect();
        let distinguishing = distinguishing::cut(text, &other_texts, &fits, &is_unique);
        distinguishing.or_else(|| distinct_cut(text, &fits, &is_unique))
    };
    if let Some(cut) = distinct_cut_of(text) {
        return cut;
    }
    let plain_cut = shorten(text, &fits);
    let mut identical: Vec<&str> = Vec::new();
    for other in others_to_cut.iter().copied() {
        let is_identical = other == text
            || (shorten(other, &fits) == plain_cut && distinct_cut_of(other).is_none());
        if is_identical && !identical.contains(&other) {
            identical.push(other);
        }
    }
    match identical.iter().position(|other| *other == text) {
        Some(index) if identical.len() > 1 => shorten_with_number(text, index + 1, &fits),
        _ => plain_cut,
    }
}

/// The cut of a text that equals no other one: as usual; between words; with a third piece; anywhere.
fn distinct_cut(
    text: &str,
    fits: &impl Fn(&str) -> bool,
    is_unique: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    let plain_cut = cut_middle(text, fits);
    if is_unique(&plain_cut) {
        return Some(join_pieces(&plain_cut));
    }
    let word_starts = find_word_starts(text);
    let candidates = [
        cuts_with_one_gap(text, &word_starts),
        cuts_with_two_gaps(text, &word_starts),
        cuts_anywhere(text),
    ];
    candidates.into_iter().find_map(|cuts| {
        let suitable = cuts
            .into_iter()
            .filter(|pieces| fits(&join_pieces(pieces)) && is_unique(pieces));
        // The longest that fits; of equal ones, the one with the most similar length of both ends.
        let best = suitable.max_by_key(|pieces| {
            let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
            let imbalance = pieces[0].len().abs_diff(pieces[pieces.len() - 1].len());
            (length, std::cmp::Reverse(imbalance))
        });
        best.map(|pieces| join_pieces(&pieces))
    })
}

/// As much of both ends as fits, in whole words as far as an end has some.
fn cut_middle<'t>(text: &'t str, fits: &impl Fn(&str) -> bool) -> Vec<&'t str> {
    let offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
    let cut_to_length = |length: usize| {
        let begin_end = offsets[length.div_ceil(2)];
        let end_start = offsets.get(offsets.len() - length / 2);
        let end_start = end_start.copied().unwrap_or(text.len());
        vec![
            whole_words_before(text, begin_end),
            whole_words_after(text, end_start),
        ]
    };
    let mut cuts = (0..offsets.len()).rev().map(cut_to_length);
    cuts.find(|pieces| fits(&join_pieces(pieces)))
        .unwrap_or_else(|| vec!["", ""])
}

/// The separators of labels, which mean nothing at a cut.
const SEPARATORS: [char; 3] = [' ', '·', ','];

fn whole_words_before(text: &str, end: usize) -> &str {
    let piece = &text[..end];
    let is_whole = text[end..].starts_with(SEPARATORS);
    let whole_words = if is_whole {
        Some(end)
    } else {
        piece.rfind(' ')
    };
    let whole_words = whole_words.map(|end| piece[..end].trim_end_matches(SEPARATORS));
    whole_words
        .filter(|words| !words.is_empty())
        .unwrap_or(piece)
}

fn whole_words_after(text: &str, start: usize) -> &str {
    let piece = &text[start..];
    let is_whole = text[..start].ends_with(SEPARATORS);
    let whole_words = if is_whole { Some(0) } else { piece.find(' ') };
    let whole_words = whole_words.map(|start| piece[start..].trim_start_matches(SEPARATORS));
    whole_words
        .filter(|words| !words.is_empty())
        .unwrap_or(piece)
}

fn join_pieces(pieces: &[&str]) -> String {
    pieces.join("…")
}

/// Whether these pieces of a cut could be pieces of this text.
fn can_be_cut_from(pieces: &[&str], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else {
        return false;
    };
    let inner = text.strip_prefix(first);
    let Some(mut inner) = inner.and_then(|text| text.strip_suffix(last)) else {
        return false;
    };
    middle.iter().all(|piece| {
        let offset = inner.find(piece);
        inner = offset.map_or("", |offset| &inner[offset + piece.len()..]);
        offset.is_some()
    })
}

/// Where words begin.
fn find_word_starts(text: &str) -> Vec<usize> {
    let mut is_after_whitespace = true;
    let mut word_starts = Vec::new();
    for (offset, character) in text.char_indices() {
        if is_after_whitespace && !character.is_whitespace() {
            word_starts.push(offset);
        }
        is_after_whitespace = character.is_whitespace();
    }
    word_starts
}

/// Both ends, cut anywhere.
fn cuts_anywhere(text: &str) -> Vec<Vec<&str>> {
    let offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
    cuts_with_one_gap(text, &offsets)
}

/// What is left of a text without what lies between two of the offsets.
fn cuts_with_one_gap<'t>(text: &'t str, offsets: &[usize]) -> Vec<Vec<&'t str>> {
    let mut cuts = Vec::new();
    for (index, from) in offsets.iter().enumerate() {
        for to in &offsets[index + 1..] {
            cuts.push(vec![text[..*from].trim_end(), text[*to..].trim_start()]);
        }
    }
    cuts
}

/// The first word, some that follow each other, and the last one.
fn cuts_with_two_gaps<'t>(text: &'t str, word_starts: &[usize]) -> Vec<Vec<&'t str>> {
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

fn shorten_with_number(text: &str, number: usize, fits: &impl Fn(&str) -> bool) -> String {
    let suffix = format!(" ({number})");
    let pieces = cut_middle(text, &|short: &str| fits(&format!("{short}{suffix}")));
    format!("{}{suffix}", join_pieces(&pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_differ_at_one_end_differ_when_they_are_cut() {
        let cut = |text: &str| shorten(text, |short| short.chars().count() <= 14);
        assert_eq!(cut("stress none"), "stress none");
        assert_eq!(cut("stress streaming 1450kbit/s"), "stress…0kbit/s");
        assert_eq!(
            cut("stress streaming 1450kbit/s, hashing 95%"),
            "stress…95%"
        );
        assert_eq!(cut("to ams · every 10 ms"), "to ams…10 ms");
        assert_eq!(shorten("long", |_| false), "…");
    }

    fn shorten_all(labels: &[&str], columns: usize) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let cut = |label: &String| {
            shorten_among(label, &labels, |short| short.chars().count() <= columns)
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
            shorten_all(&LOADS[2..], 28),
            ["stress host flow 10.90.1.2…x", "…10.90.1.1:8080 max,…"]
        );
    }

    #[test]
    fn labels_of_one_figure_stay_distinct_at_any_width() {
        let long_labels = LOADS.map(|load| format!("limited · every 10 ms · 64 B · {load}"));
        let long_labels: Vec<&str> = long_labels.iter().map(String::as_str).collect();
        for labels in [LOADS.as_slice(), &long_labels] {
            for columns in 12..90 {
                let cut = shorten_all(labels, columns);
                let distinct: std::collections::BTreeSet<&String> = cut.iter().collect();
                assert_eq!(distinct.len(), labels.len(), "{columns}: {cut:#?}");
                let all_fit = cut.iter().all(|label| label.chars().count() <= columns);
                assert!(all_fit, "{columns}: {cut:#?}");
            }
        }
    }

    #[test]
    fn labels_that_stay_distinct_are_cut_like_a_single_label() {
        let labels = ["stress streaming 1450kbit/s", "stress hashing 95%, no rest"];
        assert_eq!(
            shorten_all(&labels, 14),
            labels.map(|label| shorten(label, |short| short.chars().count() <= 14))
        );
    }
}
