//! What an entry expects of the sentences that neph writes, and whether they are as expected.
//!
//! Pure: findings in, judgement out. Runs nothing and prints nothing.

use super::said::{Said, Topic};

/// A number of a sentence's evidence, and between what it has to lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// Its name in the evidence, with the unit.
    pub(crate) name: &'static str,
    /// The least that is right.
    pub(crate) low: f64,
    /// The most that is right.
    pub(crate) high: f64,
}

impl Number {
    pub(crate) const fn between(name: &'static str, low: f64, high: f64) -> Self {
        Self { name, low, high }
    }

    pub(crate) const fn at_least(name: &'static str, low: f64) -> Self {
        Self::between(name, low, f64::INFINITY)
    }

    /// The same number in a sentence; nothing if it does not hold it.
    fn measured(&self, said: &Said) -> Option<f64> {
        said.numbers.get(self.name).copied()
    }

    fn holds(&self, said: &Said) -> bool {
        let measured = self.measured(said);
        measured.is_some_and(|value| (self.low..=self.high).contains(&value))
    }
}

/// A sentence that an entry ends with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expectation {
    /// A finding's topic, or the rule that names a cause.
    pub(crate) topic: Topic,
    /// What it speaks of: all of these, and maybe more.
    pub(crate) about: &'static [&'static str],
    /// What makes it the sentence and not its contrary: that something is slower, by a verdict. A
    /// control must have no sentence that claims this.
    pub(crate) claim: &'static [Number],
    /// What was calculated before anything was measured.
    pub(crate) numbers: &'static [Number],
}

/// A number as it was expected and as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compared {
    pub(crate) number: Number,
    /// Absent where no sentence holds it.
    pub(crate) measured: Option<f64>,
    pub(crate) holds: bool,
}

/// What became of an expectation.
#[derive(Clone, Debug)]
pub(crate) struct Judged<'s> {
    pub(crate) expectation: &'static Expectation,
    /// Whether the sentence is to be there.
    pub(crate) is_wanted: bool,
    /// The sentence that it was found in; none if neph wrote no such sentence.
    pub(crate) said: Option<&'s Said>,
    pub(crate) numbers: Vec<Compared>,
    /// Whether all is as it should be.
    pub(crate) is_right: bool,
}

impl Expectation {
    /// That the median response time of whatever is called so lies between these milliseconds.
    pub(crate) const fn median(
        about: &'static [&'static str],
        number: &'static [Number; 1],
    ) -> Self {
        Self {
            topic: Topic::Median,
            about,
            claim: &[],
            numbers: number,
        }
    }

    /// That these numbers of the flows to whatever is called so are as calculated.
    pub(crate) const fn of_flows(
        about: &'static [&'static str],
        numbers: &'static [Number],
    ) -> Self {
        Self {
            topic: Topic::Finding("flows"),
            about,
            claim: &[],
            numbers,
        }
    }

    /// As [`Self::of_flows`], where the entry is about `claim`: in its control the claim must not hold.
    pub(crate) const fn of_flows_with_claim(
        about: &'static [&'static str],
        claim: &'static [Number],
        numbers: &'static [Number],
    ) -> Self {
        Self {
            claim,
            ..Self::of_flows(about, numbers)
        }
    }

    /// Whether a sentence is this one, whatever its numbers are.
    fn is_claimed_by(&self, said: &Said) -> bool {
        let speaks_of = |name: &&str| said.about.iter().any(|about| about == *name);
        said.topic == self.topic
            && self.about.iter().all(speaks_of)
            && self.claim.iter().all(|number| number.holds(said))
    }

    /// Looks for the sentence, and holds its numbers against what was calculated.
    pub(crate) fn judge<'s>(&'static self, everything: &'s [Said]) -> Judged<'s> {
        let right = |said: &&Said| self.numbers.iter().filter(|n| n.holds(said)).count();
        let claimed = everything.iter().filter(|said| self.is_claimed_by(said));
        let said = claimed.max_by_key(right);
        let all = self.claim.iter().chain(self.numbers);
        let numbers: Vec<Compared> = all
            .map(|number| Compared {
                number: *number,
                measured: said.and_then(|said| number.measured(said)),
                holds: said.is_some_and(|said| number.holds(said)),
            })
            .collect();
        Judged {
            expectation: self,
            is_wanted: true,
            said,
            is_right: said.is_some() && numbers.iter().all(|one| one.holds),
            numbers,
        }
    }

    /// Makes sure that the sentence is absent, as where its cause is.
    pub(crate) fn judge_absent<'s>(&'static self, everything: &'s [Said]) -> Judged<'s> {
        let said = everything.iter().find(|said| self.is_claimed_by(said));
        Judged {
            expectation: self,
            is_wanted: false,
            said,
            numbers: Vec::new(),
            is_right: said.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOWER: Expectation = Expectation {
        topic: Topic::Finding("endpoint"),
        about: &["REST", "persistent"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_ms", 7.5, 9.0)],
    };

    fn said(about: [&str; 2], slower: f64, shift: f64) -> Said {
        Said {
            topic: Topic::Finding("endpoint"),
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
        let rest = ["REST", "persistent"];
        let right = [said(rest, 1.0, 8.1)];
        assert!(SLOWER.judge(&right).is_right);
        let too_much = [said(rest, 1.0, 12.0)];
        let judged = SLOWER.judge(&too_much);
        assert!(!judged.is_right && judged.said.is_some());
        assert_eq!(
            (judged.numbers[1].measured, judged.numbers[1].holds),
            (Some(12.0), false)
        );
        // About something else, or without the verdict, it is another sentence.
        let others = [
            said(["REST, TLS 1.2", "persistent"], 1.0, 8.1),
            said(rest, 0.0, 8.1),
        ];
        let judged = SLOWER.judge(&others);
        assert!(!judged.is_right && judged.said.is_none());
        assert_eq!(judged.numbers[0].measured, None);
    }

    #[test]
    fn a_cause_is_no_finding_of_that_name() {
        let cause = Said {
            topic: Topic::Cause("endpoint"),
            ..said(["REST", "persistent"], 1.0, 8.1)
        };
        assert!(!SLOWER.judge(std::slice::from_ref(&cause)).is_right);
        assert!(SLOWER.judge_absent(&[cause]).is_right);
    }

    #[test]
    fn of_several_such_sentences_the_one_that_fits_best_is_meant() {
        let rest = ["REST", "persistent"];
        let found = [said(rest, 1.0, 30.0), said(rest, 1.0, 8.0)];
        assert!(SLOWER.judge(&found).is_right);
    }

    #[test]
    fn a_control_is_right_without_the_claim_whatever_its_numbers() {
        let rest = ["REST", "persistent"];
        let equal = [said(rest, 0.0, 8.1)];
        assert!(SLOWER.judge_absent(&equal).is_right);
        assert!(SLOWER.judge_absent(&[]).is_right);
        let claims = [said(rest, 1.0, 0.3)];
        let judged = SLOWER.judge_absent(&claims);
        assert!(!judged.is_right && judged.said.is_some());
    }
}
