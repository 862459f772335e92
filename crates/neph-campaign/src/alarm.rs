//! What an alarm is about, as it is typed: `path > 2ms p99 for 30s until 1ms`.
//!
//! Owns the grammar and its mistakes, each with its place. The caller defines the subjects of a rule. The
//! rule and its evaluation are [`neph_model::alarm`].

use std::ops::Range;

use neph_model::Span;
use neph_model::alarm::{Quantile, Rule};
use neph_text::{Fault, Spanned, did_you_mean, parse_duration};

/// Reads a rule about one of `subjects`, whose names may have several words.
///
/// # Errors
/// The first mistake, with its place in `text`.
pub fn parse<S: Clone>(text: &str, subjects: &[(&str, S)]) -> Result<Rule<S>, Spanned<Fault>> {
    let mut parser = AlarmParser {
        words: split_words(text),
        end: text.len(),
        example: subjects.first().map_or("", |(name, _)| name),
    };
    parser.parse_rule(text, subjects)
}

/// Words and `>`, the last first, each with its place.
fn split_words(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    let mut word_start = None;
    let characters = text.char_indices().chain([(text.len(), ' ')]);
    for (offset, character) in characters {
        if !character.is_whitespace() && character != '>' {
            word_start.get_or_insert(offset);
            continue;
        }
        if let Some(start) = word_start.take() {
            words.push((start..offset, &text[start..offset]));
        }
        if character == '>' {
            words.push((offset..offset + 1, ">"));
        }
    }
    words.reverse();
    words
}

struct AlarmParser<'a> {
    words: Vec<(Range<usize>, &'a str)>,
    end: usize,
    /// What a rule may be about.
    example: &'a str,
}

fn fault<T>(
    span: Range<usize>,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<T, Spanned<Fault>> {
    let fault = Fault::new(message, remedy);
    Err(Spanned { value: fault, span })
}

impl<'a> AlarmParser<'a> {
    fn parse_rule<S: Clone>(
        &mut self,
        text: &str,
        subjects: &[(&str, S)],
    ) -> Result<Rule<S>, Spanned<Fault>> {
        let subject = self.parse_subject(subjects)?;
        self.parse_one_of("'>'", &[">"], |word| (word == ">").then_some(()))?;
        let limit = self.parse_time("a limit")?.value;
        let names = Quantile::ALL.map(|quantile| quantile.name);
        let quantile = self.parse_one_of("a quantile", &names, Quantile::from_name)?;
        let mut rule = Rule {
            text: text.to_owned(),
            subject,
            limit,
            clear_limit: Span::from_nanos(limit.nanos() / 5 * 4),
            quantile,
            hold_duration: Span::ZERO,
        };
        while let Some((range, word)) = self.words.pop() {
            match word {
                "for" => rule.hold_duration = self.parse_time("a time")?.value,
                "until" => rule.clear_limit = self.parse_clear_limit(limit)?,
                unknown => {
                    let message = format!("'{unknown}' is not known here");
                    return fault(range, message, did_you_mean(unknown, &["for", "until"]));
                }
            }
        }
        Ok(rule)
    }

    /// All before `>`; without one, the first word.
    fn parse_subject<S: Clone>(&mut self, subjects: &[(&str, S)]) -> Result<S, Spanned<Fault>> {
        const SUBJECT_TEXT: &str = "what it is about";
        let mut upcoming_words = self.words.iter().rev();
        let count = upcoming_words
            .position(|(_, word)| *word == ">")
            .unwrap_or(1);
        if count == 0 {
            return self.missing_fault(SUBJECT_TEXT);
        }
        let (first_range, word) = self.next_word(SUBJECT_TEXT)?;
        let mut name = word.to_owned();
        let mut last_end = first_range.end;
        for _ in 1..count {
            let (range, word) = self.next_word(SUBJECT_TEXT)?;
            last_end = range.end;
            name = name + " " + word;
        }
        let is_same_name = |known: &str| known.split_whitespace().eq(name.split(' '));
        let known_subject = subjects.iter().find(|(known, _)| is_same_name(known));
        known_subject.map_or_else(
            || {
                let names: Vec<&str> = subjects.iter().map(|(name, _)| *name).collect();
                let message = format!("'{name}' is not {SUBJECT_TEXT}");
                fault(
                    first_range.start..last_end,
                    message,
                    did_you_mean(&name, &names),
                )
            },
            |(_, subject)| Ok(subject.clone()),
        )
    }

    fn parse_clear_limit(&mut self, limit: Span) -> Result<Span, Spanned<Fault>> {
        let until = self.parse_time("a limit")?;
        if until.value > limit {
            let message = format!(
                "{} is more than {limit}, from which it is raised",
                until.value
            );
            return fault(until.span, message, "write a smaller time, or none");
        }
        Ok(until.value)
    }

    fn missing_fault<T>(&self, expected: &str) -> Result<T, Spanned<Fault>> {
        let position = self.words.last().map_or(self.end, |(range, _)| range.start);
        let remedy = format!("write for example: {} > 2ms p99 for 30s", self.example);
        fault(position..position, format!("{expected} is missing"), remedy)
    }

    fn next_word(&mut self, expected: &str) -> Result<(Range<usize>, &'a str), Spanned<Fault>> {
        match self.words.pop() {
            Some(word) => Ok(word),
            None => self.missing_fault(expected),
        }
    }

    fn parse_one_of<T>(
        &mut self,
        expected: &str,
        names: &[&str],
        parse_word: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Spanned<Fault>> {
        let (range, word) = self.next_word(expected)?;
        parse_word(word).map_or_else(
            || {
                let remedy = did_you_mean(word, names);
                fault(range, format!("'{word}' is not {expected}"), remedy)
            },
            Ok,
        )
    }

    fn parse_time(&mut self, expected: &str) -> Result<Spanned<Span>, Spanned<Fault>> {
        let (span, word) = self.next_word(expected)?;
        match parse_duration(word) {
            Ok(nanos) => Ok(Spanned {
                value: Span::from_nanos(nanos),
                span,
            }),
            Err(value) => Err(Spanned { value, span }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUBJECTS: [(&str, u8); 4] = [
        ("path", 1),
        ("client-path", 2),
        ("a - b", 3),
        ("a - b  back", 4),
    ];

    fn parse(text: &str) -> Result<Rule<u8>, Spanned<Fault>> {
        super::parse(text, &SUBJECTS)
    }

    #[test]
    fn alarm_rules_are_parsed_into_their_parts() {
        let rule = parse("path > 2ms p99 for 30s").expect("a rule");
        assert_eq!((rule.subject, rule.quantile.name), (1, "p99"));
        assert_eq!(rule.limit, Span::from_millis(2));
        assert_eq!(rule.clear_limit, Span::from_micros(1600));
        assert_eq!(rule.hold_duration, Span::from_secs(30));
        let rule = parse("client-path>500us p50 until 400us").expect("a rule");
        assert_eq!(rule.subject, 2);
        assert_eq!(
            (rule.clear_limit, rule.hold_duration),
            (Span::from_micros(400), Span::ZERO)
        );
    }

    #[test]
    fn a_name_may_have_several_words() {
        let subject = |text: &str| parse(text).expect("a rule").subject;
        assert_eq!(subject("a - b > 2ms p99"), 3);
        assert_eq!(subject(" a -  b back> 2ms p99"), 4);
        let wrong = parse("a - c > 2ms p99").expect_err("no such");
        assert_eq!(wrong.span, 0..5);
        assert!(wrong.value.remedy.contains("'a - b'"), "{wrong:?}");
    }

    #[test]
    fn a_mistake_in_an_alarm_rule_is_reported_with_place_and_remedy() {
        for (text, at, printed) in [
            ("pat > 2ms p99", 0, "did you mean 'path'?"),
            ("path < 2ms p99", 5, "'<' is not '>'"),
            ("path > 2 p99", 7, "unit"),
            ("path > 2ms p98", 11, "'p98' is not a quantile"),
            ("path > 2ms", 10, "a quantile is missing"),
            ("path > 2ms p99 four 3s", 15, "did you mean 'for'?"),
            ("path > 2ms p99 until 3ms", 21, "more than"),
            ("", 0, "is missing; write for example: path > 2ms"),
            ("> 2ms p99", 0, "what it is about is missing"),
        ] {
            let Spanned { value, span } = parse(text).expect_err("a mistake");
            let message = format!("{}; {}", value.message, value.remedy);
            assert!(
                span.start == at && message.contains(printed),
                "{span:?} {message}"
            );
        }
    }

    #[test]
    fn quantiles_need_as_many_samples_as_neph_stats_requires() {
        for quantile in Quantile::ALL {
            let needs = neph_stats::quantile_needs(quantile.share());
            let needs = needs.map(|needs| needs as u64);
            assert_eq!(needs, Ok(quantile.needs), "{}", quantile.name);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_as_a_rule_or_refused(text in "\\PC{0,40}", words in prop::collection::vec(
            prop::sample::select(vec!["path", ">", "2ms", "p99", "for", "until", "1ms", "ü", "a", "-"]), 0..9)) {
            let _ = parse(&text);
            let _ = parse(&words.join(" "));
        }
    }
}
