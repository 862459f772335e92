use std::net::UdpSocket;

use crate::deadline::wait_until;

use super::super::{PacketRing, RingMode};
use super::*;
use crate::ppoll::{Awaited, wait};
use crate::process;
use crate::ring::Tag;
use crate::ring::tests::pair::with_pair;

const TAKING: Taking<'_> = Taking {
    blocks: 2,
    wake: Duration::from_millis(5),
    filter: &[],
};

/// Blocks enough for a sender that is kept waiting while it sends.
const AMPLE: Taking<'_> = Taking {
    blocks: 16,
    ..TAKING
};

/// Sends a frame, once there is room for it.
fn send(sender: &PacketRing, frame: &[u8]) {
    let has_room = wait_until(Duration::from_secs(20), || match sender.send(frame) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
        sent => {
            sent.expect("send");
            true
        }
    });
    assert!(has_room, "no room for a frame");
}

/// The recorded properties of a packet, without its time.
#[derive(Debug, PartialEq, Eq)]
struct RecordedPacket {
    bytes: Vec<u8>,
    wire_length: u32,
    tag: Option<Tag>,
    is_outgoing: bool,
}

/// Takes packets until there are `many`, or nothing comes for two seconds; times must not go back.
fn take(ring: &mut BlockRing, many: usize) -> Vec<RecordedPacket> {
    let (mut observed, mut last) = (Vec::new(), 0);
    while observed.len() < many {
        let mut awaited = [Awaited::readable(ring.as_fd())];
        wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
        if !awaited[0].is_readable() {
            break;
        }
        while let Some(block) = ring.next_block() {
            for packet in block.packets() {
                assert!(packet.stamp() >= last, "{} then {last}", packet.stamp());
                last = packet.stamp();
                observed.push(RecordedPacket {
                    bytes: packet.bytes().to_vec(),
                    wire_length: packet.wire_length(),
                    tag: packet.tag(),
                    is_outgoing: packet.is_outgoing(),
                });
            }
        }
    }
    observed
}

/// An Ethernet frame of an unused type.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(length.max(18), 7);
    frame
}

#[test]
fn packets_arrive_in_order_whole_or_truncated_by_the_filter() {
    with_pair("order", || {
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        let mut ample_ring = BlockRing::open("far", &AMPLE).expect("a ring");
        let keep_sixteen = [FilterStep {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: 16,
        }];
        let cutting = Taking {
            filter: &keep_sixteen,
            ..AMPLE
        };
        let mut truncating_ring = BlockRing::open("far", &cutting).expect("a ring");
        assert_eq!(hardware("far").ok(), Some(1));
        // Each round ends a block, so that each is used again.
        for round in 0..60 {
            let frames: Vec<Vec<u8>> = (0..40).map(|n| frame(round * 40 + n, 1400)).collect();
            for frame in &frames {
                send(&sender, frame);
            }
            let expected = |snaplen: usize| -> Vec<RecordedPacket> {
                let observed = frames.iter().map(|frame| RecordedPacket {
                    bytes: frame[..snaplen].to_vec(),
                    wire_length: 1400,
                    tag: None,
                    is_outgoing: false,
                });
                observed.collect()
            };
            assert_eq!(take(&mut ample_ring, 40), expected(1400));
            assert_eq!(take(&mut truncating_ring, 40), expected(16));
        }
        let counts = ample_ring.counts().expect("counts");
        assert_eq!((counts.packets, counts.dropped), (2400, 0));
    });
}

#[test]
fn a_gauge_reports_the_fill_level_and_outlives_the_ring() {
    with_pair("gauge", || {
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        let mut ring = BlockRing::open("far", &AMPLE).expect("a ring");
        let gauge = ring.gauge();
        let filled = || {
            let gauge = gauge.clone();
            let filling = std::thread::spawn(move || gauge.filled());
            (filling.join().expect("it reports") * 16.0).round()
        };
        assert_eq!((filled(), ring.has_block()), (0.0, false));
        sender.send(&frame(1, 100)).expect("send");
        let mut awaited = [Awaited::readable(ring.as_fd())];
        wait(&mut awaited, Some(Duration::from_secs(10))).expect("wait");
        assert_eq!((filled(), ring.has_block()), (1.0, true));
        assert!(ring.next_block().is_some());
        assert_eq!((filled(), ring.has_block()), (0.0, false));
        drop(ring);
        assert!(filled() < 0.5, "nobody writes there any more");
    });
}

#[test]
fn a_vlan_tag_stripped_by_the_kernel_is_reported() {
    with_pair("tag", || {
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        let mut ring = BlockRing::open("far", &TAKING).expect("a ring");
        let plain = frame(1, 100);
        for protocol in [0x8100_u16, 0x88a8] {
            let mut tagged = plain[..12].to_vec();
            tagged.extend(protocol.to_be_bytes());
            tagged.extend([0xa0, 0x07]);
            tagged.extend(&plain[12..]);
            sender.send(&tagged).expect("send");
            let tag = Some(Tag {
                control: 0xa007,
                protocol,
            });
            let observed = take(&mut ring, 1);
            assert_eq!((observed.len(), observed[0].tag), (1, tag));
            assert_eq!((&observed[0].bytes, observed[0].wire_length), (&plain, 100));
        }
    });
}

#[test]
fn outgoing_packets_are_distinguished_from_incoming_ones() {
    with_pair("direction", || {
        let mut ring = BlockRing::open("near", &TAKING).expect("a ring");
        let socket = UdpSocket::bind("10.9.0.1:0").expect("socket");
        socket.send_to(b"out", "10.9.0.2:9").expect("send");
        let other = PacketRing::open("far", 1, RingMode::Wire).expect("a sender");
        other.send(&frame(1, 60)).expect("send");
        let observed = take(&mut ring, 2);
        let directions: Vec<bool> = observed
            .iter()
            .map(|observed| observed.is_outgoing)
            .collect();
        assert_eq!(directions, [true, false]);
        let mut loopback = BlockRing::open("lo", &TAKING).expect("a ring");
        assert_eq!(hardware("lo").ok(), Some(libc::ARPHRD_LOOPBACK));
        for byte in 0..3 {
            let target = socket.local_addr().expect("address");
            socket.send_to(&[byte], target).expect("send");
        }
        let numbers: Vec<u8> = take(&mut loopback, 3)
            .iter()
            .map(|observed| observed.bytes[42])
            .collect();
        assert_eq!(numbers, [0, 1, 2], "each once");
    });
}

#[test]
fn on_all_interfaces_a_packet_names_its_interface_and_has_no_link_header() {
    with_pair("any", || {
        let mut ring = BlockRing::open_any(&TAKING).expect("a ring");
        // Past the taps of its own side.
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        sender.send(&frame(1, 60)).expect("send");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
        let target = socket.local_addr().expect("address");
        socket.send_to(b"!", target).expect("send");
        let mut observed = Vec::new();
        while observed.len() < 3 {
            let mut awaited = [Awaited::readable(ring.as_fd())];
            wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
            assert!(awaited[0].is_readable(), "{observed:?}");
            while let Some(block) = ring.next_block() {
                let each = block.packets().map(|packet| {
                    let passed = (packet.interface(), packet.is_echo());
                    (passed, packet.protocol(), packet.bytes().to_vec())
                });
                observed.extend(each);
            }
        }
        let index = |name| interface_index(name).expect("an index").cast_unsigned();
        let received: Vec<_> = observed
            .iter()
            .map(|(passed, kind, _)| (*passed, *kind))
            .collect();
        let (far_index, lo) = (index("far"), index("lo"));
        let expected = [
            ((far_index, false), 0x88b5),
            ((lo, true), 0x0800),
            ((lo, false), 0x0800),
        ];
        assert_eq!(received, expected);
        assert_eq!(observed[0].2, frame(1, 60)[14..]);
        assert_eq!(
            (observed[2].2[0], observed[2].2.len()),
            (0x45, 29),
            "an IP packet"
        );
    });
}

#[test]
fn a_full_ring_counts_its_drops_and_continues() {
    with_pair("drops", || {
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        let mut ring = BlockRing::open("far", &TAKING).expect("a ring");
        for number in 0..4000 {
            send(&sender, &frame(number, 1400));
        }
        let packets = take(&mut ring, 4000);
        let counts = ring.counts().expect("counts");
        assert!(counts.dropped > 0 && counts.frozen > 0, "{counts:?}");
        // A machine that is late may lose some before the ring.
        assert!(counts.packets > 1000, "{counts:?}");
        assert_eq!(
            packets.len() + counts.dropped as usize,
            counts.packets as usize
        );
        sender.send(&frame(9, 60)).expect("send");
        assert_eq!(take(&mut ring, 1)[0].bytes, frame(9, 60));
    });
}

#[test]
fn an_interface_that_goes_down_is_reported() {
    with_pair("down", || {
        let ring = BlockRing::open("far", &TAKING).expect("a ring");
        assert!(ring.fault().is_none());
        let down = process::command("ip")
            .args(["link", "set", "far", "down"])
            .status();
        assert!(down.expect("the ip program").success());
        let mut awaited = [Awaited::readable(ring.as_fd())];
        wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
        assert!(awaited[0].has_notice());
        let fault = ring.fault().expect("it is down");
        assert_eq!(fault.kind(), io::ErrorKind::NetworkDown);
    });
}

#[test]
fn a_wrong_filter_and_a_missing_interface_are_refused() {
    with_pair("refused", || {
        let empty_filter = [FilterStep {
            code: 0xffff,
            jt: 0,
            jf: 0,
            k: 0,
        }];
        let wrong = Taking {
            filter: &empty_filter,
            ..TAKING
        };
        let error = BlockRing::open("far", &wrong).expect_err("no such instruction");
        assert!(
            error.to_string().contains("filter on interface far"),
            "{error}"
        );
        let error = BlockRing::open("no-such-if0", &TAKING).expect_err("it is not there");
        assert!(error.to_string().contains("no-such-if0"), "{error}");
    });
}
