//! Reads the output of `ping -D`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use super::decimal::parse_scaled;
use super::lines::Lines;
use super::report::ImportReport;
use crate::StoreError;

/// A longer gap in the sequence is reported, not filled: ping was interrupted, or the file is
/// damaged.
const MAX_GAP: u64 = 1000;
/// `icmp_seq` has 16 bits.
const SEQUENCE_NUMBERS: u64 = 1 << 16;

/// One ping. Times are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ping {
    /// Send time; for a lost ping, interpolated between its neighbours.
    pub(super) intended_unix_ns: i64,
    /// Arrival of its reply.
    pub(super) received_unix_ns: Option<i64>,
    /// Number of duplicate replies.
    pub(super) duplicates: u16,
}

/// All pings of a file, by time.
#[derive(Clone, Debug)]
pub(super) struct PingFile {
    /// The destination's name from the file name, or the host that was pinged.
    pub(super) name: String,
    /// Its address; unspecified if the file lacks it.
    pub(super) address: IpAddr,
    pub(super) pings: Vec<Ping>,
}

/// A reply with its sequence number since the start of the session.
#[derive(Clone, Copy, Debug)]
struct Reply {
    seq: u64,
    ping: Ping,
}

impl PingFile {
    pub(super) fn read(path: &Path, report: &mut ImportReport) -> Result<Self, StoreError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut file = Self {
            name: stem.strip_prefix("ping_").unwrap_or_default().to_owned(),
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            pings: Vec::new(),
        };
        let mut session: Vec<Reply> = Vec::new();
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            if let Some(header) = line.text.strip_prefix("PING ") {
                file.add_session(&mut session, path, report);
                file.read_header(header);
            } else if line.text.starts_with('[') {
                match parse_reply(&line.text, session.last().map_or(0, |reply| reply.seq)) {
                    Ok(Some(reply)) => session.push(reply),
                    Ok(None) => {}
                    Err(message) => report.add_problem(path, Some(line.number), message),
                }
            }
        }
        file.add_session(&mut session, path, report);
        file.pings.sort_by_key(|ping| ping.intended_unix_ns);
        Ok(file)
    }

    /// `host (address) 56(84) bytes of data.`
    fn read_header(&mut self, header: &str) {
        let mut fields = header.split_whitespace();
        let host = fields.next().unwrap_or_default();
        if self.name.is_empty() {
            host.clone_into(&mut self.name);
        }
        let address = fields
            .next()
            .map(|word| word.trim_matches(['(', ')', ':']))
            .and_then(|word| word.parse().ok())
            .or_else(|| host.parse().ok());
        self.address = address.unwrap_or(self.address);
    }

    /// Adds the replies of one execution of ping, and the lost pings between them.
    fn add_session(&mut self, session: &mut Vec<Reply>, path: &Path, report: &mut ImportReport) {
        session.sort_by_key(|reply| reply.seq);
        let mut previous: Option<Reply> = None;
        for reply in session.drain(..) {
            if let Some(previous_reply) = previous {
                if previous_reply.seq == reply.seq {
                    if let Some(ping) = self.pings.last_mut() {
                        ping.duplicates = ping.duplicates.saturating_add(1);
                    }
                    continue;
                }
                let missing = reply.seq - previous_reply.seq - 1;
                if missing > MAX_GAP {
                    let message = format!(
                        "icmp_seq {} to {} are missing: not counted as lost",
                        previous_reply.seq + 1,
                        reply.seq - 1
                    );
                    report.add_problem(path, None, message);
                } else {
                    self.pings.extend(lost_between(previous_reply, reply));
                }
            }
            self.pings.push(reply.ping);
            previous = Some(reply);
        }
    }
}

/// The pings without a reply, evenly between their neighbours: ping has a constant interval.
fn lost_between(previous_reply: Reply, next_reply: Reply) -> impl Iterator<Item = Ping> {
    let steps = i64::try_from(next_reply.seq - previous_reply.seq).unwrap_or(i64::MAX);
    let previous_unix_ns = previous_reply.ping.intended_unix_ns;
    let next_unix_ns = next_reply.ping.intended_unix_ns;
    let step_ns = next_unix_ns.saturating_sub(previous_unix_ns) / steps;
    (1..steps).map(move |step_number| Ping {
        intended_unix_ns: previous_unix_ns + step_ns * step_number,
        received_unix_ns: None,
        duplicates: 0,
    })
}

/// `[1611336429.383812] 64 bytes from 130.192.31.254: icmp_seq=1 ttl=242 time=71.8 ms`; the
/// timestamp is the arrival of the reply. `None` for a line that reports a missing reply: the gap
/// shows it.
fn parse_reply(text: &str, last_seq: u64) -> Result<Option<Reply>, String> {
    let field = |name: &str| {
        text.split_whitespace()
            .find_map(|word| word.strip_prefix(name))
    };
    if !text.contains(" bytes from ") {
        return match field("icmp_seq=") {
            Some(_) => Ok(None),
            None => Err("no reply and no icmp_seq: left out".to_owned()),
        };
    }
    let timestamp = text
        .trim_start_matches('[')
        .split(']')
        .next()
        .unwrap_or_default();
    let received_unix_ns = parse_scaled(timestamp, 9)
        .filter(|nanos| *nanos >= 0)
        .ok_or_else(|| format!("'{timestamp}' is no time in Unix seconds: left out"))?;
    let seq = field("icmp_seq=")
        .and_then(|seq| seq.parse::<u16>().ok())
        .ok_or("no icmp_seq between 0 and 65535: left out")?;
    let round_trip_ns = field("time=")
        .and_then(|millis| parse_scaled(millis, 6))
        .filter(|nanos| (0..=received_unix_ns).contains(nanos))
        .ok_or("no round trip in milliseconds: left out")?;
    Ok(Some(Reply {
        seq: unwrap_seq(u64::from(seq), last_seq),
        ping: Ping {
            intended_unix_ns: received_unix_ns - round_trip_ns,
            received_unix_ns: Some(received_unix_ns),
            duplicates: 0,
        },
    }))
}

/// The number since the start of the session with these 16 bits that is nearest to the last one.
const fn unwrap_seq(seq: u64, last_seq: u64) -> u64 {
    let unwrapped = last_seq - last_seq % SEQUENCE_NUMBERS + seq;
    if unwrapped + SEQUENCE_NUMBERS / 2 < last_seq {
        unwrapped + SEQUENCE_NUMBERS
    } else if unwrapped > last_seq + SEQUENCE_NUMBERS / 2 && unwrapped >= SEQUENCE_NUMBERS {
        unwrapped - SEQUENCE_NUMBERS
    } else {
        unwrapped
    }
}
