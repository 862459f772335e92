//! Passive round trips from captured packets.
//!
//! Owns connections as a capture shows them: segments that await an answer, answers that measure the path,
//! and retransmissions. Does not own files, rings or screens. Packets come in as headers with times; samples
//! and events go out as they are found.

mod capture_matcher;
pub mod clocks;
mod directions;
mod duplicates;
mod exchange;
mod flow;
mod fragments;
mod hops;
mod identity;
mod merged;
pub mod path;
mod prefetch;
pub mod reading;
mod sample;
mod sampling;
mod sequence;
mod steady_time;
mod stream;
mod tcp;
#[cfg(test)]
mod test_packets;

pub use capture_matcher::{CaptureCounts, CaptureMatcher, ClockSetBack, Crossing, MatchedCaptures};
pub use directions::Direction;
pub use duplicates::DuplicateFilter;
pub use exchange::{
    ExchangeCounts, ExchangeKey, ExchangeListener, ExchangeProtocol, ExchangeRoundTrip, Exchanges,
    HostPair,
};
pub use flow::{
    Flow, FlowName, Limits, Listener, OtherPackets, PeriodCounts, Quantiles, RoundTripSketches,
    RoundTripsByMethod, SentCounts, Table,
};
pub use hops::{
    FiveTuple, Followed, Hops, Mapping, MappingError, Passage, RoundTripPair, TranslatedAddress,
    UnmatchedPackets,
};
pub use identity::Identity;
pub use merged::read_merged;
pub use sample::{Answer, Half, Method, Sample};
pub use stream::{Ending, ReadSummary, read_capture};
pub use tcp::{CapturedSegment, Connection, Event, Segment, SegmentBudget, Side, Sink};
