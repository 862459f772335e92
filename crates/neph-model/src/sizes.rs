//! What a kind of probe really sends where a size is requested.
//!
//! Owns the rounding, so that plans, labels, costs, the store and the wire have one number. Does
//! not build the bytes.

use crate::{ByteSize, ProbeKind, RequestSize};

/// The shortest reply of a neph reflector with timestamps in its payload, bytes. neph-probe
/// compares this and the sizes of STAMP to those of neph-wire.
pub const MIN_REPLY: u64 = 68;
/// STAMP packets without a tag, bytes.
const STAMP_OPEN: StampSizes = StampSizes {
    bare: 44,
    with_marks: 104,
};
/// STAMP packets with a tag, bytes.
const STAMP_KEYED: StampSizes = StampSizes {
    bare: 112,
    with_marks: 192,
};

/// The sizes of a STAMP request, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampSizes {
    /// The bare packet.
    pub bare: u64,
    /// The smallest request with room for a reflector's timestamps (and the tag that guards them).
    pub with_marks: u64,
}

/// Whether STAMP packets are authenticated: they are longer then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authenticated {
    /// Open (RFC 8762, 4.2.1.1).
    #[default]
    No,
    /// With a tag (RFC 8762, 4.2.1.2).
    Yes,
}

impl Authenticated {
    /// By whether there is a key.
    pub const fn by<K>(key: Option<&K>) -> Self {
        match key {
            None => Self::No,
            Some(_) => Self::Yes,
        }
    }
}

/// The payload of each request: `requested`, raised to what the kind needs. STAMP has two least sizes:
/// the bare packet, if exactly that is requested, and the packet with room for a reflector's
/// timestamps. 0 where the protocol decides.
pub fn sent_size(kind: ProbeKind, requested: ByteSize, authenticated: Authenticated) -> ByteSize {
    let bytes = match kind.properties().request_size {
        RequestSize::AtLeast(min) => requested.bytes().max(min),
        RequestSize::Fixed(_) => 0,
        RequestSize::Stamp => {
            let StampSizes { bare, with_marks } = stamp_sizes(authenticated);
            if requested.bytes() == bare {
                bare
            } else {
                requested.bytes().max(with_marks)
            }
        }
    };
    ByteSize(bytes.min(kind.properties().most_payload.bytes()))
}

/// A STAMP packet's sizes.
pub const fn stamp_sizes(authenticated: Authenticated) -> StampSizes {
    match authenticated {
        Authenticated::No => STAMP_OPEN,
        Authenticated::Yes => STAMP_KEYED,
    }
}

/// Why a requested size is not sent, in a sentence; `None` if it is.
pub fn why_raised(kind: ProbeKind, requested: ByteSize, sent: ByteSize) -> Option<String> {
    if requested == sent {
        return None;
    }
    let (requested, sent) = (requested.exact(), sent.exact());
    Some(match kind.properties().request_size {
        RequestSize::Fixed(reason) => reason.to_owned(),
        RequestSize::Stamp => {
            let StampSizes { bare, .. } = stamp_sizes(Authenticated::No);
            format!(
                "udp: {requested} is raised to {sent}, the size of a reflector's timestamps; {bare} B is a standard \
                 STAMP packet without them"
            )
        }
        RequestSize::AtLeast(_) => {
            format!("{kind}: {requested} is raised to {sent}, the size of its sequence number")
        }
    })
}

/// The payload of each reply of a neph reflector: `requested`, raised if timestamps in the payload need
/// more. HTTP has them in a header, and datagrams are returned with the length of the request.
pub fn reply_size(kind: ProbeKind, requested: ByteSize) -> ByteSize {
    let min = if kind.properties().has_marks_in_payload {
        MIN_REPLY
    } else {
        0
    };
    ByteSize(requested.bytes().max(min))
}

/// The text of a reply's payload for tables and labels, not rounded: the requested size, and that
/// of a neph reflector if larger. Third-party servers choose their own, so both are named.
pub fn reply_size_in_words(kind: ProbeKind, requested: ByteSize) -> String {
    let sent = reply_size(kind, requested);
    if sent == requested {
        return requested.exact();
    }
    format!("{} (neph reflector: {})", requested.exact(), sent.exact())
}

/// Why replies of a neph reflector are longer than requested, in a sentence; `None` if they are
/// not. Datagrams are returned with the length of the request.
pub fn why_replies_are_raised(kind: ProbeKind, requested: ByteSize) -> Option<String> {
    let sent = reply_size(kind, requested);
    (sent != requested).then(|| {
        format!(
            "{kind}: replies of {} are raised to {}, the size of a reflector's timestamps",
            requested.exact(),
            sent.exact()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_packet_has_the_base_size_or_room_for_timestamps() {
        let sent =
            |requested| sent_size(ProbeKind::Udp, ByteSize(requested), Authenticated::No).bytes();
        assert_eq!(
            [16, 43, 44, 45, 64, 103, 104, 1472].map(sent),
            [104, 104, 44, 104, 104, 104, 104, 1472]
        );
        let keyed =
            |requested| sent_size(ProbeKind::Udp, ByteSize(requested), Authenticated::Yes).bytes();
        assert_eq!([44, 112, 113, 1472].map(keyed), [192, 112, 192, 1472]);
        let reason = why_raised(ProbeKind::Udp, ByteSize(64), ByteSize(104)).expect("it is raised");
        assert!(
            reason.contains("64 B is raised to 104 B") && reason.contains("44 B"),
            "{reason}"
        );
        assert_eq!(why_raised(ProbeKind::Udp, ByteSize(44), ByteSize(44)), None);
    }

    #[test]
    fn a_reply_larger_than_requested_is_printed_with_both_sizes() {
        let reply_text = |kind, requested| reply_size_in_words(kind, ByteSize(requested));
        for kind in [ProbeKind::Ws, ProbeKind::Tcp] {
            assert_eq!(reply_text(kind, 64), "64 B (neph reflector: 68 B)");
            assert_eq!(reply_text(kind, 68), "68 B");
        }
        assert_eq!(
            reply_text(ProbeKind::Http, 64),
            "64 B",
            "marks are in the head"
        );
        assert_eq!(reply_text(ProbeKind::Udp, 44), "44 B");
    }

    #[test]
    fn other_probes_need_their_sequence_number_and_a_syn_has_no_payload() {
        let sent = |kind| sent_size(kind, ByteSize(1), Authenticated::No).bytes();
        let kinds = [ProbeKind::Ws, ProbeKind::Icmp, ProbeKind::Syn];
        let (stream, icmp) = (12_u64, 12_u64);
        assert_eq!(kinds.map(sent), [stream, icmp, 0]);
        let reason = why_replies_are_raised(ProbeKind::Ws, ByteSize(9)).expect("it is raised");
        assert!(reason.contains("9 B are raised to"), "{reason}");
        assert_eq!(why_replies_are_raised(ProbeKind::Ws, ByteSize(1024)), None);
        assert_eq!(why_replies_are_raised(ProbeKind::Icmp, ByteSize(9)), None);
    }
}
