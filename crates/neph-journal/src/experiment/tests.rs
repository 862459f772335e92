use std::fs;
use std::path::PathBuf;

use neph_model::{CpuUse, Event, EventKind, ExperimentId, FlowIndex, Sample, SeriesName, TcpState};
use proptest::prelude::*;

use super::*;
use crate::frames::MAX_PAYLOAD;
use crate::records_for_tests::{any_message, message};

/// Any event.
fn any_event() -> impl Strategy<Value = Event> {
    (any::<u32>(), any::<i64>(), ".{0,40}").prop_map(|(flow, at, text)| Event {
        flow: FlowIndex(flow),
        at,
        kind: EventKind::LateReply,
        text,
    })
}

/// Any sample with a number as its value.
fn any_sample() -> impl Strategy<Value = Sample> {
    (any::<i64>(), 0.0..100.0_f64).prop_map(|(at, value)| Sample {
        series: SeriesName::Cpu(CpuUse::Steal),
        at,
        value,
    })
}

fn any_record() -> impl Strategy<Value = Record> {
    prop_oneof![
        8 => any_message().prop_map(Record::Message),
        1 => any_event().prop_map(Record::Event),
        1 => any_sample().prop_map(Record::Sample),
    ]
}

fn write(path: &std::path::Path, id: ExperimentId, records: &[Record]) {
    let mut writer = JournalWriter::create(path, id).expect("a new journal");
    for record in records {
        match record {
            Record::Message(message) => writer.messages(&[*message]),
            Record::Event(event) => writer.event(event),
            Record::Sample(sample) => writer.sample(sample),
        }
        .expect("recorded");
    }
}

fn read(path: &std::path::Path, id: ExperimentId) -> Vec<Record> {
    let mut reader = JournalReader::open(path, id)
        .expect("readable")
        .expect("there");
    std::iter::from_fn(|| reader.next(|record| record).expect("readable"))
        .map(|(_, record)| record)
        .collect()
}

fn journal_folder() -> (tempfile::TempDir, PathBuf, ExperimentId) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.journal");
    (folder, path, ExperimentId::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_are_read_as_written(records in prop::collection::vec(any_record(), 0..40)) {
        let (_folder, path, id) = journal_folder();
        write(&path, id, &records);
        prop_assert_eq!(read(&path, id), records);
    }

    #[test]
    fn a_truncated_journal_yields_a_prefix(
        records in prop::collection::vec(any_record(), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_folder, path, id) = journal_folder();
        write(&path, id, &records);
        let bytes = fs::read(&path).expect("readable");
        let kept_length = cut.index(bytes.len());
        fs::write(&path, &bytes[..kept_length]).expect("writable");
        let prefix = read(&path, id);
        prop_assert!(prefix.len() < records.len());
        prop_assert_eq!(&records[..prefix.len()], &prefix[..]);
    }

    #[test]
    fn a_bit_error_yields_a_prefix(
        records in prop::collection::vec(any_record(), 1..12),
        place_of in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let (_folder, path, id) = journal_folder();
        write(&path, id, &records);
        let mut bytes = fs::read(&path).expect("readable");
        let at = place_of.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).expect("writable");
        let prefix = read(&path, id);
        prop_assert!(prefix.len() < records.len());
        prop_assert_eq!(&records[..prefix.len()], &prefix[..]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _record = decode::record(&bytes);
    }
}

#[test]
fn a_journal_of_another_experiment_is_ignored() {
    let (_folder, path, id) = journal_folder();
    write(&path, id, &[Record::Message(message(0, 0))]);
    assert_eq!(read(&path, ExperimentId::new()), []);
}

#[test]
fn messages_are_read_in_order_of_flow_and_number() {
    let (_folder, path, id) = journal_folder();
    let mut writer = JournalWriter::create(&path, id).expect("a new journal");
    for seq in (0..500).rev() {
        writer
            .messages(&[message(1, seq), message(0, seq)])
            .expect("recorded");
    }
    let contents = Contents::of(&path, id).expect("readable").expect("there");
    let mut order = Vec::new();
    contents
        .each_message(|message| {
            order.push((message.flow, message.seq.0));
            Ok::<(), crate::JournalError>(())
        })
        .expect("readable");
    let expected: Vec<_> = (0..2)
        .flat_map(|flow| (0..500).map(move |seq| (FlowIndex(flow), seq)))
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn a_record_above_the_size_limit_is_refused_without_side_effects() {
    let (_folder, path, id) = journal_folder();
    let mut writer = JournalWriter::create(&path, id).expect("a new journal");
    let huge = neph_model::Event {
        flow: FlowIndex(0),
        at: 0,
        kind: neph_model::EventKind::Refused,
        text: "x".repeat(MAX_PAYLOAD),
    };
    writer.event(&huge).expect_err("too large");
    writer.messages(&[message(0, 0)]).expect("recorded");
    assert_eq!(read(&path, id), [Record::Message(message(0, 0))]);
}

/// Journals of older versions end a TCP state with the delivery rate.
#[test]
fn a_message_without_the_dsack_counter_is_readable() {
    let mut uncounted = message(3, 0);
    let state = TcpState {
        cwnd: 10,
        retransmissions: 4,
        dsack_duplicates: 0,
        delivery_rate: 1_000,
        ..TcpState::default()
    };
    (uncounted.tcp_at_send, uncounted.tcp_at_ack) = (None, Some(state));
    let mut bytes = Vec::new();
    encode::message(&uncounted, &mut bytes);
    // After kind, mask, flow, sequence number and outcome.
    let flags_at = 1 + 2 + 4 + 8 + 1;
    assert_ne!(bytes[flags_at] & encode::HAS_DSACKS, 0);
    bytes[flags_at] &= !encode::HAS_DSACKS;
    bytes.truncate(bytes.len() - 4);
    assert_eq!(decode::record(&bytes), Some(Record::Message(uncounted)));
}
