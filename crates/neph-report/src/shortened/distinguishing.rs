//! Cuts that keep what distinguishes a text from the others that it stands among.

/// The most runs of shared words that are tried in all combinations.
const MAX_RUNS: usize = 8;

/// The text without some of what all the others have too; `None` where that is not short enough, or nothing
/// in it distinguishes it.
pub(super) fn cut(
    text: &str,
    others: &[&str],
    fits: &impl Fn(&str) -> bool,
    is_clear: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    cut_words(text, others, fits, is_clear).or_else(|| ends(text, others, fits))
}

/// A run of words that all texts have, or of words that distinguish this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run<'t> {
    text: &'t str,
    is_shared: bool,
}

fn runs<'t>(text: &'t str, others: &[&str]) -> Vec<Run<'t>> {
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let mut from = 0;
    for word in text.split_whitespace() {
        let begin = from + text[from..].find(word).unwrap_or(0);
        from = begin + word.len();
        let is_in = |other: &&str| {
            other
                .split_whitespace()
                .any(|other_word| other_word == word)
        };
        let is_shared = others.iter().all(is_in);
        match runs.last_mut() {
            Some((_, end, before)) if *before == is_shared => *end = from,
            _ => runs.push((begin, from, is_shared)),
        }
    }
    let run = |(begin, end, is_shared): (usize, usize, bool)| Run {
        text: &text[begin..end],
        is_shared,
    };
    runs.into_iter().map(run).collect()
}

/// Leaves out whole runs of shared words: of what fits the longest.
fn cut_words(
    text: &str,
    others: &[&str],
    fits: &impl Fn(&str) -> bool,
    is_clear: &impl Fn(&[&str]) -> bool,
) -> Option<String> {
    let runs = runs(text, others);
    let shared = runs.iter().filter(|run| run.is_shared).count();
    if shared == runs.len() || !(1..=MAX_RUNS).contains(&shared) {
        return None;
    }
    let cuts = (1_u32..1 << shared).map(|left_out| {
        let mut pieces = vec![String::new()];
        let mut shared_index = 0;
        for run in &runs {
            let is_out = run.is_shared && left_out >> shared_index & 1 == 1;
            shared_index += u32::from(run.is_shared);
            if is_out {
                pieces.push(String::new());
            } else if let Some(last) = pieces.last_mut() {
                let gap = if last.is_empty() { "" } else { " " };
                last.push_str(&format!("{gap}{}", run.text));
            }
        }
        pieces
    });
    let good = cuts.filter(|pieces| {
        let borrowed: Vec<&str> = pieces.iter().map(String::as_str).collect();
        fits(&pieces.join("…")) && is_clear(&borrowed)
    });
    let best = good.max_by_key(|pieces| pieces.iter().map(String::len).sum::<usize>());
    best.map(|pieces| pieces.join("…"))
}

/// Leaves out characters with which all texts begin, and then some with which all end.
fn ends(text: &str, others: &[&str], fits: &impl Fn(&str) -> bool) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let shared = |same: &dyn Fn(&str) -> usize| others.iter().map(|other| same(other)).min();
    let begin = shared(&|other| {
        let pairs = characters.iter().zip(other.chars());
        pairs
            .take_while(|(character, other)| **character == *other)
            .count()
    })?;
    let end = shared(&|other| {
        let pairs = characters.iter().rev().zip(other.chars().rev());
        pairs
            .take_while(|(character, other)| **character == *other)
            .count()
    })?;
    let end = end.min(characters.len() - begin);
    if begin + end >= characters.len() {
        return None;
    }
    let with_ends = |before: usize, after: usize| {
        let piece = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
        let last = characters.len() - end;
        // What distinguishes, with as much of both shared ends as is kept: of the beginning its first
        // characters, of the end its last.
        let mut out = piece(0, before);
        if before < begin {
            out.push('…');
        }
        out.push_str(&piece(begin, last));
        if after < end {
            out.push('…');
        }
        out.push_str(&piece(characters.len() - after, characters.len()));
        out
    };
    let total = begin + end;
    (0..total).rev().find_map(|room| {
        let before = begin.min(room.div_ceil(2)).max(room.saturating_sub(end));
        let cut = with_ends(before, room - before);
        fits(&cut).then_some(cut)
    })
}

#[cfg(test)]
mod tests {
    use super::super::shortened_among;

    fn together(labels: &[&str], columns: usize) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let cut = |label: &String| {
            shortened_among(label, &labels, |short| short.chars().count() <= columns)
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
            let cut = together(&labels, columns);
            for (cut, differs) in
                cut.iter()
                    .zip([["10", "1.1:8080"], ["25", "1.2:8080"], ["10", "1.2:8080"]])
            {
                assert!(
                    differs.iter().all(|part| cut.contains(part)),
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
        let cut = together(&labels, 20);
        let expected = ["west-1a", "west-1b", "north-2"];
        for (cut, expected) in cut.iter().zip(expected) {
            assert!(cut.contains(expected) && cut.chars().count() <= 20, "{cut}");
        }
    }

    #[test]
    fn a_number_that_differs_is_never_cut() {
        let labels = [
            "stress streaming 1450kbit/s beside",
            "stress streaming 2450kbit/s beside",
        ];
        assert_eq!(together(&labels, 12), ["…1450kbit/s…", "…2450kbit/s…"]);
    }
}
