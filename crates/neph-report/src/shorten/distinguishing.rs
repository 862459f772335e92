//! Cuts that keep what distinguishes a text from the others that it stands among.

/// The most runs of shared words that are tried in all combinations.
const MAX_RUNS: usize = 8;

/// The text without some of what all the others have too; `None` where that is not short enough, or nothing
/// in it distinguishes it.
pub(super) fn cut(
    text: &str,
    others: &[&str],
    fits: &impl Fn(&str) -> bool,
    is_unique: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    cut_words(text, others, fits, is_unique).or_else(|| cut_shared_ends(text, others, fits))
}

/// A run of words that all texts have, or of words that distinguish this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordRun<'t> {
    text: &'t str,
    is_shared: bool,
}

fn word_runs<'t>(text: &'t str, others: &[&str]) -> Vec<WordRun<'t>> {
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let mut word_end = 0;
    for word in text.split_whitespace() {
        let word_start = word_end + text[word_end..].find(word).unwrap_or(0);
        word_end = word_start + word.len();
        let has_word = |other: &&str| {
            other
                .split_whitespace()
                .any(|other_word| other_word == word)
        };
        let is_shared = others.iter().all(has_word);
        match runs.last_mut() {
            Some((_, end, is_run_shared)) if *is_run_shared == is_shared => *end = word_end,
            _ => runs.push((word_start, word_end, is_shared)),
        }
    }
    let word_run = |(begin, end, is_shared): (usize, usize, bool)| WordRun {
        text: &text[begin..end],
        is_shared,
    };
    runs.into_iter().map(word_run).collect()
}

/// Leaves out whole runs of shared words: of what fits the longest.
fn cut_words(
    text: &str,
    others: &[&str],
    fits: &impl Fn(&str) -> bool,
    is_unique: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    let runs = word_runs(text, others);
    let shared_runs = runs.iter().filter(|run| run.is_shared).count();
    if shared_runs == runs.len() || !(1..=MAX_RUNS).contains(&shared_runs) {
        return None;
    }
    let cuts = (1_u32..1 << shared_runs).map(|omitted_runs| {
        let mut pieces = vec![String::new()];
        let mut shared_index = 0;
        for run in &runs {
            let is_omitted = run.is_shared && omitted_runs >> shared_index & 1 == 1;
            shared_index += u32::from(run.is_shared);
            if is_omitted {
                pieces.push(String::new());
            } else if let Some(last) = pieces.last_mut() {
                let gap = if last.is_empty() { "" } else { " " };
                last.push_str(&format!("{gap}{}", run.text));
            }
        }
        pieces
    });
    let suitable = cuts.filter(|pieces| {
        let piece_texts: Vec<&str> = pieces.iter().map(String::as_str).collect();
        fits(&pieces.join("…")) && is_unique(&piece_texts)
    });
    let best = suitable.max_by_key(|pieces| pieces.iter().map(String::len).sum::<usize>());
    best.map(|pieces| pieces.join("…"))
}

/// Leaves out characters with which all texts begin, and then some with which all end.
fn cut_shared_ends(text: &str, others: &[&str], fits: &impl Fn(&str) -> bool) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let min_of_others = |shared_length: &dyn Fn(&str) -> usize| {
        let lengths = others.iter().map(|other| shared_length(other));
        lengths.min()
    };
    let prefix_length = min_of_others(&|other| {
        let pairs = characters.iter().zip(other.chars());
        pairs
            .take_while(|(character, other)| **character == *other)
            .count()
    })?;
    let suffix_length = min_of_others(&|other| {
        let pairs = characters.iter().rev().zip(other.chars().rev());
        pairs
            .take_while(|(character, other)| **character == *other)
            .count()
    })?;
    let suffix_length = suffix_length.min(characters.len() - prefix_length);
    if prefix_length + suffix_length >= characters.len() {
        return None;
    }
    let with_ends = |kept_prefix: usize, kept_suffix: usize| {
        let piece = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
        let suffix_start = characters.len() - suffix_length;
        // What distinguishes, with as much of both shared ends as is kept: of the beginning its first
        // characters, of the end its last.
        let mut out = piece(0, kept_prefix);
        if kept_prefix < prefix_length {
            out.push('…');
        }
        out.push_str(&piece(prefix_length, suffix_start));
        if kept_suffix < suffix_length {
            out.push('…');
        }
        out.push_str(&piece(characters.len() - kept_suffix, characters.len()));
        out
    };
    (0..prefix_length + suffix_length).rev().find_map(|kept| {
        let kept_prefix = prefix_length
            .min(kept.div_ceil(2))
            .max(kept.saturating_sub(suffix_length));
        let cut = with_ends(kept_prefix, kept - kept_prefix);
        fits(&cut).then_some(cut)
    })
}

#[cfg(test)]
mod tests {
    use super::super::shorten_among;

    fn shorten_all(labels: &[&str], columns: usize) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let cut = |label: &String| {
            shorten_among(label, &labels, |short| short.chars().count() <= columns)
        };
        labels.iter().map(cut).collect()
    }

    #[test]
    fn shortened_labels_keep_the_parts_that_differ() {
        let labels = [
            "limited · every 10 ms · 64 B · stress host flow 10.90.1.1:8080 max",
            "limited · every 25 ms · 64 B · stress host flow 10.90.1.2:8080 max",
            "limited · every 10 ms · 64 B · stress host flow 10.90.1.2:8080 max",
        ];
        for columns in 22..60 {
            let cut_labels = shorten_all(&labels, columns);
            for (cut, differing_parts) in
                cut_labels
                    .iter()
                    .zip([["10", "1.1:8080"], ["25", "1.2:8080"], ["10", "1.2:8080"]])
            {
                assert!(
                    differing_parts.iter().all(|part| cut.contains(part)),
                    "{columns}: {cut}"
                );
                assert!(cut.chars().count() <= columns, "{columns}: {cut}");
            }
        }
    }

    #[test]
    fn names_that_differ_in_the_middle_keep_their_middle() {
        let labels = [
            "reflector-eu-west-1a-production-primary",
            "reflector-eu-west-1b-production-primary",
            "reflector-eu-north-2-production-primary",
        ];
        let cut_labels = shorten_all(&labels, 20);
        let expected = ["west-1a", "west-1b", "north-2"];
        for (cut, expected) in cut_labels.iter().zip(expected) {
            assert!(cut.contains(expected) && cut.chars().count() <= 20, "{cut}");
        }
    }

    #[test]
    fn a_number_that_differs_is_never_cut() {
        let labels = [
            "stress streaming 1450kbit/s beside",
            "stress streaming 2450kbit/s beside",
        ];
        assert_eq!(shorten_all(&labels, 12), ["…1450kbit/s…", "…2450kbit/s…"]);
    }
}
