//! The records of links by packet.

use neph_lab::{PacketHandling, PacketPassage, Record, Verdict};

use super::direction_name;

crate::rows! {
    /// A record of a link. A key that the kind of record does not have is absent. Times are Unix
    /// nanoseconds.
    pub struct RecordRow {
        /// Name of the file.
        file: String,
        /// Name of the link.
        link: String,
        /// Direction: `a_to_b` or `b_to_a`.
        #[serde(skip_serializing_if = "Option::is_none")]
        direction: Option<&'static str>,
        /// Kind of record: `packet`, `step` (an entry of the schedule was applied), `cue` (the
        /// schedule began) or `anchor` (a reading of both clocks).
        kind: &'static str,
        /// Arrival of the packet, or time of the step.
        at_ns: i64,
        /// Scheduled departure of the packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ns: Option<i64>,
        /// Actual departure of the packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        departed_ns: Option<i64>,
        /// Time from arrival to actual departure.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ns: Option<i64>,
        /// Time from scheduled to actual departure.
        #[serde(skip_serializing_if = "Option::is_none")]
        lateness_ns: Option<i64>,
        /// Length of the packet, Ethernet header included.
        #[serde(skip_serializing_if = "Option::is_none")]
        length_bytes: Option<u32>,
        /// Outcome of the packet: `delivered`, or why it was dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<&'static str>,
        /// Index of the path that the packet took, from 0; null if it was dropped before, and for
        /// other kinds.
        path: Option<u8>,
        /// Whether the packet is the copy of a duplicated packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        copy: Option<bool>,
        /// Bit that was flipped, counted from the start of the frame; null if none was.
        flipped_bit: Option<u16>,
        /// Whether the packet skipped its delay, and so was reordered.
        #[serde(skip_serializing_if = "Option::is_none")]
        reordered: Option<bool>,
        /// Number of the IP protocol.
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<u8>,
        /// Source port.
        #[serde(skip_serializing_if = "Option::is_none")]
        source_port: Option<u16>,
        /// Destination port.
        #[serde(skip_serializing_if = "Option::is_none")]
        destination_port: Option<u16>,
        /// TCP sequence number.
        #[serde(skip_serializing_if = "Option::is_none")]
        tcp_seq: Option<u32>,
        /// IP identification.
        #[serde(skip_serializing_if = "Option::is_none")]
        ip_id: Option<u16>,
        /// Hash of the packet's content, hexadecimal: JSON numbers have 53 bits.
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
        /// Entry of the schedule, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<u16>,
        /// What the entry did: `begins`, `ends`, `reshuffles` or `rebalances`.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'static str>,
        /// Reading of the monotonic clock at an anchor.
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
                passage,
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
                    departed_ns: has_left.then_some(*left),
                    delay_ns: has_left.then(|| left.saturating_sub(passage.arrival)),
                    lateness_ns: has_left.then(|| left.saturating_sub(*due)),
                    ..row("packet", passage.arrival).with_passage(passage, *handling)
                }
            }
            Record::Step {
                direction: number,
                number: entry,
                event,
                at,
            } => Self {
                direction: Some(direction_name(*number)),
                entry: Some(*entry),
                action: Some(event.name()),
                ..row("step", *at)
            },
            Record::Cue { at } => row("cue", *at),
            Record::Anchor { wall, raw } => Self {
                raw_ns: Some(*raw),
                ..row("anchor", *wall)
            },
        }
    }

    /// A row with only its source, its kind and its time.
    fn empty(file: &str, link: &str, kind: &'static str, at_ns: i64) -> Self {
        Self {
            file: file.to_owned(),
            link: link.to_owned(),
            kind,
            at_ns,
            direction: None,
            due_ns: None,
            departed_ns: None,
            delay_ns: None,
            lateness_ns: None,
            length_bytes: None,
            verdict: None,
            path: None,
            copy: None,
            flipped_bit: None,
            reordered: None,
            protocol: None,
            source_port: None,
            destination_port: None,
            tcp_seq: None,
            ip_id: None,
            hash: None,
            entry: None,
            action: None,
            raw_ns: None,
        }
    }

    fn with_passage(self, passage: &PacketPassage, handling: PacketHandling) -> Self {
        let identity = &passage.identity;
        Self {
            direction: Some(direction_name(passage.direction)),
            length_bytes: Some(passage.length),
            path: handling.path,
            copy: Some(handling.is_copy),
            flipped_bit: handling.flipped,
            reordered: Some(handling.is_early),
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
