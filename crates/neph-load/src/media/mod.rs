//! Media streams: RTP over UDP, set up by RTSP. A [`Server`] sends frames of a [`Trace`]; clients
//! with a common start receive them ([`measure`]). Reports what a player with a play-out buffer
//! would have shown.
//!
//! Packet generation, the order of requests, counting and judging are state machines and functions
//! without I/O. One thread serves a connection; one thread receives all streams of a client.

mod client;
mod connection;
mod dialogue;
mod error;
mod frames;
#[cfg(test)]
mod generate;
mod jitter;
mod measured;
mod opening;
mod places;
mod ports;
mod quality;
mod quantities;
mod receiver;
mod second;
mod served;
mod server;
mod session;
mod source;
mod statistics;
#[cfg(test)]
mod tests;
mod trace;
mod track;

pub use client::measure;
pub use error::MediaError;
pub use frames::{FrameCounts, Stalls};
pub use measured::{MediaMeasured, MediaRequest, StreamMeasured};
pub use quality::{Quality, VideoQuality};
pub use second::{MediaSecond, StreamSecond};
pub use served::{MediaServed, ServerCaps, ServerSpec};
pub use server::Server;
pub use statistics::{JitterStatistics, StreamStatistics};
pub use trace::{Trace, TraceError};
