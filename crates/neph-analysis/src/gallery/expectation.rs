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

    fn holds(&self, statement: &Statement) -> bool {
        let measured = self.measured(statement);
        measured.is_some_and(|value| (self.low..=self.high).contains(&value))
    }
}

/// A sentence that an entry ends with.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "AsWritten")]
pub struct Expectation {
    /// A finding's topic, or the rule that names a cause.
    pub topic: Topic,
    /// What it speaks of: all of these, and maybe more.
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
struct AsWritten {
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

impl TryFrom<AsWritten> for Expectation {
    type Error = String;

    fn try_from(written: AsWritten) -> Result<Self, String> {
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
        deserializer.deserialize_map(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
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
pub struct Compared {
    /// What was expected.
    pub number: Number,
    /// Absent where no sentence holds it.
    pub measured: Option<f64>,
    /// Whether it is as expected.
    pub holds: bool,
}

/// What became of an expectation.
#[derive(Clone, Debug)]
pub struct ExpectationResult<'s> {
    /// What was expected.
    pub expectation: &'s Expectation,
    /// Whether the sentence is to be there.
    pub is_wanted: bool,
    /// The sentence that it was found in; none if neph wrote no such sentence.
    pub statement: Option<&'s Statement>,
    /// Each of its numbers.
    pub numbers: Vec<Compared>,
    /// Whether all is as it should be.
    pub is_right: bool,
}

impl Expectation {
    /// Whether a sentence is this one, whatever its numbers are.
    fn is_claimed_by(&self, statement: &Statement) -> bool {
        let speaks_of = |name: &String| statement.about.contains(name);
        statement.topic == self.topic
            && self.about.iter().all(speaks_of)
            && self.claim.iter().all(|number| number.holds(statement))
    }

    /// Looks for the sentence, and holds its numbers against what was calculated.
    pub fn check<'s>(&'s self, everything: &'s [Statement]) -> ExpectationResult<'s> {
        let right_numbers =
            |statement: &&Statement| self.numbers.iter().filter(|n| n.holds(statement)).count();
        let claimed = everything
            .iter()
            .filter(|statement| self.is_claimed_by(statement));
        let statement = claimed.max_by_key(right_numbers);
        let ranges = self.claim.iter().chain(&self.numbers);
        let numbers: Vec<Compared> = ranges
            .map(|number| Compared {
                number: number.clone(),
                measured: statement.and_then(|statement| number.measured(statement)),
                holds: statement.is_some_and(|statement| number.holds(statement)),
            })
            .collect();
        ExpectationResult {
            expectation: self,
            is_wanted: true,
            statement,
            is_right: statement.is_some() && numbers.iter().all(|number| number.holds),
            numbers,
        }
    }

    /// Makes sure that the sentence is absent, as where its cause is.
    pub fn check_absent<'s>(&'s self, everything: &'s [Statement]) -> ExpectationResult<'s> {
        let statement = everything
            .iter()
            .find(|statement| self.is_claimed_by(statement));
        ExpectationResult {
            expectation: self,
            is_wanted: false,
            statement,
            numbers: Vec::new(),
            is_right: statement.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slower() -> Expectation {
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
    fn a_sentence_is_right_if_it_is_there_and_its_numbers_are_as_calculated() {
        let subjects = ["REST", "persistent"];
        let right = [statement(subjects, 1.0, 8.1)];
        assert!(slower().check(&right).is_right);
        let too_much = [statement(subjects, 1.0, 12.0)];
        let meant = slower();
        let result = meant.check(&too_much);
        assert!(!result.is_right && result.statement.is_some());
        assert_eq!(
            (result.numbers[1].measured, result.numbers[1].holds),
            (Some(12.0), false)
        );
        // About something else, or without the verdict, it is another sentence.
        let other_statements = [
            statement(["REST, TLS 1.2", "persistent"], 1.0, 8.1),
            statement(subjects, 0.0, 8.1),
        ];
        let result = meant.check(&other_statements);
        assert!(!result.is_right && result.statement.is_none());
        assert_eq!(result.numbers[0].measured, None);
    }

    #[test]
    fn a_cause_is_no_finding_of_that_name() {
        let cause = Statement {
            topic: Topic::Cause("endpoint".to_owned()),
            ..statement(["REST", "persistent"], 1.0, 8.1)
        };
        assert!(!slower().check(std::slice::from_ref(&cause)).is_right);
        assert!(slower().check_absent(&[cause]).is_right);
    }

    #[test]
    fn of_several_such_sentences_the_one_that_fits_best_is_meant() {
        let subjects = ["REST", "persistent"];
        let statements = [
            statement(subjects, 1.0, 30.0),
            statement(subjects, 1.0, 8.0),
        ];
        assert!(slower().check(&statements).is_right);
    }

    #[test]
    fn a_control_is_right_without_the_claim_whatever_its_numbers() {
        let subjects = ["REST", "persistent"];
        let equal = [statement(subjects, 0.0, 8.1)];
        assert!(slower().check_absent(&equal).is_right);
        assert!(slower().check_absent(&[]).is_right);
        let claims = [statement(subjects, 1.0, 0.3)];
        let meant = slower();
        let result = meant.check_absent(&claims);
        assert!(!result.is_right && result.statement.is_some());
    }
}
