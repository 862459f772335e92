//! An entry that was carried out: what neph said of it, and whether that is right.

use std::path::PathBuf;

use neph_model::Warning;

use super::entry::{Entry, Side};
use super::expectation::Judged;
use super::said::{Said, Topic};
use crate::CampaignData;

/// An entry that was carried out, and what neph found.
#[derive(Debug)]
pub struct Shown {
    /// The entry.
    pub entry: &'static Entry,
    /// Itself or its control.
    pub side: Side,
    /// Everything that neph said.
    pub said: Vec<Said>,
    /// Whether an experiment is flagged for its host: a late sender, a CPU that was taken or busy, a
    /// clock that was set.
    pub is_disturbed: bool,
    /// The figure as an image; none where nothing was drawn.
    pub figure: Option<PathBuf>,
    /// From the campaign's start to its end.
    pub seconds: f64,
}

impl Shown {
    /// Each expectation of the entry, held against what neph found.
    pub fn judged(&self) -> Vec<Judged<'_>> {
        let expected = self.entry.expected.iter();
        match self.side {
            Side::Finding => expected.map(|one| one.judge(&self.said)).collect(),
            Side::Control => {
                let absent = expected.map(|one| one.judge_absent(&self.said));
                let present = self.entry.of_control.iter();
                let present = present.map(|one| one.judge(&self.said));
                absent.chain(present).collect()
            }
        }
    }

    /// Causes that neph names although the entry has put none of them into its network, or not
    /// where neph sees them.
    pub fn misnamed(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| match &said.topic {
            Topic::Cause(_) if self.is_disturbance(said) => false,
            Topic::Cause(rule) => {
                !self.entry.has(rule, self.side) || self.entry.is_innocent(&said.about)
            }
            Topic::Finding(_) | Topic::Median => false,
        })
    }

    /// Causes that are of this host and this hour, and no part of any entry.
    pub fn disturbances(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| self.is_disturbance(said))
    }

    /// Whether a cause says that the host was busy or its clock was set, as it may be anywhere, and
    /// experiments are flagged for it.
    fn is_disturbance(&self, said: &Said) -> bool {
        let Topic::Cause(rule) = &said.topic else {
            return false;
        };
        self.is_disturbed && matches!(rule.as_str(), "starved-client" | "clock-step")
    }

    /// Whether neph says everything that it should and names nothing else; as a control, none of it.
    pub fn is_right(&self) -> bool {
        self.judged().iter().all(|judged| judged.is_right) && self.misnamed().next().is_none()
    }

    /// Whether an experiment is flagged for its host.
    pub fn is_disturbed_in(data: &CampaignData) -> bool {
        let experiments = data.experiments.iter();
        let mut warnings = experiments.flat_map(|data| &data.experiment.warnings);
        warnings.any(|warning| {
            warning.is_of_a_busy_host() || matches!(warning, Warning::ClockStepped { .. })
        })
    }
}
