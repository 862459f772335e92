use std::collections::BTreeSet;
use std::fs;

use crate::records_for_tests::{any_fleet_message, fleet_message};
use neph_journal::FleetWriter;
use neph_model::{ExperimentId, FleetMessage, FleetOutcome, Instant};
use proptest::prelude::*;

use super::*;
use crate::SentWithin;
use crate::columns::{FileMetadata, LEADING_COLUMNS, Row};
use crate::samples_for_tests::experiment;

fn fleet_folders() -> (tempfile::TempDir, FleetFolders) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fleet_folders = FleetFolders {
        experiment: ExperimentId::new(),
        segments: folder.path().join("messages"),
        journals: folder.path().join("journal"),
    };
    fleet_folders.create().expect("writable");
    (folder, fleet_folders)
}

fn metadata() -> FileMetadata {
    FileMetadata::of(&experiment(), None)
}

fn recorder(fleet_folders: &FleetFolders) -> FleetRecorder {
    FleetRecorder::new(fleet_folders.clone(), metadata()).expect("a recorder")
}

fn visited_messages(fleet_folders: &FleetFolders, range: SentWithin) -> Vec<FleetMessage> {
    let mut messages = Vec::new();
    let mut collect = |batch: &[FleetMessage]| {
        messages.extend_from_slice(batch);
        Ok(())
    };
    visit(fleet_folders, range, &mut collect).expect("readable");
    messages
}

fn close_segments(fleet_folders: &FleetFolders) {
    close_all(fleet_folders, &metadata(), &mut |_| Ok(())).expect("closed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fleet_messages_are_read_back_from_journal_and_columns(
        messages in prop::collection::vec(any_fleet_message(), 1..60),
    ) {
        let (_folder, fleet_folders) = fleet_folders();
        let mut writer = FleetWriter::new(&fleet_folders.journals, fleet_folders.experiment);
        for batch in messages.chunks(7) {
            writer.append(batch).expect("recorded");
        }
        prop_assert_eq!(&visited_messages(&fleet_folders, SentWithin::ALL), &messages);
        let counts_before = counts(&fleet_folders).expect("readable");
        close_segments(&fleet_folders);
        prop_assert_eq!(&visited_messages(&fleet_folders, SentWithin::ALL), &messages);
        prop_assert_eq!(counts(&fleet_folders).expect("readable"), counts_before);
        prop_assert!(!fleet_folders.journals.exists());
    }
}

#[test]
fn a_segment_closes_after_ten_minutes_while_recording_goes_on() {
    let (_folder, fleet_folders) = fleet_folders();
    let mut recorder = recorder(&fleet_folders);
    let messages: Vec<_> = (0..50)
        .map(|number| fleet_message(0, number, i64::from(number) * 60))
        .collect();
    for message in &messages {
        recorder.append(&[*message]).expect("recorded");
        let observed = visited_messages(&fleet_folders, SentWithin::ALL);
        assert_eq!(
            observed.last(),
            Some(message),
            "a reader sees all of it at any moment"
        );
        assert_eq!(observed.len(), message.seq as usize + 1);
    }
    // Messages of 0..=10 min, then of 11..=21 ...: four full segments and an open one.
    drop(recorder);
    for number in 1..=4 {
        assert!(fleet_folders.segment(number).exists(), "{number}");
    }
    assert_eq!(fleet_folders.journalled_segments().expect("listed"), [5]);
    close_segments(&fleet_folders);
    assert_eq!(visited_messages(&fleet_folders, SentWithin::ALL), messages);
}

#[test]
fn only_messages_sent_within_the_time_range_are_returned() {
    let (_folder, fleet_folders) = fleet_folders();
    let mut recorder = recorder(&fleet_folders);
    for number in 0..50 {
        recorder
            .append(&[fleet_message(0, number, i64::from(number) * 60)])
            .expect("recorded");
    }
    drop(recorder);
    let minutes = |number: i64| Some(Instant::from_nanos(number * 60_000_000_000));
    let seqs_within = |from, until| {
        let messages = visited_messages(&fleet_folders, SentWithin { from, until });
        messages
            .iter()
            .map(|message| message.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs_within(minutes(9), minutes(13)), [9, 10, 11, 12]);
    assert_eq!(seqs_within(minutes(47), None), [47, 48, 49]);
    assert_eq!(seqs_within(None, minutes(2)), [0, 1]);
    assert_eq!(seqs_within(minutes(50), None), [0; 0]);
}

#[test]
fn a_partial_file_never_counts_and_a_lost_segment_hides_no_later_one() {
    let (_folder, fleet_folders) = fleet_folders();
    let mut recorder = recorder(&fleet_folders);
    for number in 0..50 {
        recorder
            .append(&[fleet_message(0, number, i64::from(number) * 60)])
            .expect("recorded");
    }
    drop(recorder);
    fs::write(fleet_folders.partial(6), b"PAR1 torn").expect("writable");
    assert_eq!(visited_messages(&fleet_folders, SentWithin::ALL).len(), 50);
    fs::remove_file(fleet_folders.segment(2)).expect("there");
    assert_eq!(visited_messages(&fleet_folders, SentWithin::ALL).len(), 39);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn a_segment_that_cannot_be_closed_keeps_its_journal() {
    let (_folder, fleet_folders) = fleet_folders();
    let mut recorder = recorder(&fleet_folders);
    // A folder at the path of the file.
    fs::create_dir(fleet_folders.partial(1)).expect("made");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut appended = 0;
    let error = loop {
        assert!(
            std::time::Instant::now() < deadline,
            "it never reported the error"
        );
        match recorder.append(&[fleet_message(0, appended, i64::from(appended) * 700)]) {
            Ok(()) => appended += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("00001.partial"), "{error}");
    drop(recorder);
    fs::remove_dir(fleet_folders.partial(1)).expect("there");
    close_segments(&fleet_folders);
    assert_eq!(
        visited_messages(&fleet_folders, SentWithin::ALL).len(),
        appended as usize
    );
}

#[test]
fn every_column_has_a_unique_name_that_the_docs_describe() {
    let page = include_str!("../../../../docs/schema.md");
    let columns = <FleetMessage as Row>::COLUMNS;
    let leading = LEADING_COLUMNS.iter().map(|column| column.name);
    let column_names: BTreeSet<_> = leading
        .chain(columns.iter().map(|column| column.name))
        .collect();
    assert_eq!(column_names.len(), LEADING_COLUMNS.len() + columns.len());
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with("The files of a fleet"))
        .expect("a section of its own");
    for column in columns {
        let row = format!("| `{}` |", column.name);
        assert!(section.contains(&row), "docs/schema.md lacks {row}");
    }
}

#[test]
fn lost_and_failed_messages_have_an_outcome_and_no_reply_columns() {
    let mut lost = fleet_message(3, 4, 5);
    lost.outcome = FleetOutcome::Lost;
    let cells: Vec<String> = <FleetMessage as Row>::COLUMNS
        .iter()
        .map(|column| format!("{} {:?}", column.name, column.cell(&lost)))
        .collect();
    assert!(
        cells.contains(&"outcome Word(\"lost\")".to_owned()),
        "{cells:?}"
    );
    assert!(
        cells.contains(&"round_trip_ns Absent".to_owned()),
        "{cells:?}"
    );
    assert!(cells.contains(&"copies Absent".to_owned()), "{cells:?}");
}
