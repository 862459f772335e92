//! Alarms: a line of text, and a document.

use neph_model::alarm::Change;
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use crate::wall_time;

/// An alarm that was raised or ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AlarmDocument<W> {
    /// Always `alarm`.
    pub kind: AlarmKind,
    /// Time of the change.
    pub at_unix_ns: Wall,
    /// The rule as written.
    pub rule: String,
    /// State since then: `raised` or `over`.
    pub state: &'static str,
    /// Limit of the rule.
    pub limit_ns: Span,
    /// The counted values.
    #[serde(flatten)]
    pub counted: Counted,
    /// The object that the rule applies to.
    #[serde(flatten)]
    pub about: W,
}

/// The kind of an alarm's document.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// The only kind.
    Alarm,
}

/// The values that an alarm counts: their number, and how many are above the limit.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Counted {
    /// Round trips.
    RoundTrips {
        /// Number of round trips.
        round_trips: u64,
        /// Number of round trips above the limit.
        round_trips_above_limit: u64,
    },
    /// Packets.
    Packets {
        /// Number of packets.
        packets: u64,
        /// Number of packets above the limit.
        packets_above_limit: u64,
    },
}

/// An alarm without an object: it has only its rule.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RuleAlone {}

/// The experiment of an alarm.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExperimentReference {
    /// Id of the campaign.
    pub campaign: String,
    /// Id of the experiment.
    pub experiment: String,
    /// Label of the scenario.
    pub scenario: String,
    /// The block, from 1.
    pub block: u32,
    /// Time since the experiment's start.
    pub since_start_ns: Span,
}

/// The segment of an alarm.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SegmentReference {
    /// The segment: `a - b`.
    pub segment: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Time since the first packet.
    pub since_ns: Span,
    /// Error bound of the delays in the segment.
    pub bound_ns: i64,
    /// What was evaluated: `whole` captures, or `live` windows.
    pub evaluated_on: &'static str,
}

impl<W> AlarmDocument<W> {
    /// The document of a change that counts round trips.
    pub fn of_round_trips(at: Wall, change: &Change, about: W) -> Self {
        let counts = Counted::RoundTrips {
            round_trips: change.total,
            round_trips_above_limit: change.above_limit,
        };
        Self::of(at, change, counts, about)
    }

    /// The document of a change that counts packets.
    pub fn of_packets(at: Wall, change: &Change, about: W) -> Self {
        let counts = Counted::Packets {
            packets: change.total,
            packets_above_limit: change.above_limit,
        };
        Self::of(at, change, counts, about)
    }

    fn of(at: Wall, change: &Change, counted: Counted, about: W) -> Self {
        Self {
            kind: AlarmKind::Alarm,
            at_unix_ns: at,
            rule: change.rule.clone(),
            state: if change.is_raised { "raised" } else { "over" },
            limit_ns: change.limit,
            counted,
            about,
        }
    }
}

/// Formats an alarm as one line; `noun` is what was counted.
pub fn format_alarm_line(at: Wall, change: &Change, noun: &str) -> String {
    let state = if change.is_raised {
        "ALARM"
    } else {
        "the alarm is over"
    };
    format!("{}  {state}: {}", wall_time::utc(at), change.to_text(noun))
}
