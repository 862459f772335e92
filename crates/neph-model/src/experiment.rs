//! An experiment: one execution of one scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Anchor, CampaignId, ExperimentId, Fleet, Flow, Local, Outcome, Quantities, ScenarioId, Span,
    Unanswered, Wall, Warning,
};

/// The status of an experiment.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentStatus {
    /// In progress, or ended by a crash and not yet recovered.
    Running,
    /// Executed to its end.
    Complete,
    /// Could not be executed; neph retries later.
    Failed,
    /// Interrupted by ctrl-C or a crash; its measurements are stored, and neph retries the
    /// scenario.
    Interrupted,
}

impl ExperimentStatus {
    /// The name in the catalog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
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

/// Numbers of messages by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// All messages: replies + errors + lost + failed.
    pub messages: u64,
    /// Messages with the expected reply within the timeout.
    pub replies: u64,
    /// Messages with an unexpected answer within the timeout: another HTTP status, a truncated
    /// reply.
    pub errors: u64,
    /// Messages that were sent and not answered within the timeout.
    pub lost: u64,
    /// Messages that were not sent.
    pub failed: u64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Replies that arrived after the reply to a later message (RFC 4737).
    pub reordered: u64,
    /// Replies that arrived after their message was counted as lost.
    pub late: u64,
}

impl Tally {
    /// Counts one message with this outcome.
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
    /// This and [`Self::without_service`] define the population of all quantiles of messages, in
    /// every command, figure, file and alarm. Response time counts from the scheduled send time, so
    /// every scheduled message belongs to its population. A message that was lost, had an
    /// unexpected answer or could not be sent counts as slower than every reply.
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
    /// Id of the experiment.
    pub id: ExperimentId,
    /// Id of its campaign.
    pub campaign: CampaignId,
    /// Id of its scenario.
    pub scenario: ScenarioId,
    /// The block, from 0.
    pub block: u32,
    /// Position in the order of execution within the block, from 0.
    pub position: u32,
    /// Number of earlier attempts of this scenario in this block: 0 for the first attempt.
    pub attempt: u32,
    /// Status of the experiment.
    pub status: ExperimentStatus,
    /// Why it failed or was interrupted; null otherwise.
    pub reason: Option<String>,
    /// Start time, Unix nanoseconds. In the store, client timestamps count from it.
    pub started: Wall,
    /// End time, Unix nanoseconds; null until it ends.
    pub ended: Option<Wall>,
    /// Its flows, without those of a fleet. With a fleet, these flows begin at index 1.
    pub flows: Vec<Flow>,
    /// The fleet that it measures instead of a main flow; null without one.
    #[serde(default)]
    pub fleet: Option<Fleet>,
    /// Results of a transfer; null if it measures messages.
    #[serde(default)]
    pub quantities: Option<Quantities>,
    /// Outcomes of the messages of its main flow or its fleet.
    pub tally: Tally,
    /// Median network round trip of a fleet that ended, in nanoseconds, as calculated at its end.
    /// Lost messages count as slower than all others. null if lost messages decide the median, or
    /// if it was not stored: the messages show it then.
    #[serde(default)]
    pub response_p50: Option<Span>,
    /// Reasons to doubt the result.
    pub warnings: Vec<Warning>,
    /// Pairs of clock readings at one moment: nanoseconds since the start on the monotonic clock,
    /// and Unix nanoseconds. One pair per second; fewer beyond an hour.
    pub anchors: Vec<(i64, i64)>,
}

impl Experiment {
    /// The first attempt in the first block, running since `started`, without measurements.
    pub fn new(campaign: CampaignId, scenario: ScenarioId, started: Wall) -> Self {
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

    /// The part of the load `requested` by the plan that was generated: without loads that did nothing,
    /// according to a warning. `None` if nothing is left.
    pub fn generated_load(&self, requested: Option<&str>) -> Option<String> {
        let is_made = |line: &&str| {
            !self.warnings.iter().any(|warning| {
                matches!(warning, Warning::LoadTargetMissed { load, achieved_percent: Some(achieved), .. }
                    if load == line && *achieved <= 0.0)
            })
        };
        let generated: Vec<&str> = requested?.split(", ").filter(is_made).collect();
        (!generated.is_empty()).then(|| generated.join(", "))
    }

    /// The stored anchors as values.
    pub fn anchors(&self) -> impl Iterator<Item = Anchor<Local>> {
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
    fn a_load_without_traffic_counts_as_not_generated() {
        let (campaign, scenario) = (CampaignId::new(), ScenarioId(1));
        let mut experiment = Experiment::new(campaign, scenario, Wall::from_unix_nanos(0));
        let requested = Some("vm1 80%, vm2 stream h:80 2Mbit/s");
        assert_eq!(experiment.generated_load(requested).as_deref(), requested);
        assert_eq!(experiment.generated_load(None), None);
        let mut missed_target = |load: &str, achieved_percent| {
            experiment.warnings.push(Warning::LoadTargetMissed {
                load: load.to_owned(),
                achieved: String::new(),
                achieved_percent,
                reason: None,
            });
            experiment.generated_load(requested)
        };
        let generated = missed_target("vm2 stream h:80 2Mbit/s", Some(0.0));
        assert_eq!(generated.as_deref(), Some("vm1 80%"));
        assert_eq!(missed_target("vm1 80%", Some(62.0)), generated);
        assert_eq!(missed_target("vm1 80%", None), generated);
        assert_eq!(missed_target("vm1 80%", Some(0.0)), None);
    }
}
