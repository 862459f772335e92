use neph_wire::dissect::{Link, dissect};

use super::*;

/// A TCP segment in raw IPv4 whose sender gave the packet this number.
fn segment(identification: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, identification, 0x40, 0, 64, 6, 0, 0];
    packet.extend([192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 1, 0xbb]);
    packet.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 16, 1, 0, 0, 0, 0, 0]);
    packet
}

fn time_at(milliseconds: i64) -> Wall {
    Wall::from_unix_nanos(1_700_000_000_000_000_000 + milliseconds * 1_000_000)
}

#[test]
fn the_same_packet_at_another_interface_is_a_copy() {
    let mut filter = DuplicateFilter::default();
    let bytes = segment(7);
    let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
    assert!(!filter.is_copy(time_at(0), 1, &packet));
    assert!(filter.is_copy(time_at(0), 2, &packet));
    assert!(filter.is_copy(time_at(1), 3, &packet));
    // A duplicate that the network made.
    assert!(!filter.is_copy(time_at(1), 1, &packet));
    assert!(!filter.is_copy(time_at(400), 2, &packet));
    assert_eq!(filter.examined(), 5);
}

#[test]
fn packets_without_an_identification_are_not_duplicates() {
    let mut filter = DuplicateFilter::default();
    let bytes = segment(0);
    let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
    assert!(!filter.is_copy(time_at(0), 1, &packet) && !filter.is_copy(time_at(1), 1, &packet));
    assert_eq!((filter.examined(), filter.repeats()), (2, 0));
}

#[test]
fn a_packet_with_another_ip_identification_is_no_copy() {
    let mut filter = DuplicateFilter::default();
    for (number, interface) in [(7, 1), (8, 2)] {
        let bytes = segment(number);
        let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
        assert!(!filter.is_copy(time_at(0), interface, &packet));
    }
}

#[test]
fn a_packet_with_a_lower_ttl_behind_a_router_is_a_copy() {
    let mut filter = DuplicateFilter::default();
    let (before, mut after) = (segment(7), segment(7));
    after[8] = 63;
    let before = dissect(Link::Ip, &before, 40).expect("a packet");
    let after = dissect(Link::Ip, &after, 40).expect("a packet");
    assert!(!filter.is_copy(time_at(0), 1, &before));
    assert!(filter.is_copy(time_at(0), 2, &after));
}

/// Segments of one sender, numbered, so many microseconds apart; each passes a second interface so
/// many of them later. How many of the second passages are copies.
fn count_copies(interval_micros: i64, lag: u32, packet_count: u32) -> u64 {
    let mut filter = DuplicateFilter::default();
    let mut bytes = segment(0);
    let mut copy_count = 0;
    for index in 0..packet_count + lag {
        let at = Wall::from_unix_nanos(
            time_at(0).unix_nanos() + i64::from(index) * interval_micros * 1_000,
        );
        for (number, interface) in [(Some(index), 1), (index.checked_sub(lag), 2)] {
            let Some(number) = number.filter(|number| *number < packet_count) else {
                continue;
            };
            bytes[24..28].copy_from_slice(&number.to_be_bytes());
            let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
            copy_count += u64::from(filter.is_copy(at, interface, &packet));
        }
    }
    assert!(filter.slots.len() <= SET_COUNTS.end() * SLOTS_PER_SET);
    copy_count
}

#[test]
fn copies_within_the_maximum_delay_are_found_among_many_packets() {
    for lag in [1, 100, 2_000, 4_900] {
        assert_eq!(count_copies(10, lag, 20_000), 20_000, "{lag}");
    }
}

#[test]
fn the_duplicate_filter_is_bounded_if_all_times_are_equal() {
    // Each at the same moment: of so many some are forgotten.
    assert!(count_copies(0, 1, 600_000) > 599_000);
    assert!(count_copies(0, 500_000, 600_000) < 600_000);
}

#[test]
fn a_copy_with_an_earlier_timestamp_is_a_copy() {
    let mut filter = DuplicateFilter::default();
    let bytes = segment(7);
    let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
    assert!(!filter.is_copy(time_at(3), 1, &packet));
    assert!(filter.is_copy(time_at(2), 2, &packet));
}

/// Hosts 1 and 2; what the second sends comes the other way.
fn tcp_packet(is_from_first: bool, seq: u32, flags: u8, payload: usize) -> Vec<u8> {
    let length = u8::try_from(40 + payload).expect("short");
    let mut packet = vec![0x45, 0, 0, length, 0, 0, 0x40, 0, 64, 6, 0, 0];
    let (from, to) = if is_from_first { (1, 2) } else { (2, 1) };
    packet.extend([10, 0, 0, from, 10, 0, 0, to, 0, from, 0, to]);
    packet.extend(seq.to_be_bytes());
    packet.extend([0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    packet.resize(usize::from(length), 7);
    packet
}

fn find_duplicates(packets: &[(i64, Vec<u8>)]) -> Vec<bool> {
    let mut filter = DuplicateFilter::default();
    let is_duplicate = packets.iter().map(|(micros, bytes)| {
        let length = u32::try_from(bytes.len()).expect("short");
        let packet = dissect(Link::Ip, bytes, length).expect("a packet");
        let at = Wall::from_unix_nanos(time_at(0).unix_nanos() + micros * 1_000);
        filter.is_duplicate(at, 1, &packet)
    });
    is_duplicate.collect()
}

/// A connection without numbers in IP: when, and what.
fn connection_without_identification() -> Vec<(i64, Vec<u8>)> {
    let mut packets = vec![
        (0, tcp_packet(true, 0, 2, 0)),
        (20_000, tcp_packet(false, 9, 18, 0)),
        (20_100, tcp_packet(true, 1, 16, 0)),
    ];
    for round in 0..20 {
        let (seq, at) = (u32::try_from(round).expect("few"), 100_000 * (1 + round));
        packets.push((at, tcp_packet(true, 1 + 100 * seq, 24, 100)));
        packets.push((at + 20_000, tcp_packet(false, 10 + 10 * seq, 16, 0)));
    }
    packets
}

#[test]
fn mirrored_packets_without_ip_identification_count_once() {
    let packets = connection_without_identification();
    let mirrored = packets
        .iter()
        .flat_map(|(at, bytes)| [(*at, bytes.clone()), (at + 10, bytes.clone())]);
    let mirrored: Vec<(i64, Vec<u8>)> = mirrored.collect();
    let is_duplicate = find_duplicates(&mirrored);
    assert!(
        is_duplicate.chunks(2).all(|pair| pair == [false, true]),
        "{is_duplicate:?}"
    );
}

#[test]
fn a_retransmission_without_ip_identification_is_no_duplicate() {
    for (delay, is_mirrored) in [
        (3_000, false),
        (30_000, false),
        (30_000, true),
        (200_000, true),
    ] {
        let mut packets = connection_without_identification();
        let (at, lost_segment) = packets[9].clone();
        packets.push((at + delay, lost_segment.clone()));
        packets.sort();
        let copies = if is_mirrored { 2 } else { 1 };
        let sent_packets: Vec<(i64, Vec<u8>)> = packets
            .iter()
            .flat_map(|(at, bytes)| (0..copies).map(move |copy| (at + 10 * copy, bytes.clone())))
            .collect();
        let is_duplicate = find_duplicates(&sent_packets);
        let times: Vec<i64> = sent_packets
            .iter()
            .zip(&is_duplicate)
            .filter(|((_, bytes), is_copy)| *bytes == lost_segment && !**is_copy)
            .map(|((at, _), _)| *at)
            .collect();
        assert_eq!(times, [at, at + delay], "{is_mirrored}");
        let kept_count = is_duplicate.iter().filter(|is_copy| !**is_copy).count();
        assert_eq!(kept_count, packets.len());
    }
}

#[test]
fn acknowledgements_that_are_repeated_are_no_duplicates() {
    let mut packets = connection_without_identification();
    let (at, ack) = packets[10].clone();
    packets.extend((1..5).map(|nth| (at + nth * 50, ack.clone())));
    packets.sort();
    assert_eq!(find_duplicates(&packets), vec![false; packets.len()]);
}

#[test]
fn packets_with_a_constant_ip_identification_are_no_duplicates() {
    let mut packets = connection_without_identification();
    for (_, bytes) in &mut packets {
        bytes[5] = 1;
    }
    let (at, lost_segment) = packets[9].clone();
    packets.push((at + 30_000, lost_segment));
    packets.sort();
    assert_eq!(find_duplicates(&packets), vec![false; packets.len()]);
}

/// The same bytes of IP in Ethernet, with a VLAN if there is one.
fn ethernet_frame(bytes: &[u8], vlan: Option<u8>) -> Vec<u8> {
    let tag = vlan.map_or(Vec::new(), |number| vec![0x81, 0, 0, number]);
    [&[2; 12][..], &tag, &[8, 0], bytes].concat()
}

#[test]
fn an_untagged_packet_is_a_copy_but_another_vlan_is_not() {
    let bytes = segment(0);
    let mut filter = DuplicateFilter::default();
    let mut is_copy = |vlan, interface| {
        let frame = ethernet_frame(&bytes, vlan);
        let length = u32::try_from(frame.len()).expect("short");
        let packet = dissect(Link::Ethernet, &frame, length).expect("a packet");
        filter.is_copy(time_at(0), interface, &packet)
    };
    assert!(!is_copy(Some(7), 1));
    assert!(!is_copy(Some(8), 1), "another network");
    assert!(is_copy(None, 1), "without the layer, at one interface");
    assert!(is_copy(None, 2) && is_copy(Some(8), 2));
}

#[test]
fn a_checksum_computed_later_by_the_interface_does_not_matter() {
    let mut filter = DuplicateFilter::default();
    let (before, mut after) = (segment(7), segment(7));
    after[36..38].copy_from_slice(&[0xab, 0xcd]);
    let [before, after] =
        [&before, &after].map(|bytes| dissect(Link::Ip, bytes, 40).expect("a packet"));
    assert!(!filter.is_copy(time_at(0), 1, &before));
    assert!(filter.is_copy(time_at(0), 2, &after));
}
