//! Parameters and results of a client.

use std::net::SocketAddr;

use neph_model::{Span, Wall};

use super::error::MediaError;
use super::second::StreamSecond;
use super::statistics::StreamStatistics;

/// Parameters of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRequest {
    /// The URL of the presentation, as sent to the server.
    pub url: String,
    /// Concurrent streams, each with its RTSP connection.
    pub streams: u16,
    /// Duration of the measurement from the first packet on.
    pub duration: Span,
    /// Play-out buffer: how long a player waits before it shows the first frame.
    pub buffer: Span,
    /// Start time of all streams, so that several clients begin together; absent: as soon as all
    /// are set up.
    pub start: Option<Wall>,
}

impl MediaRequest {
    /// Maximum number of streams of a client.
    pub const MAX_STREAMS: u16 = 256;
    /// Maximum duration.
    pub const MAX_DURATION: Span = Span::from_secs(24 * 3_600);

    /// Checks the parameters.
    ///
    /// # Errors
    /// A value is outside of its range.
    pub fn check(&self) -> Result<(), MediaError> {
        let streams = self.streams;
        if !(1..=Self::MAX_STREAMS).contains(&streams) {
            let max = Self::MAX_STREAMS;
            return Err(MediaError::InvalidRequest(format!(
                "{streams} streams: ask for 1 to {max}"
            )));
        }
        if !(Span::from_secs(1)..=Self::MAX_DURATION).contains(&self.duration) {
            let duration = self.duration;
            return Err(MediaError::InvalidRequest(format!(
                "duration {duration}: write 1s to 24h"
            )));
        }
        if !(Span::ZERO..=Span::from_secs(60)).contains(&self.buffer) {
            let buffer = self.buffer;
            return Err(MediaError::InvalidRequest(format!(
                "buffer {buffer}: write 0 to 60s"
            )));
        }
        Ok(())
    }
}

/// Seconds without a packet at its end after which a stream counts as broken off.
const MIN_SILENT_SECONDS: usize = 3;

/// Results of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaMeasured {
    /// The server.
    pub address: SocketAddr,
    /// The parameters.
    pub media_request: MediaRequest,
    /// When all streams were requested to begin.
    pub started: Wall,
    /// The streams, in order.
    pub streams: Vec<StreamMeasured>,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
}

/// Results of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamMeasured {
    /// The encoding that the server names.
    pub encoding: Option<String>,
    /// The figures.
    pub statistics: StreamStatistics,
    /// Its whole seconds.
    pub seconds: Vec<StreamSecond>,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl StreamMeasured {
    /// Reports that no packet arrived until the end: no other figure contains the losses after the
    /// last packet.
    fn silence(&self) -> Option<String> {
        let silent_seconds = self
            .seconds
            .iter()
            .rev()
            .take_while(|stream_second| stream_second.packets == 0);
        let silent_seconds = silent_seconds.count();
        (silent_seconds >= MIN_SILENT_SECONDS)
            .then(|| format!("no packet came in its last {silent_seconds} s"))
    }
}

impl MediaMeasured {
    /// The first stream that broke off: its number from 1, and the fault.
    pub fn fault(&self) -> Option<String> {
        let mut streams = (1..).zip(&self.streams);
        streams.find_map(|(number, stream): (u32, _)| {
            let fault = stream.fault.clone().or_else(|| stream.silence());
            Some(format!("stream {number}: {}", fault?))
        })
    }
}
