//! Files as other programs write them, cut at any byte, and arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Time, captured bytes, length on the wire.
type Packet = (Option<i64>, Vec<u8>, u32);

/// Every packet of `file`, read in pieces of `portion` bytes, and the final result.
fn read(file: &[u8], portion: usize) -> (Vec<Packet>, Result<usize, CaptureError>) {
    let mut reader = CaptureReader::new();
    let (mut at, mut shown, mut packets) = (0, portion, Vec::new());
    loop {
        let end = (at + shown).min(file.len());
        match reader.step(&file[at..end]) {
            Ok(Step::Packet(record, used)) => {
                packets.push((record.at, record.bytes.to_vec(), record.length));
                (at, shown) = (at + used, portion);
            }
            Ok(Step::Skip(used)) => (at, shown) = (at + used, portion),
            Ok(Step::Need(bytes)) => {
                assert!(bytes > end - at, "asks for more than it was shown");
                if end == file.len() {
                    return (packets, Ok(file.len() - at));
                }
                shown = bytes.max(portion);
            }
            Err(error) => return (packets, Err(error)),
        }
    }
}

#[test]
fn impossible_timestamps_are_none() {
    let micros = Ticks::MICROS;
    assert_eq!(
        micros.nanos(1_700_000_000_000_001),
        Some(1_700_000_000_000_001_000)
    );
    // Before 1970, where a program counted below zero, and after 2262.
    assert_eq!(micros.nanos(u64::MAX - 5), None);
    assert_eq!(micros.nanos(9_300_000_000_000_000), None);
    let moved = Ticks {
        per_second: 1 << 10,
        offset: i64::MAX / 1_000_000_000,
    };
    assert_eq!(moved.nanos(1 << 20), None);
    assert_eq!(
        Ticks {
            offset: -1,
            ..moved
        }
        .nanos(1 << 9),
        Some(-500_000_000)
    );
}

fn pcap(nanos: bool, is_big_endian: bool, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let word = |value: u32| {
        if is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let half = |value: u16| {
        if is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = word(magic).to_vec();
    file.extend([half(2), half(4)].concat());
    file.extend([word(0), word(0), word(262_144), word(1)].concat());
    for (seconds, ticks, bytes) in packets {
        let length = u32::try_from(bytes.len()).expect("small");
        file.extend(
            [
                word(*seconds),
                word(*ticks),
                word(length),
                word(length + 10),
            ]
            .concat(),
        );
        file.extend_from_slice(bytes);
    }
    file
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = u32::try_from(12 + body.len() + padding.len()).expect("small");
    let frame = length.to_le_bytes();
    [&kind.to_le_bytes()[..], &frame, body, &padding, &frame].concat()
}

fn section() -> Vec<u8> {
    block(
        pcapng::SECTION,
        &[
            0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
        ],
    )
}

/// An Ethernet interface with `options`.
fn interface(options: &[u8]) -> Vec<u8> {
    block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0], options].concat())
}

fn packet(interface: u32, ticks: u64, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("small").to_le_bytes();
    let high = u32::try_from(ticks >> 32).expect("32 bits").to_le_bytes();
    let low = u32::try_from(ticks & 0xffff_ffff)
        .expect("32 bits")
        .to_le_bytes();
    block(
        6,
        &[
            &interface.to_le_bytes()[..],
            &high,
            &low,
            &length,
            &length,
            bytes,
        ]
        .concat(),
    )
}

#[test]
fn pcap_in_both_orders_and_units_gives_the_same_packets() {
    for (nanos, is_big_endian) in [(false, false), (false, true), (true, false), (true, true)] {
        let file = pcap(
            nanos,
            is_big_endian,
            &[(1_700_000_000, 7, b"one"), (1_700_000_001, 9, b"")],
        );
        let unit = if nanos { 1 } else { 1_000 };
        let expected = vec![
            (
                Some(1_700_000_000_000_000_000 + 7 * unit),
                b"one".to_vec(),
                13,
            ),
            (Some(1_700_000_001_000_000_000 + 9 * unit), Vec::new(), 10),
        ];
        assert_eq!(read(&file, 1), (expected, Ok(0)));
    }
}

#[test]
fn pcapng_converts_each_interfaces_own_unit_of_time() {
    let nanos = interface(&[9, 0, 1, 0, 9, 0, 0, 0]);
    let halves = interface(&[
        9, 0, 1, 0, 0x81, 0, 0, 0, 14, 0, 8, 0, 100, 0, 0, 0, 0, 0, 0, 0,
    ]);
    let file = [
        section(),
        interface(&[]),
        nanos,
        halves,
        block(0x0bad, b"what nobody knows"),
        packet(0, 3_000_005, b"micro"),
        packet(1, 3_000_000_005, b"nano"),
        packet(2, 7, b"half seconds from second 100"),
        block(3, &[&9_u32.to_le_bytes()[..], b"no time"].concat()),
        block(
            5,
            &[&[0; 12][..], &[5, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat(),
        ),
    ]
    .concat();
    let times: Vec<_> = read(&file, 4).0.iter().map(|packet| packet.0).collect();
    assert_eq!(
        times,
        [
            Some(3_000_005_000),
            Some(3_000_000_005),
            Some(103_500_000_000),
            None
        ]
    );
    let mut reader = CaptureReader::new();
    let mut remaining = &file[..];
    while let Ok(Step::Packet(_, used) | Step::Skip(used)) = reader.step(remaining) {
        remaining = &remaining[used..];
    }
    assert_eq!(reader.dropped(), Some(3));
}

#[test]
fn a_new_section_resets_the_interfaces() {
    let file = [
        section(),
        interface(&[]),
        section(),
        packet(0, 1, b"whose?"),
    ]
    .concat();
    assert_eq!(
        read(&file, 64),
        (Vec::new(), Err(CaptureError::UnknownInterface(0)))
    );
}

#[test]
fn a_file_that_is_no_capture_is_refused_by_its_magic() {
    assert_eq!(
        read(b"GIF89a, and 24 bytes more than that", 4).1,
        Err(CaptureError::UnknownMagic(0x4749_4638))
    );
    let mut old = pcap(false, false, &[]);
    old[4] = 9;
    assert!(matches!(
        read(&old, 4).1,
        Err(CaptureError::UnsupportedVersion {
            format: "pcap",
            major: 9,
            ..
        })
    ));
}

#[test]
fn unsupported_timestamp_resolutions_are_reported() {
    for (resolution, unit) in [(0x7f, "10^-127 s"), (0xff, "2^-127 s"), (20, "10^-20 s")] {
        let options = [9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0];
        let file = [section(), interface(&options)].concat();
        let error = read(&file, 4).1.expect_err("no such unit");
        assert_eq!(error, CaptureError::UnsupportedResolution(resolution));
        assert!(error.to_string().contains(unit), "{error}");
    }
}

#[test]
fn a_packet_above_the_maximum_length_is_refused() {
    let mut file = pcap(false, false, &[(0, 0, b"one"), (1, 0, b"two")]);
    let length = 24 + 16 + 3 + 8;
    file[length..length + 4].copy_from_slice(&300_000_u32.to_le_bytes());
    let (packets, error) = read(&file, 4);
    assert_eq!(packets.len(), 1);
    assert!(matches!(
        error,
        Err(CaptureError::InvalidLength {
            length: 300_000,
            ..
        })
    ));
}

proptest! {
    #[test]
    fn a_truncated_file_yields_the_packets_before_the_end(cut in 0_usize..200, portion in 1_usize..80) {
        let old = pcap(true, false, &[(5, 1, b"first"), (6, 2, b"second"), (7, 3, b"third")]);
        let new = [section(), interface(&[]), packet(0, 1, b"first"), packet(0, 2, b"second")].concat();
        for file in [old, new] {
            let whole = read(&file, 4).0;
            let (packets, result) = read(&file[..cut.min(file.len())], portion);
            prop_assert!(result.is_ok());
            prop_assert_eq!(&packets[..], &whole[..packets.len()]);
        }
    }

    #[test]
    fn arbitrary_bytes_neither_panic_nor_stall(
        start in 0_usize..4,
        bytes in vec(any::<u8>(), 0..300),
        portion in 1_usize..64,
    ) {
        let starts = [Vec::new(), section(), [section(), interface(&[])].concat(), pcap(false, true, &[])];
        let _ = read(&[&starts[start][..], &bytes].concat(), portion);
    }
}
