//! The records of links, packet by packet.

use neph_lab::{Handling, Passing, Record, Verdict};

use super::direction;

crate::rows! {
    /// A record of a link. What a kind of record does not have is left out. Times are Unix time in
    /// nanoseconds.
    pub struct RecordRow {
        /// The file.
        file: String,
        /// The link.
        link: String,
        /// `a_to_b` or `b_to_a`.
        #[serde(skip_serializing_if = "Option::is_none")]
        direction: Option<&'static str>,
        /// `packet`, `step`, `cue` or `anchor`.
        kind: &'static str,
        /// When the packet arrived, or the step came about.
        at_ns: i64,
        /// When the packet was due to leave.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ns: Option<i64>,
        /// When the packet left.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_ns: Option<i64>,
        /// From arrival to leaving, in nanoseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ns: Option<i64>,
        /// From being due to leaving, in nanoseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        lateness_ns: Option<i64>,
        /// The packet's length, Ethernet header included.
        #[serde(skip_serializing_if = "Option::is_none")]
        length_bytes: Option<u32>,
        /// What became of the packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<&'static str>,
        /// The path that it took, from 0; null where it was dropped before.
        path: Option<u8>,
        /// Whether it is a copy.
        #[serde(skip_serializing_if = "Option::is_none")]
        copy: Option<bool>,
        /// The bit that was flipped, counted from the first of the frame.
        flipped_bit: Option<u16>,
        /// Whether it left before packets that arrived earlier.
        #[serde(skip_serializing_if = "Option::is_none")]
        early: Option<bool>,
        /// The IP protocol.
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<u8>,
        /// The source port.
        #[serde(skip_serializing_if = "Option::is_none")]
        source_port: Option<u16>,
        /// The destination port.
        #[serde(skip_serializing_if = "Option::is_none")]
        destination_port: Option<u16>,
        /// The sequence number of TCP.
        #[serde(skip_serializing_if = "Option::is_none")]
        tcp_seq: Option<u32>,
        /// The identification of IP.
        #[serde(skip_serializing_if = "Option::is_none")]
        ip_id: Option<u16>,
        /// A hash of what the packet carries, in hex: readers of JSON keep 53 bits of a number.
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
        /// The entry of the schedule, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<u16>,
        /// Whether the entry begins or ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<&'static str>,
        /// The monotonic clock at the time of an anchor.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_ns: Option<i64>,
    }
}

impl RecordRow {
    /// The row of a record of this file and link.
    pub fn of(file: &str, link: &str, record: &Record) -> Self {
        let row = |kind, at_ns| Self::empty(file, link, kind, at_ns);
        match record {
            Record::Packet {
                passing,
                handling,
                verdict,
                due,
                left,
            } => {
                // A packet that the kernel refused was due as well.
                let has_left =
                    matches!(verdict, Verdict::Delivered | Verdict::Refused) && *left != 0;
                Self {
                    verdict: Some(verdict.name()),
                    due_ns: has_left.then_some(*due),
                    left_ns: has_left.then_some(*left),
                    delay_ns: has_left.then(|| left.saturating_sub(passing.arrival)),
                    lateness_ns: has_left.then(|| left.saturating_sub(*due)),
                    ..row("packet", passing.arrival).passing(passing, *handling)
                }
            }
            Record::Step {
                direction: number,
                number: entry,
                turn,
                at,
            } => Self {
                direction: Some(direction(*number)),
                entry: Some(*entry),
                turn: Some(turn.name()),
                ..row("step", *at)
            },
            Record::Cue { at } => row("cue", *at),
            Record::Anchor { wall, raw } => Self {
                raw_ns: Some(*raw),
                ..row("anchor", *wall)
            },
        }
    }

    /// Nothing but where it is from, what it is and when it was.
    fn empty(file: &str, link: &str, kind: &'static str, at_ns: i64) -> Self {
        Self {
            file: file.to_owned(),
            link: link.to_owned(),
            kind,
            at_ns,
            direction: None,
            due_ns: None,
            left_ns: None,
            delay_ns: None,
            lateness_ns: None,
            length_bytes: None,
            verdict: None,
            path: None,
            copy: None,
            flipped_bit: None,
            early: None,
            protocol: None,
            source_port: None,
            destination_port: None,
            tcp_seq: None,
            ip_id: None,
            hash: None,
            entry: None,
            turn: None,
            raw_ns: None,
        }
    }

    fn passing(self, passing: &Passing, handling: Handling) -> Self {
        let identity = &passing.identity;
        Self {
            direction: Some(direction(passing.direction)),
            length_bytes: Some(passing.length),
            path: handling.path,
            copy: Some(handling.copy),
            flipped_bit: handling.flipped,
            early: Some(handling.early),
            protocol: Some(identity.protocol),
            source_port: Some(identity.source_port),
            destination_port: Some(identity.destination_port),
            tcp_seq: Some(identity.tcp_seq),
            ip_id: Some(identity.ip_id),
            hash: Some(format!("{:016x}", identity.hash)),
            ..self
        }
    }
}
