//! What an entry expects of the sentences that neph writes, and whether they are as expected.
//!
//! Pure: findings in, judgement out. Runs nothing and prints nothing.

use neph_report::Finding;

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
    fn measured(&self, finding: &Finding) -> Option<f64> {
        finding.evidence.get(self.name).copied()
    }

    fn holds(&self, finding: &Finding) -> bool {
        let measured = self.measured(finding);
        measured.is_some_and(|value| (self.low..=self.high).contains(&value))
    }
}

/// A sentence that an entry ends with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expectation {
    /// The finding's topic.
    pub(crate) topic: &'static str,
    /// What the finding speaks of: all of these, and maybe more.
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
pub(crate) struct Judged<'f> {
    pub(crate) expectation: &'static Expectation,
    /// The sentence that it was found in; none if neph wrote no such sentence.
    pub(crate) finding: Option<&'f Finding>,
    pub(crate) numbers: Vec<Compared>,
    /// Whether all is as it should be.
    pub(crate) is_right: bool,
}

impl Expectation {
    /// Whether a sentence is this one, whatever its numbers are.
    fn is_claimed_by(&self, finding: &Finding) -> bool {
        let speaks_of = |name: &&str| finding.about.iter().any(|about| about == *name);
        finding.topic == self.topic
            && self.about.iter().all(speaks_of)
            && self.claim.iter().all(|number| number.holds(finding))
    }

    /// Looks for the sentence, and holds its numbers against what was calculated.
    pub(crate) fn judge<'f>(&'static self, found: &'f [Finding]) -> Judged<'f> {
        let right = |finding: &&Finding| self.numbers.iter().filter(|n| n.holds(finding)).count();
        let claimed = found.iter().filter(|finding| self.is_claimed_by(finding));
        let finding = claimed.max_by_key(right);
        let all = self.claim.iter().chain(self.numbers);
        let numbers: Vec<Compared> = all
            .map(|number| Compared {
                number: *number,
                measured: finding.and_then(|finding| number.measured(finding)),
                holds: finding.is_some_and(|finding| number.holds(finding)),
            })
            .collect();
        Judged {
            expectation: self,
            finding,
            is_right: finding.is_some() && numbers.iter().all(|one| one.holds),
            numbers,
        }
    }

    /// Makes sure that the sentence is absent, as where its cause is.
    pub(crate) fn judge_absent<'f>(&'static self, found: &'f [Finding]) -> Judged<'f> {
        let finding = found.iter().find(|finding| self.is_claimed_by(finding));
        Judged {
            expectation: self,
            finding,
            numbers: Vec::new(),
            is_right: finding.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_report::FindingKind;

    use super::*;

    const SLOWER: Expectation = Expectation {
        topic: "endpoint",
        about: &["REST", "persistent"],
        claim: &[Number::at_least("slower", 1.0)],
        numbers: &[Number::between("shift_ms", 7.5, 9.0)],
    };

    fn finding(about: [&str; 2], slower: f64, shift: f64) -> Finding {
        let [one, other] = about;
        Finding::new(FindingKind::StandsOut, "endpoint", "a sentence".to_owned())
            .about(one)
            .about(other)
            .with("slower", slower)
            .with("shift_ms", shift)
    }

    #[test]
    fn a_sentence_is_right_if_it_is_there_and_its_numbers_are_as_calculated() {
        let rest = ["REST", "persistent"];
        let right = [finding(rest, 1.0, 8.1)];
        assert!(SLOWER.judge(&right).is_right);
        let too_much = [finding(rest, 1.0, 12.0)];
        let judged = SLOWER.judge(&too_much);
        assert!(!judged.is_right && judged.finding.is_some());
        assert_eq!(
            (judged.numbers[1].measured, judged.numbers[1].holds),
            (Some(12.0), false)
        );
        // About something else, or without the verdict, it is another sentence.
        let others = [
            finding(["REST, TLS 1.2", "persistent"], 1.0, 8.1),
            finding(rest, 0.0, 8.1),
        ];
        let judged = SLOWER.judge(&others);
        assert!(!judged.is_right && judged.finding.is_none());
        assert_eq!(judged.numbers[0].measured, None);
    }

    #[test]
    fn of_several_such_sentences_the_one_that_fits_best_is_meant() {
        let rest = ["REST", "persistent"];
        let found = [finding(rest, 1.0, 30.0), finding(rest, 1.0, 8.0)];
        assert!(SLOWER.judge(&found).is_right);
    }

    #[test]
    fn a_control_is_right_without_the_claim_whatever_its_numbers() {
        let rest = ["REST", "persistent"];
        let equal = [finding(rest, 0.0, 8.1)];
        assert!(SLOWER.judge_absent(&equal).is_right);
        assert!(SLOWER.judge_absent(&[]).is_right);
        let claims = [finding(rest, 1.0, 0.3)];
        let judged = SLOWER.judge_absent(&claims);
        assert!(!judged.is_right && judged.finding.is_some());
    }
}
