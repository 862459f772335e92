//! Reads a raw-data file: the messages of one step.

use std::path::{Path, PathBuf};

use neph_model::TcpField;

use super::decimal::scaled;
use super::file_name::FileName;
use super::lines::Lines;
use super::report::ImportReport;
use crate::StoreError;

/// One message. Times are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawMessage {
    /// Send time at the client.
    pub(super) sent: i64,
    /// When the server handled it, by the server's clock.
    pub(super) server: Option<i64>,
    /// Arrival of the reply at the client.
    pub(super) received: i64,
    /// When its last segment left and was acknowledged, from a tshark report.
    pub(super) acknowledged: Option<Acknowledged>,
    /// Its reply arrived after the reply of a later message.
    pub(super) reordered: bool,
}

/// A segment's departure and its TCP acknowledgement, as tshark captured them at the client. Times
/// are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) sent: i64,
    pub(super) at: i64,
}

/// A sample of the client's `TCP_INFO`, from a file of TCP statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpRow {
    /// Unix nanoseconds.
    pub(super) at: i64,
    pub(super) values: Vec<(TcpField, u64)>,
}

/// A retransmitted segment, from a tshark report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retransmission {
    /// Unix nanoseconds.
    pub(super) at: i64,
    /// Description of the segment.
    pub(super) text: String,
}

/// All messages of a file, by send time; at least one.
#[derive(Clone, Debug)]
pub(super) struct RawFile {
    pub(super) path: PathBuf,
    pub(super) name: FileName,
    pub(super) messages: Vec<RawMessage>,
    /// Retransmitted segments during this file, from a tshark report.
    pub(super) retransmissions: Vec<Retransmission>,
    /// TCP statistics during this file.
    pub(super) tcp_rows: Vec<TcpRow>,
}

impl RawFile {
    /// Reads a file; `None` (and a problem in the report) if it has no message.
    pub(super) fn read(path: &Path, report: &mut ImportReport) -> Result<Option<Self>, StoreError> {
        let mut messages = Vec::new();
        let mut lines = Lines::of(path)?;
        let mut latest_sent = i64::MIN;
        while let Some(line) = lines.next()? {
            if line.text.is_empty() || line.text.starts_with('#') {
                continue;
            }
            match parse_message(&line.text) {
                Ok(mut message) => {
                    // Lines are in the order of the replies.
                    message.reordered = message.sent < latest_sent;
                    latest_sent = latest_sent.max(message.sent);
                    messages.push(message);
                }
                Err(message) => report.problem(path, Some(line.number), message),
            }
        }
        if messages.is_empty() {
            report.problem(path, None, "no message in it: left out");
            return Ok(None);
        }
        messages.sort_by_key(|message| message.sent);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = FileName::parse(&stem);
        if !name.is_complete() {
            report.problem(
                path,
                None,
                "the name contains no interval and size: the name is the scenario, the interval is the measured one",
            );
        }
        Ok(Some(Self {
            path: path.to_owned(),
            name,
            messages,
            retransmissions: Vec::new(),
            tcp_rows: Vec::new(),
        }))
    }

    /// Send time of its first message.
    pub(super) fn started(&self) -> i64 {
        self.messages.first().map_or(0, |message| message.sent)
    }

    /// Arrival of its last reply.
    pub(super) fn ended(&self) -> i64 {
        let received = self.messages.iter().map(|message| message.received);
        received.max().unwrap_or_else(|| self.started())
    }

    /// Nanoseconds between two requests: from the name, or the median of the measured ones.
    pub(super) fn interval(&self) -> i64 {
        if let Some(interval) = self.name.interval {
            return interval.nanos();
        }
        let mut gaps: Vec<i64> = self
            .messages
            .windows(2)
            .map(|consecutive| consecutive[1].sent.saturating_sub(consecutive[0].sent))
            .collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied().unwrap_or(0)
    }
}

fn parse_message(text: &str) -> Result<RawMessage, String> {
    let mut fields = text.split(',').map(str::trim);
    let (Some(sent), Some(server), Some(round_trip), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err("not three fields: left out".to_owned());
    };
    let invalid = |noun: &str, value: &str| format!("'{value}' is no {noun}: left out");
    let sent =
        parse_unix_nanos(sent).ok_or_else(|| invalid("client time in Unix nanoseconds", sent))?;
    let server = match server {
        "" => None,
        text => Some(
            parse_unix_nanos(text)
                .ok_or_else(|| invalid("server time in Unix nanoseconds", text))?,
        ),
    };
    let received = scaled(round_trip, 6)
        .filter(|nanos| *nanos >= 0)
        .and_then(|nanos| sent.checked_add(nanos))
        .ok_or_else(|| invalid("round trip in milliseconds", round_trip))?;
    Ok(RawMessage {
        sent,
        server,
        received,
        acknowledged: None,
        reordered: false,
    })
}

/// A time after 1970, so that the difference of two never overflows.
fn parse_unix_nanos(text: &str) -> Option<i64> {
    text.parse().ok().filter(|nanos| *nanos >= 0)
}
