//! Alarms: the line for people and the document for programs.

use neph_model::alarm::Change;
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use crate::when;

/// An alarm that was raised or is over.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AlarmDocument<W> {
    /// Always `alarm`.
    pub kind: AlarmKind,
    /// When, Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// The rule as it was typed.
    pub rule: String,
    /// `raised` or `over`.
    pub state: &'static str,
    /// The limit of the rule in nanoseconds.
    pub limit_ns: Span,
    /// What was counted.
    #[serde(flatten)]
    pub counted: Counted,
    /// What it is about.
    #[serde(flatten)]
    pub about: W,
}

/// The kind of an alarm's document.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// The only one.
    Alarm,
}

/// What an alarm counts: how many, and how many of them were above the limit.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Counted {
    /// Round trips.
    RoundTrips {
        /// How many.
        round_trips: u64,
        /// Those above the limit.
        round_trips_above_limit: u64,
    },
    /// Packets.
    Packets {
        /// How many.
        packets: u64,
        /// Those above the limit.
        packets_above_limit: u64,
    },
}

/// An alarm that is about nothing but its rule.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RuleAlone {}

/// The experiment that an alarm is about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfExperiment {
    /// The campaign's id.
    pub campaign: String,
    /// The experiment's id.
    pub experiment: String,
    /// The scenario's label.
    pub scenario: String,
    /// The block, from 1.
    pub block: u32,
    /// Nanoseconds since the experiment's start.
    pub since_start_ns: Span,
}

/// The segment that an alarm is about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfSegment {
    /// The segment: `a - b`.
    pub segment: String,
    /// `there` or `back`.
    pub direction: &'static str,
    /// Nanoseconds since the first packet.
    pub since_ns: Span,
    /// The most that a delay in the segment may be off, in nanoseconds.
    pub bound_ns: i64,
    /// Over what it was judged: `whole` captures, or `live` windows.
    pub judged: &'static str,
}

impl<W> AlarmDocument<W> {
    /// Of a change that counts round trips.
    pub fn of_round_trips(at: Wall, change: &Change, about: W) -> Self {
        let counted = Counted::RoundTrips {
            round_trips: change.of,
            round_trips_above_limit: change.longer,
        };
        Self::of(at, change, counted, about)
    }

    /// Of a change that counts packets.
    pub fn of_packets(at: Wall, change: &Change, about: W) -> Self {
        let counted = Counted::Packets {
            packets: change.of,
            packets_above_limit: change.longer,
        };
        Self::of(at, change, counted, about)
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

/// One line for people; `noun` is what was counted.
pub fn sentence(at: Wall, change: &Change, noun: &str) -> String {
    let what = if change.is_raised {
        "ALARM"
    } else {
        "the alarm is over"
    };
    format!("{}  {what}: {}", when::utc(at), change.in_words(noun))
}
