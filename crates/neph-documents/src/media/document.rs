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
    /// Version of this schema.
    pub schema: Version,
    /// Address and port of the server.
    pub server: String,
    /// Requested URL.
    pub url: String,
    /// Planned duration of each stream.
    pub duration_ns: Span,
    /// Play-out buffer by which frames count as late.
    pub buffer_ns: Span,
    /// Requested common start of all streams, on the client's clock.
    pub started_unix_ns: i64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// The first stream that broke, and why; null if none did.
    pub fault: Option<String>,
    /// Results of each stream, in order.
    pub streams: Vec<StreamDocument>,
}

/// A stream with its results.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StreamDocument {
    /// Results over the whole stream.
    #[serde(flatten)]
    pub figures: StreamRow,
    /// Results of each whole second.
    pub seconds: Vec<SecondRow>,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MediaLine {
    /// A second of one stream.
    Second(SecondRow),
    /// Summary: the last line.
    Summary(Box<MediaDocument>),
}

impl From<&MediaMeasured> for MediaDocument {
    fn from(measured: &MediaMeasured) -> Self {
        let streams = (1..).zip(&measured.streams);
        let streams = streams.map(|(number, stream)| StreamDocument {
            figures: StreamRow::new(number, stream),
            seconds: second_rows(number, &stream.seconds),
        });
        Self {
            schema: Version,
            server: measured.address.to_string(),
            url: measured.media_request.url.clone(),
            duration_ns: measured.media_request.duration,
            buffer_ns: measured.media_request.buffer,
            started_unix_ns: measured.started.unix_nanos(),
            is_stopped: measured.is_stopped,
            fault: measured.fault(),
            streams: streams.collect(),
        }
    }
}

fn second_rows(stream: u32, seconds: &[StreamSecond]) -> Vec<SecondRow> {
    let seconds = (0..).zip(seconds);
    let rows = seconds.map(|(index, second)| SecondRow::new(index, stream, second));
    rows.collect()
}
