//! Packets that were captured, to round trips that nobody had to ask for.
//!
//! Owns connections as a capture shows them: what awaits an answer, which answer speaks of the path,
//! what was sent again. Does not own files, rings or screens: packets come in as headers with times,
//! samples and events go out as they are found.

mod ahead;
mod chosen;
pub mod clocks;
mod exchange;
mod flow;
mod fragments;
mod hops;
mod identity;
mod meeting;
mod merged;
#[cfg(test)]
mod packets;
pub mod path;
pub mod reading;
mod sample;
mod sequence;
mod steady;
mod stream;
mod tcp;
mod twice;
mod ways;

pub use exchange::{Answered, Asking, Between, Counted, Exchanges, Pair, Question};
pub use flow::{
    Flow, LaidOut, Limits, Listener, Name, Others, Quantiles, Recent, Sent, Table, Trips,
};
pub use hops::{Called, Flowing, Followed, Hops, Mapping, MappingError, Passage, Strangers, Trip};
pub use identity::Identity;
pub use meeting::{Crossing, Meeting, Met, Point, SetBack};
pub use merged::read_merged;
pub use sample::{Answer, Half, Method, Sample};
pub use stream::{Account, Ending, read_capture};
pub use tcp::{Connection, Event, Passing, Room, Segment, Side, Sink};
pub use twice::Twice;
pub use ways::Way;
