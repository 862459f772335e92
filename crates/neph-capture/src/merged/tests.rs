//! Whatever bytes two captures are: merged they hand out the packets of both, by time, and no others.

use proptest::prelude::*;

use super::*;
use crate::stream::read_capture;

/// A packet: its time, link, whole length and bytes.
type Packet = (Option<i64>, u32, u32, Vec<u8>);

fn packet(record: Record<'_>) -> Packet {
    (
        record.at,
        record.link.number(),
        record.length,
        record.bytes.to_vec(),
    )
}

fn read_single(mut bytes: &[u8]) -> (Vec<Packet>, ReadSummary) {
    let mut packets = Vec::new();
    let summary = read_capture(&mut bytes, |record| {
        packets.push(packet(record));
        ControlFlow::Continue(())
    });
    (packets, summary)
}

/// Packets and the numbers of their interfaces.
fn read_both_merged(parts: [&[u8]; 2]) -> (Vec<(Packet, u32)>, ReadSummary) {
    let mut packets = Vec::new();
    let on_record = |record: Record<'_>| {
        packets.push((packet(record), record.interface));
        ControlFlow::Continue(())
    };
    let summary = read_merged(parts.to_vec(), on_record, |_, _| ControlFlow::Continue(()));
    (packets, summary)
}

/// A capture of pcap with this link and these packets, as seconds and lengths.
fn pcap(link: u8, packets: &[(u32, u8)]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend([link, 0, 0, 0]);
    for &(second, length) in packets {
        for field in [second, 7, length.into(), u32::from(length) + 3] {
            file.extend(field.to_le_bytes());
        }
        file.extend(std::iter::repeat_n(link, length.into()));
    }
    file
}

/// A block of pcapng of this kind.
fn block(kind: u32, body: &[u8], out: &mut Vec<u8>) {
    let padded = body.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12)
        .expect("a small one")
        .to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend(body);
    out.resize(out.len() + padded - body.len(), 0);
    out.extend(length);
}

/// A capture of pcapng whose packets have no timestamp.
fn pcapng_without_timestamps(link: u8, lengths: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let version = [
        &0x1a2b_3c4d_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xff; 8],
    ];
    block(0x0a0d_0d0a, &version.concat(), &mut file);
    block(1, &[link, 0, 0, 0, 0, 0, 0, 0], &mut file);
    for &length in lengths {
        let body = [
            &u32::from(length).to_le_bytes()[..],
            &vec![9; length.into()],
        ];
        block(3, &body.concat(), &mut file);
    }
    file
}

fn any_capture() -> impl Strategy<Value = Vec<u8>> {
    let link = prop_oneof![Just(1_u8), Just(101)];
    let observed = prop::collection::vec((0..100_u32, any::<u8>()), 0..12);
    let lengths = prop::collection::vec(any::<u8>(), 0..6);
    prop_oneof![
        4 => (link.clone(), observed).prop_map(|(link, mut observed)| {
            observed.sort_unstable();
            pcap(link, &observed)
        }),
        1 => (link, lengths).prop_map(|(link, lengths)| pcapng_without_timestamps(link, &lengths)),
    ]
}

#[test]
fn with_equal_times_the_first_capture_comes_first_and_interfaces_stay_separate() {
    let (packets, summary) = read_both_merged([
        &pcap(1, &[(5, 10), (6, 20)]),
        &pcap(101, &[(5, 30), (7, 40)]),
    ]);
    let observed: Vec<(u32, u32)> = packets
        .iter()
        .map(|(packet, number)| (packet.2, *number))
        .collect();
    assert_eq!(observed, [(13, 0), (33, 1), (23, 0), (43, 1)]);
    assert_eq!(summary.packets, 4);
    assert!(matches!(summary.ending, Ending::Whole));
}

#[test]
fn stopping_one_capture_stops_all_merged_captures() {
    let parts = [
        pcap(1, &[(5, 10), (6, 20), (7, 10)]),
        b"GIF89a, and more".to_vec(),
    ];
    let mut ended = Vec::new();
    let summary = read_merged(
        parts.iter().map(Vec::as_slice).collect(),
        |_| ControlFlow::Continue(()),
        |index, summary| {
            ended.push((index, matches!(summary.ending, Ending::Broken(_))));
            ControlFlow::Break(())
        },
    );
    assert_eq!(ended, [(1, true)]);
    assert!(matches!(summary.ending, Ending::Stopped));
}

proptest! {
    #[test]
    fn merged_captures_yield_all_packets_in_the_order_of_time(
        (first, second) in (any_capture(), any_capture()),
    ) {
        let (packets, summary) = read_both_merged([&first, &second]);
        let mut packets: Vec<Packet> = packets.into_iter().map(|(packet, _)| packet).collect();
        prop_assert!(matches!(summary.ending, Ending::Whole));
        prop_assert_eq!(summary.packets, packets.len() as u64);
        prop_assert_eq!(summary.bytes, (first.len() + second.len()) as u64);
        prop_assert!(packets.is_sorted_by_key(|packet| packet.0));
        let mut expected = [read_single(&first).0, read_single(&second).0].concat();
        expected.sort();
        packets.sort();
        prop_assert_eq!(packets, expected);
    }

    #[test]
    fn damaged_captures_yield_the_same_packets_merged_as_alone(
        (mut first, second) in (any_capture(), any_capture()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        for (position, byte) in damage {
            let position = position.index(first.len());
            first[position] = byte;
        }
        first.truncate(cut.index(first.len()) + 1);
        first.extend(noise);
        let (packets, summary) = read_both_merged([&first, &second]);
        let mut packets: Vec<Packet> = packets.into_iter().map(|(packet, _)| packet).collect();
        let alone = [read_single(&first), read_single(&second)];
        let unparsed_bytes = alone[0].1.unparsed_bytes + alone[1].1.unparsed_bytes;
        prop_assert_eq!(summary.unparsed_bytes, unparsed_bytes);
        let mut expected = alone.map(|(packets, _)| packets).concat();
        expected.sort();
        packets.sort();
        prop_assert_eq!(packets, expected);
    }
}
