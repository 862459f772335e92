//! Reads a raw-data file: the messages of one step.

use std::path::{Path, PathBuf};

use neph_model::TcpField;

use super::decimal::parse_scaled;
use super::file_name::FileName;
use super::lines::Lines;
use super::report::ImportReport;
use crate::StoreError;

/// One message. Times are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawMessage {
    /// Send time at the client.
    pub(super) sent_unix_ns: i64,
    /// When the server handled it, by the server's clock.
    pub(super) server_unix_ns: Option<i64>,
    /// Arrival of the reply at the client.
    pub(super) received_unix_ns: i64,
    /// When its last segment left and was acknowledged, from a tshark report.
    pub(super) acknowledgement: Option<Acknowledgement>,
    /// Its reply arrived after the reply of a later message.
    pub(super) reordered: bool,
}

/// A segment's departure and its TCP acknowledgement, as tshark captured them at the client. Times
/// are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) sent_unix_ns: i64,
    pub(super) acknowledged_unix_ns: i64,
}

/// A sample of the client's `TCP_INFO`, from a file of TCP statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpRow {
    pub(super) at_unix_ns: i64,
    pub(super) values: Vec<(TcpField, u64)>,
}

/// A retransmitted segment, from a tshark report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retransmission {
    pub(super) at_unix_ns: i64,
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
        let mut latest_sent_unix_ns = i64::MIN;
        while let Some(line) = lines.next()? {
            if line.text.is_empty() || line.text.starts_with('#') {
                continue;
            }
            match parse_message(&line.text) {
                Ok(mut message) => {
                    // Lines are in the order of the replies.
                    message.reordered = message.sent_unix_ns < latest_sent_unix_ns;
                    latest_sent_unix_ns = latest_sent_unix_ns.max(message.sent_unix_ns);
                    messages.push(message);
                }
                Err(message) => report.add_problem(path, Some(line.number), message),
            }
        }
        if messages.is_empty() {
            report.add_problem(path, None, "no message in it: left out");
            return Ok(None);
        }
        messages.sort_by_key(|message| message.sent_unix_ns);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = FileName::parse(&stem);
        if !name.is_complete() {
            report.add_problem(
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
    pub(super) fn started_unix_ns(&self) -> i64 {
        let first = self.messages.first();
        first.map_or(0, |message| message.sent_unix_ns)
    }

    /// Arrival of its last reply.
    pub(super) fn ended_unix_ns(&self) -> i64 {
        let received_unix_ns = self.messages.iter().map(|message| message.received_unix_ns);
        received_unix_ns
            .max()
            .unwrap_or_else(|| self.started_unix_ns())
    }

    /// Time between two requests: from the name, or the median of the measured ones.
    pub(super) fn interval_ns(&self) -> i64 {
        if let Some(interval) = self.name.interval {
            return interval.nanos();
        }
        let sent_unix_ns = self.messages.iter().map(|message| message.sent_unix_ns);
        let next_sent_unix_ns = sent_unix_ns.clone().skip(1);
        let mut gaps_ns: Vec<i64> = sent_unix_ns
            .zip(next_sent_unix_ns)
            .map(|(sent, next)| next.saturating_sub(sent))
            .collect();
        gaps_ns.sort_unstable();
        gaps_ns.get(gaps_ns.len() / 2).copied().unwrap_or(0)
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
    let sent_unix_ns =
        parse_unix_nanos(sent).ok_or_else(|| invalid("client time in Unix nanoseconds", sent))?;
    let server_unix_ns = match server {
        "" => None,
        text => Some(
            parse_unix_nanos(text)
                .ok_or_else(|| invalid("server time in Unix nanoseconds", text))?,
        ),
    };
    let received_unix_ns = parse_scaled(round_trip, 6)
        .filter(|nanos| *nanos >= 0)
        .and_then(|nanos| sent_unix_ns.checked_add(nanos))
        .ok_or_else(|| invalid("round trip in milliseconds", round_trip))?;
    Ok(RawMessage {
        sent_unix_ns,
        server_unix_ns,
        received_unix_ns,
        acknowledgement: None,
        reordered: false,
    })
}

/// A time after 1970, so that the difference of two never overflows.
fn parse_unix_nanos(text: &str) -> Option<i64> {
    text.parse().ok().filter(|nanos| *nanos >= 0)
}
