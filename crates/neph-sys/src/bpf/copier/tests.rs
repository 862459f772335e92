use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::deadline::wait_until;

use super::*;
use crate::ppoll::{Awaited, wait};
use crate::process;
use crate::ring::tests::pair::with_pair;
use crate::ring::{BlockRing, PacketRing, RingMode, Tag, Taking};

const KEPT: u32 = 96;
const COPYING: Copying<'_> = Copying {
    memory: 1 << 20,
    snaplen: KEPT,
    filter: &[],
};

/// The recorded properties of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedPacket {
    bytes: Vec<u8>,
    wire_length: u32,
    tag: Option<Tag>,
    is_outgoing: bool,
    protocol: u16,
    interface: u32,
}

fn record(packet: &Packet<'_>) -> (i64, RecordedPacket) {
    let captured = packet.bytes().len().min(KEPT as usize);
    let record = RecordedPacket {
        bytes: packet.bytes()[..captured].to_vec(),
        wire_length: packet.wire_length(),
        tag: packet.tag(),
        is_outgoing: packet.is_outgoing(),
        protocol: packet.protocol(),
        interface: packet.interface(),
    };
    (packet.stamp(), record)
}

/// Both capture methods at the same place, the copier first.
fn copier_and_ring(interface: &str, filter: &[FilterStep]) -> (Copier, BlockRing) {
    let copier = Copier::open(interface, &Copying { filter, ..COPYING });
    let taking = Taking {
        blocks: 8,
        wake: Duration::from_millis(5),
        filter,
    };
    let ring = BlockRing::open(interface, &taking).expect("a ring");
    (copier.expect("a copier"), ring)
}

/// Takes packets of a ring until there are `many`, or nothing comes for two seconds.
fn take(ring: &mut BlockRing, many: usize) -> Vec<(i64, RecordedPacket)> {
    let mut packets = Vec::new();
    while packets.len() < many {
        let mut awaited = [Awaited::readable(ring.as_fd())];
        wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
        if !awaited[0].is_readable() {
            break;
        }
        while let Some(block) = ring.next_block() {
            packets.extend(block.packets().map(|packet| record(&packet)));
        }
    }
    packets
}

/// Takes all packets that were copied.
fn copied(copier: &mut Copier) -> Vec<(i64, RecordedPacket)> {
    let mut packets = Vec::new();
    while copier
        .look(7, true, |packet| packets.push(record(packet)))
        .is_more
    {}
    packets
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

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

/// Programs at a hook of an interface.
fn attached(index: u32, hook: u32) -> u32 {
    const PROG_QUERY: libc::c_long = 16;
    let mut attributes = [0_u32; 32];
    (attributes[0], attributes[1]) = (index, hook);
    // SAFETY: the command reads and writes the attributes, whose size is passed; no pointer is in them.
    let outcome = unsafe {
        let size = size_of_val(&attributes);
        libc::syscall(libc::SYS_bpf, PROG_QUERY, attributes.as_mut_ptr(), size)
    };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
    attributes[6]
}

#[test]
fn packets_arrive_once_in_order_with_the_data_and_times_of_the_ring() {
    with_pair("once", || {
        let (mut copier, mut ring) = copier_and_ring("near", &[]);
        let far_ring = PacketRing::open("far", 1, RingMode::Wire).expect("a sender");
        let near_socket = UdpSocket::bind("10.9.0.1:0").expect("a port");
        for number in 0..200_u16 {
            let long = vec![7; usize::from(number) * 5];
            near_socket.send_to(&long, "10.9.0.2:9").expect("sent");
            send(
                &far_ring,
                &ethernet(0x88b5, &vec![9; 4 + usize::from(number)]),
            );
        }
        // A VLAN tag, which the kernel takes out.
        send(
            &far_ring,
            &ethernet(0x8100, &[0x60, 0x2a, 0x88, 0xb5, 1, 2, 3, 4]),
        );
        let ringed = take(&mut ring, 401);
        let copied_packets = copied(&mut copier);
        assert!(copied_packets.is_sorted_by_key(|(at, _)| *at), "in order");
        let of = |packets: &[(i64, RecordedPacket)], is_outgoing| -> Vec<(i64, RecordedPacket)> {
            let fit = packets
                .iter()
                .filter(|(_, packet)| packet.is_outgoing == is_outgoing);
            fit.cloned().collect()
        };
        let mut apart = Vec::new();
        for (is_outgoing, many) in [(true, 200), (false, 201)] {
            let (ringed, copied_packets) =
                (of(&ringed, is_outgoing), of(&copied_packets, is_outgoing));
            assert_eq!(copied_packets.len(), many);
            for ((ringed_at, ringed), (copied_at, copied)) in ringed.iter().zip(&copied_packets) {
                assert_eq!(copied, ringed);
                apart.push((ringed_at - copied_at).abs());
            }
            assert_eq!(ringed.len(), many);
        }
        let tagged = copied_packets.last().and_then(|(_, last)| last.tag);
        assert_eq!(
            tagged.map(|tag| (tag.control, tag.protocol)),
            Some((0x602a, 0x8100))
        );
        apart.sort_unstable();
        let median = apart[apart.len() / 2];
        assert!(median < 20_000, "stamps are {median} ns apart");
        assert_eq!(copier.lost(), 0);
        assert!(copier.fault().is_none());
    });
}

#[test]
fn a_loopback_packet_is_captured_once() {
    with_pair("loopback", || {
        let (mut copier, mut ring) = copier_and_ring("lo", &[]);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        for number in 0..50_u8 {
            socket.send_to(&[number; 30], "127.0.0.1:9").expect("sent");
        }
        let ringed = take(&mut ring, 100);
        let bytes = |packets: Vec<(i64, RecordedPacket)>| -> Vec<Vec<u8>> {
            packets
                .into_iter()
                .map(|(_, packet)| packet.bytes)
                .collect()
        };
        // The kernel answers that the port has no listener.
        assert_eq!(ringed.len(), 100);
        assert_eq!(bytes(copied(&mut copier)), bytes(ringed));
    });
}

const fn step(code: u16, (jt, jf): (u8, u8), k: u32) -> FilterStep {
    FilterStep { code, jt, jf, k }
}

/// UDP over IPv4, behind any options, from a port that is even and has bit 1 in its upper byte. A packet
/// that is too short does not match. One step cannot be reached.
const EVERY_KIND_OF_STEP: [FilterStep; 27] = [
    step(0x01, (0, 0), 0),
    step(0x48, (0, 0), 12),
    step(0x15, (0, 1), 0x0800),
    step(0x05, (0, 0), 1),
    step(0x06, (0, 0), 0),
    step(0x50, (0, 0), 23),
    step(0x15, (0, 17), 17),
    step(0x02, (0, 0), 3),
    step(0x50, (0, 0), 14),
    step(0x54, (0, 0), 0x0f),
    step(0x64, (0, 0), 2),
    step(0x0c, (0, 0), 0),
    step(0x04, (0, 0), 14),
    step(0x07, (0, 0), 0),
    step(0x40, (0, 0), 0),
    step(0x74, (0, 0), 16),
    step(0x54, (0, 0), 0x0201),
    step(0x15, (0, 6), 0x0200),
    step(0x60, (0, 0), 3),
    step(0x15, (0, 4), 17),
    step(0x00, (0, 0), 0xffff_fff0),
    step(0x15, (1, 2), 0xffff_fff0),
    step(0x06, (0, 0), 0),
    step(0x06, (0, 0), KEPT),
    step(0x06, (0, 0), 0),
    step(0x05, (0, 0), 0),
    step(0x06, (0, 0), 0),
];

#[test]
fn a_bpf_filter_copies_the_same_packets_as_the_ring() {
    with_pair("filter", || {
        let (mut copier, mut ring) = copier_and_ring("near", &EVERY_KIND_OF_STEP);
        let far_ring = PacketRing::open("far", 1, RingMode::Wire).expect("a sender");
        let mut many = 0;
        for first in [0x45_u8, 0x46, 0x4f] {
            for (kind, protocol) in [(0x0800, 17_u8), (0x0800, 6), (0x86dd, 17)] {
                for port in [0x0200_u16, 0x0201, 0x0100, 0x1300, 0x1302] {
                    // Cut off within its ports, too.
                    for beyond in [2, 3, 4, 40] {
                        let header = usize::from(first & 0xf) * 4;
                        let mut packet = vec![0; header + 4];
                        (packet[0], packet[9]) = (first, protocol);
                        packet[header..header + 2].copy_from_slice(&port.to_be_bytes());
                        packet.resize(header + beyond, 1);
                        send(&far_ring, &ethernet(kind, &packet));
                        let fits = kind == 0x0800 && protocol == 17 && beyond >= 4;
                        many += usize::from(fits && port & 0x0201 == 0x0200);
                    }
                }
            }
        }
        assert_eq!(many, 18);
        let plain = |packets: Vec<(i64, RecordedPacket)>| -> Vec<RecordedPacket> {
            packets.into_iter().map(|(_, packet)| packet).collect()
        };
        let ringed = plain(take(&mut ring, many));
        let copied_packets = plain(copied(&mut copier));
        assert_eq!(copied_packets.len(), many);
        assert_eq!(copied_packets, ringed);
        let unknown = [step(0x80, (0, 0), 0), step(0x16, (0, 0), 0)];
        for wrong in [
            &unknown[..],
            &EVERY_KIND_OF_STEP[..7],
            &EVERY_KIND_OF_STEP[..24],
        ] {
            let filter = wrong;
            let refused = Copier::open("near", &Copying { filter, ..COPYING });
            assert!(refused.is_err(), "{wrong:?}");
        }
    });
}

#[test]
fn packets_beyond_the_buffer_are_counted_and_the_others_intact() {
    with_pair("lost", || {
        let copying = Copying {
            snaplen: MAX_KEPT,
            ..COPYING
        };
        let mut copier = Copier::open("far", &copying).expect("a copier");
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        let (mut taken, mut lost) = (0, 0);
        // Over the end of the room, and again.
        for _ in 0..3 {
            for number in 0..2500_u32 {
                let mut rest = number.to_be_bytes().to_vec();
                rest.resize(1380, 5);
                send(&sender, &ethernet(0x88b5, &rest));
            }
            assert!(copier.fill().filled() > 0.9);
            let (mut latest, mut count) = (None, 0);
            let look = copier.look(usize::MAX, true, |packet| {
                let (head, rest) = packet.bytes().split_at(18);
                assert_eq!(rest, [5; 1376]);
                let number = u32::from_be_bytes(head[14..].try_into().expect("four"));
                assert!(latest < Some(number), "{number} after {latest:?}");
                (latest, count) = (Some(number), count + 1);
            });
            assert_eq!((look.taken, look.is_more), (count, false));
            assert!(count > 700, "{count} found room");
            taken += count as u64;
            lost = copier.lost();
            assert!(copier.fill().filled() < f64::EPSILON);
        }
        assert_eq!(taken + lost, 7500);
    });
}

#[test]
fn two_captures_run_at_once_and_leave_no_bpf_program_behind() {
    with_pair("ended", || {
        let index = interface_index("near").expect("there").cast_unsigned();
        // The kernel takes a link down soon after its descriptor is closed.
        let becomes = |many: u32| {
            wait_until(Duration::from_secs(10), || {
                [TCX_INGRESS, TCX_EGRESS].map(|hook| attached(index, hook)) == [many; 2]
            })
        };
        let first = Copier::open("near", &COPYING).expect("a copier");
        let second = Copier::open("near", &COPYING).expect("another");
        assert!(becomes(2));
        drop(first);
        assert!(becomes(1));
        let set = |name: &str, args: &[&str]| {
            let mut ip = process::command("ip");
            let ended = ip.args(["link", "set", name]).args(args).status();
            assert!(ended.expect("the ip program").success());
        };
        // Under a new name, even if another interface gets the old one.
        set("near", &["name", "nearer"]);
        set("far", &["name", "near"]);
        assert!(second.fault().is_none());
        set("nearer", &["down"]);
        let fault = second.fault().expect("it is down");
        assert_eq!(fault.raw_os_error(), Some(libc::ENETDOWN));
        drop(second);
        assert!(becomes(0));
        let missing = Copier::open("nobody", &COPYING).expect_err("not there");
        assert!(missing.is_missing());
    });
}
