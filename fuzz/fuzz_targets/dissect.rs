//! A captured packet behind any link, in any tunnel: payloads lie within it, and a packet of which
//! less was kept has the same transport header with the same length of payload, or none, and is said to
//! be cut where nothing is seen. What is read at a glance is what dissecting says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::dissect::{Link, NoPacket, Transport, dissect, plain, why_not};
use neph_wire::ip::tcp_timestamps;

fuzz_target!(|bytes: &[u8]| {
    let [link, cut, packet @ ..] = bytes else {
        return;
    };
    let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
    let link = Link::numbered(u32::from(*link));
    let fast = plain(link, packet);
    // NoPacket of it is missing.
    assert_eq!(why_not(link, packet, length), NoPacket::NotIp);
    let Some(full) = dissect(link, packet, length) else {
        assert_eq!(fast, None);
        return;
    };
    if let Some(fast) = fast {
        let Transport::Tcp {
            header,
            payload_len,
        } = full.transport
        else {
            panic!("{full:?}");
        };
        assert_eq!(
            (fast.seq, fast.ack, fast.flags),
            (header.seq, header.ack, header.flags)
        );
        assert_eq!(
            (fast.stamps, fast.payload_len),
            (tcp_timestamps(header.options), payload_len)
        );
        assert_eq!(usize::from(fast.total_len), full.ip.total_len);
    }
    assert!(full.ip.header_len + full.ip.payload.len() <= packet.len());
    if let Transport::Tcp { header, .. } = full.transport {
        assert!(header.payload.len() + header.options.len() + 20 <= full.ip.payload.len());
    }
    if let Transport::Udp { header, .. } = full.transport {
        assert!(header.payload.len() + 8 <= full.ip.payload.len());
    }
    let kept = packet.len().saturating_sub(usize::from(*cut));
    let Some(part) = dissect(link, &packet[..kept], length) else {
        assert_eq!(why_not(link, &packet[..kept], length), NoPacket::Cut);
        return;
    };
    // What was cut off of a tunnel's packet may leave the tunnel's own header alone.
    if part.tunnel != full.tunnel || part.ip.source != full.ip.source {
        return;
    }
    if let (
        Transport::Tcp {
            header,
            payload_len,
        },
        Transport::Tcp {
            header: full_header,
            payload_len: full_length,
        },
    ) = (part.transport, full.transport)
    {
        assert_eq!(
            (header.seq, header.ack, header.flags),
            (full_header.seq, full_header.ack, full_header.flags)
        );
        assert_eq!(payload_len, full_length);
    }
});
