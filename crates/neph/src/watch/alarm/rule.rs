//! What an alarm is about, as it is typed: `path > 2ms p99 for 30s until 1ms`.
//!
//! Owns the grammar and its mistakes, each with its place.

use std::ops::Range;

use neph_capture::{Half, Sample};
use neph_model::Span;
use neph_text::{Fault, Problems, Source, did_you_mean, parse_duration};

use crate::exit::Failure;

/// Round trips whose quantile must not exceed a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// As it was typed.
    pub(super) text: String,
    pub(super) subject: Subject,
    /// More than this is too long.
    pub(super) limit: Span,
    /// At most this is well again.
    pub(super) until: Span,
    pub(super) quantile: Quantile,
    /// For how long one or the other.
    pub(super) length: Span,
}

/// Which round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Between here and servers, of the path alone.
    Path,
    /// Between here and clients, of the path alone.
    ClientPath,
    /// Of servers that answered with data.
    WithData,
}

/// A quantile by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quantile {
    name: &'static str,
    /// How many of 10,000 are at most as large.
    of_10_000: u64,
    /// Round trips that it needs, as everywhere in Nephoscope.
    pub(super) needs: u64,
}

const SUBJECTS: [(&str, Subject); 3] = [
    ("path", Subject::Path),
    ("client-path", Subject::ClientPath),
    ("with-data", Subject::WithData),
];

const QUANTILES: [Quantile; 5] = [
    quantile("p50", 5_000, 6),
    quantile("p90", 9_000, 29),
    quantile("p95", 9_500, 59),
    quantile("p99", 9_900, 299),
    quantile("p99.9", 9_990, 2_995),
];

const EXAMPLE: &str = "write for example: path > 2ms p99 for 30s";

const fn quantile(name: &'static str, of_10_000: u64, needs: u64) -> Quantile {
    Quantile {
        name,
        of_10_000,
        needs,
    }
}

impl Quantile {
    /// Whether it exceeds a limit that `longer` of `n` round trips exceed.
    pub(super) fn exceeds(self, longer: u64, n: u64) -> bool {
        let rank = (u128::from(n) * u128::from(self.of_10_000)).div_ceil(10_000);
        u128::from(n - longer) < rank
    }
}

impl Subject {
    pub(super) fn is_of(self, sample: &Sample) -> bool {
        use neph_capture::Answer;
        match self {
            Self::Path => sample.half == Half::Server && sample.answer.speaks_of_path(),
            Self::ClientPath => sample.half == Half::Client && sample.answer.speaks_of_path(),
            Self::WithData => sample.half == Half::Server && sample.answer == Answer::WithData,
        }
    }
}

/// Reads a rule.
pub(super) fn parse(text: &str) -> Result<Rule, Failure> {
    let source = Source::new("--alarm", text);
    let problems = Problems::new(&source);
    let mut words = Words {
        left: words(text),
        end: text.len(),
        problems: &problems,
    };
    let rule = words.rule(text);
    let verdict = problems.verdict(rule);
    verdict.map_err(|problems| Failure::Text(source.clone(), problems))
}

/// Words and `>`, the last first, each with its place.
fn words(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    let mut begun = None;
    let ends = text.char_indices().chain([(text.len(), ' ')]);
    for (at, letter) in ends {
        if !letter.is_whitespace() && letter != '>' {
            begun.get_or_insert(at);
            continue;
        }
        if let Some(begin) = begun.take() {
            words.push((begin..at, &text[begin..at]));
        }
        if letter == '>' {
            words.push((at..at + 1, ">"));
        }
    }
    words.reverse();
    words
}

struct Words<'a> {
    left: Vec<(Range<usize>, &'a str)>,
    end: usize,
    problems: &'a Problems<'a>,
}

impl Words<'_> {
    fn rule(&mut self, text: &str) -> Option<Rule> {
        let names = SUBJECTS.map(|(name, _)| name);
        let subject = self.one_of("what it is about", &names, |word| {
            let found = SUBJECTS.iter().find(|(name, _)| *name == word);
            found.map(|(_, subject)| *subject)
        })?;
        self.one_of("'>'", &[">"], |word| (word == ">").then_some(()))?;
        let limit = self.time("a limit")?;
        let names = QUANTILES.map(|quantile| quantile.name);
        let quantile = self.one_of("a quantile", &names, |word| {
            QUANTILES.into_iter().find(|quantile| quantile.name == word)
        })?;
        let mut length = Span::ZERO;
        let mut until = Span::from_nanos(limit.nanos() / 5 * 4);
        while let Some((place, word)) = self.left.pop() {
            match word {
                "for" => length = self.time("a time")?,
                "until" => {
                    let at = self.left.last().map(|(place, _)| place.clone());
                    until = self.time("a limit")?;
                    if until > limit {
                        let what = format!("{until} is more than {limit}, from which it is raised");
                        let fault = Fault::new(what, "write a smaller time, or none");
                        self.problems.add(at.unwrap_or(place), fault);
                        return None;
                    }
                }
                other => {
                    let what = format!("'{other}' is not known here");
                    let remedy = did_you_mean(other, &["for", "until"]);
                    self.problems.add(place, Fault::new(what, remedy));
                    return None;
                }
            }
        }
        Some(Rule {
            text: text.to_owned(),
            subject,
            limit,
            until,
            quantile,
            length,
        })
    }

    fn next(&mut self, what: &str) -> Option<(Range<usize>, &str)> {
        let next = self.left.pop();
        if next.is_none() {
            let fault = Fault::new(format!("{what} is missing"), EXAMPLE);
            self.problems.add(self.end..self.end, fault);
        }
        next
    }

    fn one_of<T>(
        &mut self,
        what: &str,
        names: &[&str],
        known: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let problems = self.problems;
        let (place, word) = self.next(what)?;
        let found = known(word);
        if found.is_none() {
            let fault = Fault::new(format!("'{word}' is not {what}"), did_you_mean(word, names));
            problems.add(place, fault);
        }
        found
    }

    fn time(&mut self, what: &str) -> Option<Span> {
        let problems = self.problems;
        let (place, word) = self.next(what)?;
        match parse_duration(word) {
            Ok(nanos) => Some(Span::from_nanos(nanos)),
            Err(fault) => {
                problems.add(place, fault);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The place and the sentence of the first mistake.
    fn mistake(text: &str) -> String {
        match parse(text) {
            Err(Failure::Text(_, problems)) => problems[0].to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_rule_says_what_it_is_about() {
        let rule = parse("path > 2ms p99 for 30s").expect("a rule");
        assert_eq!((rule.subject, rule.quantile.name), (Subject::Path, "p99"));
        assert_eq!(rule.limit, Span::from_millis(2));
        assert_eq!(rule.until, Span::from_micros(1600));
        assert_eq!(rule.length, Span::from_secs(30));
        let rule = parse("client-path>500us p50 until 400us").expect("a rule");
        assert_eq!(rule.subject, Subject::ClientPath);
        assert_eq!(
            (rule.until, rule.length),
            (Span::from_micros(400), Span::ZERO)
        );
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_a_remedy() {
        for (text, place, said) in [
            ("pat > 2ms p99", "--alarm:1:1", "did you mean 'path'?"),
            ("path < 2ms p99", "--alarm:1:6", "'<' is not '>'"),
            ("path > 2 p99", "--alarm:1:8", "unit"),
            ("path > 2ms p98", "--alarm:1:12", "'p98' is not a quantile"),
            ("path > 2ms", "--alarm:1:11", "a quantile is missing"),
            (
                "path > 2ms p99 four 3s",
                "--alarm:1:16",
                "did you mean 'for'?",
            ),
            ("path > 2ms p99 until 3ms", "--alarm:1:22", "more than"),
            ("", "--alarm:1:1", "is missing"),
        ] {
            let told = mistake(text);
            assert!(told.starts_with(place) && told.contains(said), "{told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_a_mistake(text in "\\PC{0,40}", words in prop::collection::vec(
            prop::sample::select(vec!["path", ">", "2ms", "p99", "for", "until", "1ms", "ü"]), 0..9)) {
            let _ = parse(&text);
            let _ = parse(&words.join(" "));
        }

        #[test]
        fn counting_what_is_longer_is_the_quantile_by_nearest_rank(
            mut numbers in prop::collection::vec(0_u64..20, 1..400),
            limit in 0_u64..20,
            which in 0_usize..5,
        ) {
            numbers.sort_unstable();
            let quantile = QUANTILES[which];
            let n = numbers.len() as u64;
            let rank = (n * quantile.of_10_000).div_ceil(10_000).max(1);
            let exact = numbers[usize::try_from(rank - 1).expect("small")];
            let longer = numbers.iter().filter(|number| **number > limit).count() as u64;
            prop_assert_eq!(quantile.exceeds(longer, n), exact > limit);
        }
    }
}
