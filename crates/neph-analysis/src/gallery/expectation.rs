//! What an entry expects of the sentences that neph writes, and whether they are as expected.
//!
//! Pure: findings in, judgement out.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::statement::{Statement, Topic};

/// The number of a scenario's median.
const MEDIAN: &str = "median_ms";

/// A number of a sentence's evidence, and between what it has to lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its name in the evidence, with the unit.
    pub name: String,
    /// The least that is right.
    pub low: f64,
    /// The most that is right.
    pub high: f64,
}

impl Number {
    /// Between two numbers, both included.
    pub fn between(name: &str, low: f64, high: f64) -> Self {
        let name = name.to_owned();
        Self { name, low, high }
    }

    /// So much or more.
    pub fn at_least(name: &str, low: f64) -> Self {
        Self::between(name, low, f64::INFINITY)
    }

    /// The same number in a sentence; nothing if it does not hold it.
    fn measured(&self, statement: &Statement) -> Option<f64> {
        statement.numbers.get(&self.name).copied()
    }

    fn matches(&self, statement: &Statement) -> bool {
        let measured = self.measured(statement);
        measured.is_some_and(|value| (self.low..=self.high).contains(&value))
    }
}

/// A sentence that an entry ends with.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "ExpectationToml")]
pub struct Expectation {
    /// A finding's topic, or the rule that names a cause.
    pub topic: Topic,
    /// Its subjects: all of these, and possibly more.
    pub about: Vec<String>,
    /// What makes it the sentence and not its contrary: that something is slower, by a verdict. A
    /// control must have no sentence that claims this.
    pub claim: Vec<Number>,
    /// What was calculated before anything was measured.
    pub numbers: Vec<Number>,
}

/// As an entry writes it: a number is `[least]` or `[least, most]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectationToml {
    finding: Option<String>,
    cause: Option<String>,
    median_ms: Option<[f64; 2]>,
    #[serde(default)]
    about: Vec<String>,
    #[serde(default)]
    claim: Numbers,
    #[serde(default)]
    numbers: Numbers,
}

impl TryFrom<ExpectationToml> for Expectation {
    type Error = String;

    fn try_from(written: ExpectationToml) -> Result<Self, String> {
        let topic = match (written.finding, written.cause, written.median_ms) {
            (Some(topic), None, None) => Topic::Finding(topic),
            (None, Some(rule), None) => Topic::Cause(rule),
            (None, None, Some(_)) => Topic::Median,
            _ => return Err("an expectation has finding, cause or median_ms".to_owned()),
        };
        let mut numbers = written.numbers.0;
        let median = written.median_ms;
        numbers.extend(median.map(|[low, high]| Number::between(MEDIAN, low, high)));
        Ok(Self {
            topic,
            about: written.about,
            claim: written.claim.0,
            numbers,
        })
    }
}

/// Numbers in the order in which they are written.
#[derive(Default)]
struct Numbers(Vec<Number>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names with [least] or [least, most]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        while let Some((name, ends)) = map.next_entry::<String, Vec<f64>>()? {
            numbers.push(match ends[..] {
                [low] => Number::at_least(&name, low),
                [low, high] => Number::between(&name, low, high),
                _ => return Err(A::Error::invalid_length(ends.len(), &self)),
            });
        }
        Ok(Numbers(numbers))
    }
}

/// A number as it was expected and as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedNumber {
    /// What was expected.
    pub number: Number,
    /// Absent where no sentence holds it.
    pub measured: Option<f64>,
    /// Whether it is as expected.
    pub is_as_expected: bool,
}

/// The result of an expectation.
#[derive(Clone, Debug)]
pub struct ExpectationResult<'s> {
    /// What was expected.
    pub expectation: &'s Expectation,
    /// Whether the sentence must be present.
    pub is_expected: bool,
    /// The sentence that it was found in; none if neph wrote no such sentence.
    pub statement: Option<&'s Statement>,
    /// Each of its numbers.
    pub numbers: Vec<ComparedNumber>,
    /// Whether all is as it should be.
    pub is_right: bool,
}

impl Expectation {
    /// Whether a sentence is this one, whatever its numbers are.
    fn is_claimed_by(&self, statement: &Statement) -> bool {
        let is_subject = |name: &String| statement.about.contains(name);
        statement.topic == self.topic
            && self.about.iter().all(is_subject)
            && self.claim.iter().all(|number| number.matches(statement))
    }

    /// Finds the sentence, and compares its numbers with the expected ones.
    pub fn check<'s>(&'s self, statements: &'s [Statement]) -> ExpectationResult<'s> {
        let matching_numbers =
            |statement: &&Statement| self.numbers.iter().filter(|n| n.matches(statement)).count();
        let claimed = statements
            .iter()
            .filter(|statement| self.is_claimed_by(statement));
        let statement = claimed.max_by_key(matching_numbers);
        let ranges = self.claim.iter().chain(&self.numbers);
        let numbers: Vec<ComparedNumber> = ranges
            .map(|number| ComparedNumber {
                number: number.clone(),
                measured: statement.and_then(|statement| number.measured(statement)),
                is_as_expected: statement.is_some_and(|statement| number.matches(statement)),
            })
            .collect();
        ExpectationResult {
            expectation: self,
            is_expected: true,
            statement,
            is_right: statement.is_some() && numbers.iter().all(|number| number.is_as_expected),
            numbers,
        }
    }

    /// Checks that the sentence is absent, as its cause is.
    pub fn check_absent<'s>(&'s self, statements: &'s [Statement]) -> ExpectationResult<'s> {
        let statement = statements
            .iter()
            .find(|statement| self.is_claimed_by(statement));
        ExpectationResult {
            expectation: self,
            is_expected: false,
            statement,
            numbers: Vec::new(),
            is_right: statement.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slower_expectation() -> Expectation {
        let text = "finding = \"endpoint\"\nabout = [\"REST\", \"persistent\"]\n\
                    claim = { slower = [1] }\nnumbers = { shift_ms = [7.5, 9.0] }\n";
        toml::from_str(text).expect("as entries write it")
    }

    fn statement(about: [&str; 2], slower: f64, shift: f64) -> Statement {
        Statement {
            topic: Topic::Finding("endpoint".to_owned()),
            about: about.map(str::to_owned).to_vec(),
            text: "a sentence".to_owned(),
            numbers: [
                ("slower".to_owned(), slower),
                ("shift_ms".to_owned(), shift),
            ]
            .into(),
        }
    }

    #[test]
    fn a_result_is_right_if_the_sentence_is_present_with_the_expected_numbers() {
        let subjects = ["REST", "persistent"];
        let right = [statement(subjects, 1.0, 8.1)];
        assert!(slower_expectation().check(&right).is_right);
        let too_much = [statement(subjects, 1.0, 12.0)];
        let expectation = slower_expectation();
        let result = expectation.check(&too_much);
        assert!(!result.is_right && result.statement.is_some());
        assert_eq!(
            (result.numbers[1].measured, result.numbers[1].is_as_expected),
            (Some(12.0), false)
        );
        // About something else, or without the verdict, it is another sentence.
        let other_statements = [
            statement(["REST, TLS 1.2", "persistent"], 1.0, 8.1),
            statement(subjects, 0.0, 8.1),
        ];
        let result = expectation.check(&other_statements);
        assert!(!result.is_right && result.statement.is_none());
        assert_eq!(result.numbers[0].measured, None);
    }

    #[test]
    fn a_cause_does_not_match_a_finding_of_that_name() {
        let cause = Statement {
            topic: Topic::Cause("endpoint".to_owned()),
            ..statement(["REST", "persistent"], 1.0, 8.1)
        };
        assert!(
            !slower_expectation()
                .check(std::slice::from_ref(&cause))
                .is_right
        );
        assert!(slower_expectation().check_absent(&[cause]).is_right);
    }

    #[test]
    fn of_several_matching_sentences_the_best_one_is_checked() {
        let subjects = ["REST", "persistent"];
        let statements = [
            statement(subjects, 1.0, 30.0),
            statement(subjects, 1.0, 8.0),
        ];
        assert!(slower_expectation().check(&statements).is_right);
    }

    #[test]
    fn a_control_is_right_without_the_claim_for_any_numbers() {
        let subjects = ["REST", "persistent"];
        let equal = [statement(subjects, 0.0, 8.1)];
        assert!(slower_expectation().check_absent(&equal).is_right);
        assert!(slower_expectation().check_absent(&[]).is_right);
        let claims = [statement(subjects, 1.0, 0.3)];
        let expectation = slower_expectation();
        let result = expectation.check_absent(&claims);
        assert!(!result.is_right && result.statement.is_some());
    }
}
