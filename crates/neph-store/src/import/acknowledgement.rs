//! Reads the tshark report: TCP acknowledgements of messages, and retransmissions.

use std::path::Path;

use super::decimal::parse_scaled;
use super::lines::Lines;
use super::raw::{Acknowledgement, RawFile, Retransmission};
use super::report::ImportReport;
use crate::StoreError;

/// A retransmission up to this long after the last reply belongs to the experiment.
const MAX_RETRANSMISSION_DELAY_NANOS: i64 = 1_000_000_000;

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Frame {
    /// A segment was acknowledged.
    Acknowledged(Acknowledgement),
    /// A segment was retransmitted.
    Retransmitted(Retransmission),
    /// A segment without either.
    Other,
}

/// Reads a report and assigns each acknowledgement to its message. `files` are sorted by start.
pub(super) fn read_tshark(
    path: &Path,
    files: &mut [RawFile],
    report: &mut ImportReport,
) -> Result<(), StoreError> {
    let ends_unix_ns: Vec<i64> = files.iter().map(RawFile::ended_unix_ns).collect();
    let mut lines = Lines::of(path)?;
    while let Some(line) = lines.next()? {
        if line.text.is_empty() || line.text.starts_with('#') {
            continue;
        }
        match parse_frames(&line.text) {
            Ok(frames) => {
                for frame in frames {
                    if !assign_frame(frame, files, &ends_unix_ns) {
                        report.acknowledgements_outside += 1;
                    }
                }
            }
            Err(message) => report.add_problem(path, Some(line.number), message),
        }
    }
    Ok(())
}

/// `"1611336442.75","0.0395","0","1","172.17.0.2"`; older reports lack the last two fields. A line
/// can be both an acknowledgement and a retransmission.
fn parse_frames(text: &str) -> Result<[Frame; 2], String> {
    let fields: Vec<&str> = text
        .split(',')
        .map(|field| field.trim().trim_matches('"'))
        .collect();
    if !(3..=5).contains(&fields.len()) {
        return Err(format!("{} fields instead of 5: left out", fields.len()));
    }
    let at_unix_ns = parse_scaled(fields[0], 9)
        .filter(|nanos| *nanos >= 0)
        .ok_or_else(|| format!("'{}' is no time in Unix seconds: left out", fields[0]))?;
    let acknowledgement = match fields[1] {
        "" => Frame::Other,
        text => parse_scaled(text, 9)
            .filter(|nanos| (0..=at_unix_ns).contains(nanos))
            .map(|round_trip_ns| {
                Frame::Acknowledged(Acknowledgement {
                    sent_unix_ns: at_unix_ns - round_trip_ns,
                    acknowledged_unix_ns: at_unix_ns,
                })
            })
            .ok_or_else(|| format!("'{text}' is no round trip in seconds: left out"))?,
    };
    let retransmission = match fields.get(3) {
        Some(&"1") => Frame::Retransmitted(Retransmission {
            at_unix_ns,
            text: describe_segment(fields[2], fields.get(4).copied().unwrap_or_default()),
        }),
        _ => Frame::Other,
    };
    Ok([acknowledgement, retransmission])
}

/// Describes the segment; older reports have no destination.
fn describe_segment(stream: &str, destination: &str) -> String {
    let mut description = "a segment was retransmitted".to_owned();
    if !destination.is_empty() {
        description.push_str(&format!(" to {destination}"));
    }
    if !stream.is_empty() {
        description.push_str(&format!(" (tcp.stream {stream})"));
    }
    description
}

/// Returns whether the frame belongs to a file.
fn assign_frame(frame: Frame, files: &mut [RawFile], file_ends: &[i64]) -> bool {
    let index_of_file = |unix_ns: i64, files: &[RawFile]| {
        files
            .partition_point(|file| file.started_unix_ns() <= unix_ns)
            .checked_sub(1)
    };
    match frame {
        Frame::Other => true,
        Frame::Retransmitted(segment) => {
            let at_unix_ns = segment.at_unix_ns;
            let index = index_of_file(at_unix_ns, files).filter(|file_index| {
                let end_unix_ns = file_ends[*file_index];
                at_unix_ns <= end_unix_ns.saturating_add(MAX_RETRANSMISSION_DELAY_NANOS)
            });
            index
                .map(|file_index| files[file_index].retransmissions.push(segment))
                .is_some()
        }
        Frame::Acknowledged(acknowledgement) => {
            // A segment belongs to a message if it left after the message was sent and before its
            // reply. Both times are of the client's clock. The last segment's acknowledgement
            // counts.
            let sent_unix_ns = acknowledgement.sent_unix_ns;
            let Some(file_index) = index_of_file(sent_unix_ns, files) else {
                return false;
            };
            let messages = &mut files[file_index].messages;
            let after = messages.partition_point(|message| message.sent_unix_ns <= sent_unix_ns);
            let Some(message) = after
                .checked_sub(1)
                .and_then(|index| messages.get_mut(index))
            else {
                return false;
            };
            if sent_unix_ns > message.received_unix_ns {
                return false;
            }
            let is_last_segment = message.acknowledgement.is_none_or(|earlier| {
                earlier.acknowledged_unix_ns <= acknowledgement.acknowledged_unix_ns
            });
            if is_last_segment {
                message.acknowledgement = Some(acknowledgement);
            }
            true
        }
    }
}
