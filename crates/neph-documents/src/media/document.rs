//! A media measurement as one document, and its lines of NDJSON.

use neph_load::media::{MediaMeasured, StreamSecond};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

use super::second::SecondRow;
use super::stream::StreamRow;

/// A media measurement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MediaDocument {
    /// The version of this document.
    pub schema: Version,
    /// The server's address and port.
    pub server: String,
    /// The URL that was asked for.
    pub url: String,
    /// How long each stream was to be measured, in nanoseconds.
    pub duration_ns: Span,
    /// The play-out buffer that frames were judged with, in nanoseconds.
    pub buffer_ns: Span,
    /// When all streams were asked to begin, by the client's clock.
    pub started_unix_ns: i64,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
    /// The first stream that broke off, and why; null where none did.
    pub fault: Option<String>,
    /// The streams, in their order.
    pub streams: Vec<StreamDocument>,
}

/// A stream.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StreamDocument {
    /// Its figures.
    #[serde(flatten)]
    pub figures: StreamRow,
    /// Its whole seconds.
    pub seconds: Vec<SecondRow>,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MediaLine {
    /// A second of one stream.
    Second(SecondRow),
    /// The last line.
    Summary(Box<MediaDocument>),
}

impl From<&MediaMeasured> for MediaDocument {
    fn from(measured: &MediaMeasured) -> Self {
        let streams = (1..).zip(&measured.streams);
        let streams = streams.map(|(number, stream)| StreamDocument {
            figures: StreamRow::new(number, stream),
            seconds: seconds(number, &stream.seconds),
        });
        Self {
            schema: Version,
            server: measured.address.to_string(),
            url: measured.ask.url.clone(),
            duration_ns: measured.ask.duration,
            buffer_ns: measured.ask.buffer,
            started_unix_ns: measured.started.unix_nanos(),
            is_stopped: measured.is_stopped,
            fault: measured.fault(),
            streams: streams.collect(),
        }
    }
}

fn seconds(stream: u32, seconds: &[StreamSecond]) -> Vec<SecondRow> {
    let seconds = (0..).zip(seconds);
    let rows = seconds.map(|(index, second)| SecondRow::new(index, stream, second));
    rows.collect()
}
