//! Packets that were captured, to round trips that nobody had to ask for.
//!
//! Owns connections as a capture shows them: what awaits an answer, which answer speaks of the path,
//! what was sent again. Does not own files, rings or screens: packets come in as headers with times,
//! samples and events go out as they are found.

mod sample;
mod sequence;
mod tcp;

pub use sample::{Answer, Half, Method, Sample};
pub use tcp::{Connection, Event, Segment, Side, Sink};
