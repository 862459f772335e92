//! What is asked of a client, and what it measured.

use std::net::SocketAddr;

use neph_model::{Span, Wall};

use super::error::MediaError;
use super::figures::StreamFigures;
use super::second::StreamSecond;

/// What a client is asked to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaAsk {
    /// The URL of the presentation, as the server is to see it.
    pub url: String,
    /// Streams at the same time, each with an RTSP connection of its own.
    pub streams: u16,
    /// How long is measured from the first packet on.
    pub duration: Span,
    /// How long a player would wait before it shows the first frame.
    pub buffer: Span,
    /// When all streams begin; absent for as soon as all are set up. Several clients begin together with it.
    pub start: Option<Wall>,
}

impl MediaAsk {
    /// The most streams of a client.
    pub const MOST_STREAMS: u16 = 256;
    /// The longest measurement.
    pub const LONGEST: Span = Span::from_secs(24 * 3_600);

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// A value is outside of its range.
    pub fn check(&self) -> Result<(), MediaError> {
        let streams = self.streams;
        if !(1..=Self::MOST_STREAMS).contains(&streams) {
            let most = Self::MOST_STREAMS;
            return Err(MediaError::Ask(format!(
                "{streams} streams: ask for 1 to {most}"
            )));
        }
        if !(Span::from_secs(1)..=Self::LONGEST).contains(&self.duration) {
            let duration = self.duration;
            return Err(MediaError::Ask(format!(
                "duration {duration}: write 1s to 24h"
            )));
        }
        if !(Span::ZERO..=Span::from_secs(60)).contains(&self.buffer) {
            let buffer = self.buffer;
            return Err(MediaError::Ask(format!("buffer {buffer}: write 0 to 60s")));
        }
        Ok(())
    }
}

/// Seconds without a packet at its end after which a stream has broken off.
const SILENT: usize = 3;

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaMeasured {
    /// The server.
    pub address: SocketAddr,
    /// What was asked for.
    pub ask: MediaAsk,
    /// When all streams were asked to begin.
    pub started: Wall,
    /// The streams, in their order.
    pub streams: Vec<StreamMeasured>,
    /// It was stopped before its time was over.
    pub is_stopped: bool,
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamMeasured {
    /// The encoding that the server names.
    pub encoding: Option<String>,
    /// The figures.
    pub figures: StreamFigures,
    /// Its whole seconds.
    pub seconds: Vec<StreamSecond>,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl StreamMeasured {
    /// That it fell silent and stayed so: what was lost after the last packet is in no other figure.
    fn silence(&self) -> Option<String> {
        let silent = self.seconds.iter().rev().take_while(|one| one.packets == 0);
        let silent = silent.count();
        (silent >= SILENT).then(|| format!("no packet came in its last {silent} s"))
    }
}

impl MediaMeasured {
    /// The first stream that broke off, with its number from 1 and why.
    pub fn fault(&self) -> Option<String> {
        let mut streams = (1..).zip(&self.streams);
        streams.find_map(|(number, stream): (u32, _)| {
            let fault = stream.fault.clone().or_else(|| stream.silence());
            Some(format!("stream {number}: {}", fault?))
        })
    }
}
