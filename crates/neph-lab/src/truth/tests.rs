use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::gate::Turn;

fn packet(number: i64) -> Record {
    let identity = Identity {
        hash: 7,
        tcp_seq: 8,
        ip_id: 9,
        protocol: 6,
        ..Identity::default()
    };
    let passing = Passing {
        direction: 1,
        length: 1514,
        arrival: number,
        identity,
    };
    Record::Packet {
        passing,
        handling: Handling {
            path: (number > 3).then_some(63),
            flipped: Some(12_111),
            copy: true,
            early: number % 2 == 0,
        },
        verdict: Verdict::Refused,
        due: number + 5,
        left: number + 6,
    }
}

#[test]
fn what_was_written_is_read_and_a_cut_record_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("uplink.truth");
    let (mut recorder, writer) =
        start(&path, "uplink", NonZeroU32::new(3).expect("3")).expect("start");
    let written: Vec<Record> = (0..10)
        .filter(|_| recorder.wants_next())
        .map(packet)
        .chain([
            Record::Anchor { wall: 1, raw: 2 },
            Record::Cue { at: 3 },
            Record::Step {
                direction: 1,
                number: 999,
                turn: Turn::Reshuffles,
                at: 4,
            },
        ])
        .collect();
    assert_eq!(written.len(), 7, "packets 0, 3, 6, 9 and the rest");
    assert!(written.iter().all(|record| recorder.record(*record)));
    drop(recorder);
    writer.finish().expect("written");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("open");
    let whole = file.metadata().expect("metadata").len();
    let read = |path| -> Vec<Record> {
        TruthFile::open(path)
            .expect("open")
            .map(|record| record.expect("fine"))
            .collect()
    };
    assert_eq!(read(&path), written);
    assert_eq!(TruthFile::open(&path).expect("open").link(), "uplink");
    file.set_len(whole - 1).expect("cut");
    assert_eq!(read(&path), written[..6]);
}

#[test]
fn another_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::write(&path, [0; 200]).expect("write");
    assert!(matches!(
        TruthFile::open(&path),
        Err(TruthError::Strange { .. })
    ));
}

#[test]
fn a_file_of_the_first_version_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.truth");
    let mut old = vec![0; 200];
    old[..8].copy_from_slice(b"NEPHTRU1");
    std::fs::write(&path, old).expect("write");
    let error = TruthFile::open(&path).expect_err("old").to_string();
    assert!(
        error.contains("has version 1") && error.contains("reads version 2"),
        "{error}"
    );
}

#[test]
fn a_router_does_not_change_an_identity_and_a_payload_does() {
    let mut frame = vec![0; 14 + 60];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[18..20].copy_from_slice(&[0x12, 0x34]);
    frame[22] = 64;
    frame[23] = 6;
    frame[38..42].copy_from_slice(&[1, 2, 3, 4]);
    let before = Identity::of(&frame);
    assert_eq!(
        (before.ip_id, before.protocol, before.tcp_seq),
        (0x1234, 6, 0x0102_0304)
    );
    frame[22] = 63;
    frame[24..26].copy_from_slice(&[5, 6]);
    frame[..12].fill(9);
    assert_eq!(Identity::of(&frame), before);
    frame[73] = 1;
    assert_ne!(Identity::of(&frame), before);
}

proptest! {
    #[test]
    fn no_frame_and_no_record_makes_it_panic(
        frame in prop::collection::vec(any::<u8>(), 0..200),
        bytes in any::<([u8; 32], [u8; 24])>(),
    ) {
        Identity::of(&frame);
        let mut record = [0; RECORD_BYTES];
        record[..32].copy_from_slice(&bytes.0);
        record[32..].copy_from_slice(&bytes.1);
        if let Some(decoded) = Record::decode(&record) {
            prop_assert_eq!(Record::decode(&decoded.encode()), Some(decoded));
        }
    }
}
