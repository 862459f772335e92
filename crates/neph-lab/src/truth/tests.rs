use std::num::NonZeroU32;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::gate::ScheduleEvent;

fn packet(number: i64) -> Record {
    let identity = Identity {
        hash: 7,
        tcp_seq: 8,
        ip_id: 9,
        protocol: 6,
        ..Identity::default()
    };
    let passage = PacketPassage {
        direction: 1,
        length: 1514,
        arrival: number,
        identity,
    };
    Record::Packet {
        passage,
        handling: PacketHandling {
            path: (number > 3).then_some(63),
            flipped: Some(12_111),
            is_copy: true,
            is_early: number % 2 == 0,
        },
        verdict: Verdict::Refused,
        due: number + 5,
        left: number + 6,
    }
}

fn one_in(packets: u32) -> NonZeroU32 {
    NonZeroU32::new(packets).expect("not zero")
}

fn read(path: &Path) -> Vec<Record> {
    TruthFile::open(path)
        .expect("open")
        .map(|record| record.expect("fine"))
        .collect()
}

#[test]
fn truth_records_are_read_as_written_up_to_a_truncated_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("uplink.truth");
    let truth_thread = TruthThread::start().expect("a thread");
    let (recorder, writer) = truth_thread
        .open(&path, "uplink", one_in(3))
        .expect("a file");
    let written_records: Vec<Record> = (0..4)
        .map(packet)
        .chain([
            Record::Anchor { wall: 1, raw: 2 },
            Record::Cue { at: 3 },
            Record::Step {
                direction: 1,
                number: 999,
                event: ScheduleEvent::Reshuffles,
                at: 4,
            },
        ])
        .collect();
    assert!(
        written_records
            .iter()
            .all(|record| recorder.record(*record))
    );
    writer.finish().expect("written");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("open");
    let size = file.metadata().expect("metadata").len();
    assert_eq!(read(&path), written_records);
    let opened = TruthFile::open(&path).expect("open");
    assert_eq!((opened.link(), opened.every()), ("uplink", 3));
    file.set_len(size - 1).expect("cut");
    assert_eq!(read(&path), written_records[..6]);
    let mut cut = TruthFile::open(&path).expect("open");
    assert!(cut.by_ref().all(|record| record.is_ok()));
    assert_eq!(cut.cut_off(), RECORD_BYTES - 1);
}

#[test]
fn one_writer_keeps_the_records_of_links_separate() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth_thread = TruthThread::start().expect("a thread");
    let paths = [0, 1].map(|link| folder.path().join(format!("{link}.truth")));
    let opened = [0, 1].map(|link| {
        truth_thread
            .open(&paths[link], "x", one_in(1))
            .expect("a file")
    });
    for number in 0..10 {
        let (recorder, _) = &opened[usize::from(number % 3 == 0)];
        assert!(recorder.record(packet(number)));
    }
    drop(truth_thread);
    for (recorder, writer) in opened {
        drop(recorder);
        writer.finish().expect("written");
    }
    let [other_records, third_records] = paths.map(|path| read(&path));
    let packets =
        |numbers: &[i64]| -> Vec<Record> { numbers.iter().copied().map(packet).collect() };
    assert_eq!(third_records, packets(&[0, 3, 6, 9]));
    assert_eq!(other_records, packets(&[1, 2, 4, 5, 7, 8]));
}

/// Requests and replies take turns: counting to an even number would record one direction only.
#[test]
fn alternating_packets_are_recorded_in_both_directions_and_equally_by_each_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth_thread = TruthThread::start().expect("a thread");
    let links = [0, 1].map(|link| {
        let path = folder.path().join(format!("{link}.truth"));
        truth_thread.open(&path, "x", one_in(4)).expect("a file").0
    });
    let mut recorded_counts = [0; 2];
    for number in 0_u16..4_000 {
        let mut frame = [0; 64];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[42..44].copy_from_slice(&number.to_be_bytes());
        let original = Identity::from_frame(&frame);
        // A router on the way.
        frame[22] = 63;
        let [first, second] = &links;
        assert_eq!(
            first.is_sampled(&original),
            second.is_sampled(&Identity::from_frame(&frame))
        );
        recorded_counts[usize::from(number % 2)] += u32::from(first.is_sampled(&original));
    }
    assert!(
        recorded_counts
            .iter()
            .all(|count| (400..600).contains(count)),
        "{recorded_counts:?}"
    );
}

#[test]
fn a_file_of_another_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::write(&path, [0; 200]).expect("write");
    assert!(matches!(
        TruthFile::open(&path),
        Err(TruthError::WrongFormat { .. })
    ));
}

#[test]
fn a_file_of_version_1_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.truth");
    let mut header = vec![0; 200];
    header[..8].copy_from_slice(b"NEPHTRU1");
    std::fs::write(&path, header).expect("write");
    let error = TruthFile::open(&path).expect_err("old").to_string();
    assert!(
        error.contains("has version 1") && error.contains("reads version 2"),
        "{error}"
    );
}

#[test]
fn identity_depends_on_the_payload_but_not_on_what_routers_change() {
    let mut frame = vec![0; 14 + 60];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[18..20].copy_from_slice(&[0x12, 0x34]);
    frame[22] = 64;
    frame[23] = 6;
    frame[38..42].copy_from_slice(&[1, 2, 3, 4]);
    let original = Identity::from_frame(&frame);
    assert_eq!(
        (original.ip_id, original.protocol, original.tcp_seq),
        (0x1234, 6, 0x0102_0304)
    );
    frame[22] = 63;
    frame[24..26].copy_from_slice(&[5, 6]);
    frame[..12].fill(9);
    assert_eq!(Identity::from_frame(&frame), original);
    frame[73] = 1;
    assert_ne!(Identity::from_frame(&frame), original);
}

proptest! {
    #[test]
    fn any_frame_and_any_record_bytes_are_accepted(
        frame in prop::collection::vec(any::<u8>(), 0..200),
        bytes in any::<([u8; 32], [u8; 24])>(),
    ) {
        Identity::from_frame(&frame);
        let mut record = [0; RECORD_BYTES];
        record[..32].copy_from_slice(&bytes.0);
        record[32..].copy_from_slice(&bytes.1);
        if let Some(decoded) = Record::decode(&record) {
            prop_assert_eq!(Record::decode(&decoded.encode()), Some(decoded));
        }
    }
}

/// Found by fuzzing: what a damaged record says came at the last moment that there is was left out.
#[test]
fn a_packet_at_the_last_possible_time_is_counted() {
    let mut record = packet(9);
    if let Record::Packet {
        passage, handling, ..
    } = &mut record
    {
        passage.arrival = i64::MAX;
        handling.is_copy = false;
    }
    let packets: u64 = evaluate_flows([record])
        .values()
        .map(FlowTruth::packets)
        .sum();
    assert_eq!(packets, 1);
}
