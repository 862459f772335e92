//! An experiment: one execution of one scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Anchor, CampaignId, ExperimentId, Fleet, Flow, Outcome, Own, Quantities, ScenarioId, Span,
    Unanswered, Wall, Warning,
};

/// How an experiment stands.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentStatus {
    /// Being carried out, or cut off by a crash and not yet recovered.
    Running,
    /// Carried out to its end.
    Complete,
    /// Could not be carried out; tried again later.
    Failed,
    /// Cut off by ctrl-C or a crash; what was measured is kept, and it is tried again.
    Interrupted,
}

impl ExperimentStatus {
    /// The word for it in the catalog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Complete,
            Self::Failed,
            Self::Interrupted,
        ]
        .into_iter()
        .find(|status| status.name() == name)
    }
}

/// How the messages of an experiment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Messages with a row: replies + errors + lost + failed.
    pub messages: u64,
    /// Replied to in time, as expected.
    pub replies: u64,
    /// Answered in time, but not as expected: an HTTP status that was not wanted, a reply cut off.
    pub errors: u64,
    /// Sent and not answered in time.
    pub lost: u64,
    /// Not sent.
    pub failed: u64,
    /// Replies that came again.
    pub duplicates: u64,
    /// Replies that came after a later message's reply.
    pub reordered: u64,
    /// Replies that came after their message was counted lost.
    pub late: u64,
}

impl Tally {
    /// Counts one message that ended so.
    pub const fn count(&mut self, outcome: Outcome) {
        self.messages += 1;
        match outcome {
            Outcome::Reply => self.replies += 1,
            Outcome::Error => self.errors += 1,
            Outcome::Lost => self.lost += 1,
            Outcome::Failed => self.failed += 1,
        }
    }

    /// Messages of the population of response time that have none: they rank above every reply.
    ///
    /// This and [`Self::without_service`] define the population of all quantiles of messages, in every
    /// command, figure, file and alarm. Response time counts from the scheduled send time, so every
    /// scheduled message belongs to its population. A message that was lost, had an unexpected answer
    /// or could not be sent counts as slower than every reply.
    pub const fn without_response(&self) -> Unanswered {
        Unanswered {
            not_sent: self.failed,
            ..self.without_service()
        }
    }

    /// Messages of the population of service time that have none. Service time counts from sending,
    /// so messages that could not be sent do not belong to its population.
    pub const fn without_service(&self) -> Unanswered {
        Unanswered {
            errors: self.errors,
            lost: self.lost,
            not_sent: 0,
        }
    }

    /// How many messages have no response time.
    pub const fn without_response_time(&self) -> u64 {
        self.without_response().count()
    }

    /// How many messages have no service time.
    pub const fn without_service_time(&self) -> u64 {
        self.without_service().count()
    }
}

/// One execution of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Its identity.
    pub id: ExperimentId,
    /// The campaign it belongs to.
    pub campaign: CampaignId,
    /// The scenario it carries out.
    pub scenario: ScenarioId,
    /// The block it belongs to, from 0.
    pub block: u32,
    /// Its place in the order of execution within the block, from 0.
    pub position: u32,
    /// 0 for the first try of this scenario in this block, 1 for the next ...
    pub attempt: u32,
    /// How it stands.
    pub status: ExperimentStatus,
    /// Why it failed or was interrupted.
    pub reason: Option<String>,
    /// When it started. Own marks in the store count from this moment.
    pub started: Wall,
    /// When it ended.
    pub ended: Option<Wall>,
    /// Its flows. A fleet's are not among them: those beside it begin at index 1.
    pub flows: Vec<Flow>,
    /// The fleet that it measures instead of a main flow.
    #[serde(default)]
    pub fleet: Option<Fleet>,
    /// What it came to, where it is a transfer instead of messages.
    #[serde(default)]
    pub quantities: Option<Quantities>,
    /// How its main flow's messages ended, or its fleet's.
    pub tally: Tally,
    /// Of a fleet that ended: the median of its network round trips as it was told then, lost messages
    /// counted as slower than all others, so that nobody has to read its messages for it. `None` where
    /// those decide, and where it was not kept: then its messages tell.
    #[serde(default)]
    pub response_p50: Option<Span>,
    /// What makes it less trustworthy.
    pub warnings: Vec<Warning>,
    /// (monotonic since start, wall) pairs, one a second, of more than an hour fewer: `(nanoseconds, Unix nanoseconds)`.
    pub anchors: Vec<(i64, i64)>,
}

impl Experiment {
    /// The first try in the first block, running since `started`: nothing is measured yet.
    pub fn begun(campaign: CampaignId, scenario: ScenarioId, started: Wall) -> Self {
        Self {
            id: ExperimentId::new(),
            campaign,
            scenario,
            block: 0,
            position: 0,
            attempt: 0,
            status: ExperimentStatus::Running,
            reason: None,
            started,
            ended: None,
            flows: Vec::new(),
            fleet: None,
            quantities: None,
            tally: Tally::default(),
            response_p50: None,
            warnings: Vec::new(),
            anchors: Vec::new(),
        }
    }

    /// What was made of the load that the plan asks for: without those loads that are flagged to have
    /// done nothing. `None` where nothing is left.
    pub fn load_made(&self, asked: Option<&str>) -> Option<String> {
        let is_made = |one: &&str| {
            !self.warnings.iter().any(|warning| {
                matches!(warning, Warning::LoadNotHeld { load, had_percent: Some(had), .. }
                    if load == one && *had <= 0.0)
            })
        };
        let made: Vec<&str> = asked?.split(", ").filter(is_made).collect();
        (!made.is_empty()).then(|| made.join(", "))
    }

    /// The stored anchors as values.
    pub fn anchors(&self) -> impl Iterator<Item = Anchor<Own>> {
        self.anchors.iter().map(|(at, wall)| Anchor {
            at: crate::Instant::from_nanos(*at),
            wall: Wall::from_unix_nanos(*wall),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_did_nothing_was_not_made() {
        let (campaign, scenario) = (CampaignId::new(), ScenarioId(1));
        let mut one = Experiment::begun(campaign, scenario, Wall::from_unix_nanos(0));
        let asked = Some("vm1 80%, vm2 stream h:80 2Mbit/s");
        assert_eq!(one.load_made(asked).as_deref(), asked);
        assert_eq!(one.load_made(None), None);
        let mut not_held = |load: &str, had_percent| {
            one.warnings.push(Warning::LoadNotHeld {
                load: load.to_owned(),
                had: String::new(),
                had_percent,
                why: None,
            });
            one.load_made(asked)
        };
        let made = not_held("vm2 stream h:80 2Mbit/s", Some(0.0));
        assert_eq!(made.as_deref(), Some("vm1 80%"));
        assert_eq!(not_held("vm1 80%", Some(62.0)), made);
        assert_eq!(not_held("vm1 80%", None), made);
        assert_eq!(not_held("vm1 80%", Some(0.0)), None);
    }
}
