//! Packets that were captured, to round trips that nobody had to ask for.
//!
//! Owns connections as a capture shows them: what awaits an answer, which answer speaks of the path,
//! what was sent again. Does not own files, rings or screens: packets come in as headers with times,
//! samples and events go out as they are found.

mod flow;
mod sample;
mod sequence;
mod stream;
mod tcp;

pub use flow::{
    Flow, Limits, Listener, Name, Others, Period, Quantiles, Recent, Sent, Table, Trips,
};
pub use sample::{Answer, Half, Method, Sample};
pub use stream::{Account, Ending, read_capture};
pub use tcp::{Connection, Event, Room, Segment, Side, Sink};
