use std::collections::BTreeSet;
use std::fs;

use crate::records_for_tests::{any_fleet_message, fleet_message};
use neph_journal::FleetWriter;
use neph_model::{ExperimentId, FleetMessage, FleetOutcome, Instant};
use proptest::prelude::*;

use super::*;
use crate::SentWithin;
use crate::columns::{FileFacts, LEADING, Row};
use crate::samples_for_tests::experiment;

fn fleet_files() -> (tempfile::TempDir, FleetPlace) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fleet_files = FleetPlace {
        experiment: ExperimentId::new(),
        segments: folder.path().join("messages"),
        journals: folder.path().join("journal"),
    };
    fleet_files.make().expect("writable");
    (folder, fleet_files)
}

fn facts() -> FileFacts {
    FileFacts::of(&experiment(), None)
}

fn recorder(fleet_files: &FleetPlace) -> FleetRecorder {
    FleetRecorder::new(fleet_files.clone(), facts()).expect("a recorder")
}

fn visited(fleet_files: &FleetPlace, within: SentWithin) -> Vec<FleetMessage> {
    let mut messages = Vec::new();
    let mut give = |batch: &[FleetMessage]| {
        messages.extend_from_slice(batch);
        Ok(())
    };
    visit(fleet_files, within, &mut give).expect("readable");
    messages
}

fn end(fleet_files: &FleetPlace) {
    close_all(fleet_files, &facts(), &mut |_| Ok(())).expect("closed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fleet_messages_are_read_back_from_journal_and_columns(
        messages in prop::collection::vec(any_fleet_message(), 1..60),
    ) {
        let (_folder, place) = fleet_files();
        let mut writer = FleetWriter::new(&place.journals, place.experiment);
        for batch in messages.chunks(7) {
            writer.append(batch).expect("recorded");
        }
        prop_assert_eq!(&visited(&place, SentWithin::ALL), &messages);
        let before = counts(&place).expect("readable");
        end(&place);
        prop_assert_eq!(&visited(&place, SentWithin::ALL), &messages);
        prop_assert_eq!(counts(&place).expect("readable"), before);
        prop_assert!(!place.journals.exists());
    }
}

#[test]
fn a_segment_closes_after_ten_minutes_while_recording_goes_on() {
    let (_folder, fleet_files) = fleet_files();
    let mut recorder = recorder(&fleet_files);
    let messages: Vec<_> = (0..50)
        .map(|n| fleet_message(0, n, i64::from(n) * 60))
        .collect();
    for message in &messages {
        recorder.append(&[*message]).expect("recorded");
        let observed = visited(&fleet_files, SentWithin::ALL);
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
        assert!(fleet_files.segment(number).exists(), "{number}");
    }
    assert_eq!(fleet_files.journalled().expect("listed"), [5]);
    end(&fleet_files);
    assert_eq!(visited(&fleet_files, SentWithin::ALL), messages);
}

#[test]
fn only_messages_sent_within_the_time_range_are_returned() {
    let (_folder, fleet_files) = fleet_files();
    let mut recorder = recorder(&fleet_files);
    for n in 0..50 {
        recorder
            .append(&[fleet_message(0, n, i64::from(n) * 60)])
            .expect("recorded");
    }
    drop(recorder);
    let minute = |n: i64| Some(Instant::from_nanos(n * 60_000_000_000));
    let within = |from, until| {
        let messages = visited(&fleet_files, SentWithin { from, until });
        messages
            .iter()
            .map(|message| message.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(within(minute(9), minute(13)), [9, 10, 11, 12]);
    assert_eq!(within(minute(47), None), [47, 48, 49]);
    assert_eq!(within(None, minute(2)), [0, 1]);
    assert_eq!(within(minute(50), None), [0; 0]);
}

#[test]
fn a_partial_file_never_counts_and_a_lost_segment_hides_no_later_one() {
    let (_folder, fleet_files) = fleet_files();
    let mut recorder = recorder(&fleet_files);
    for n in 0..50 {
        recorder
            .append(&[fleet_message(0, n, i64::from(n) * 60)])
            .expect("recorded");
    }
    drop(recorder);
    fs::write(fleet_files.partial(6), b"PAR1 torn").expect("writable");
    assert_eq!(visited(&fleet_files, SentWithin::ALL).len(), 50);
    fs::remove_file(fleet_files.segment(2)).expect("there");
    assert_eq!(visited(&fleet_files, SentWithin::ALL).len(), 39);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn a_segment_that_cannot_be_closed_keeps_its_journal() {
    let (_folder, fleet_files) = fleet_files();
    let mut recorder = recorder(&fleet_files);
    // A folder at the path of the file.
    fs::create_dir(fleet_files.partial(1)).expect("made");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut appended = 0;
    let error = loop {
        assert!(std::time::Instant::now() < deadline, "it never told");
        match recorder.append(&[fleet_message(0, appended, i64::from(appended) * 700)]) {
            Ok(()) => appended += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("00001.partial"), "{error}");
    drop(recorder);
    fs::remove_dir(fleet_files.partial(1)).expect("there");
    end(&fleet_files);
    assert_eq!(
        visited(&fleet_files, SentWithin::ALL).len(),
        appended as usize
    );
}

#[test]
fn every_column_has_a_name_of_its_own_that_the_page_describes() {
    let page = include_str!("../../../../docs/schema.md");
    let columns = <FleetMessage as Row>::COLUMNS;
    let leading = LEADING.iter().map(|column| column.name);
    let names: BTreeSet<_> = leading
        .chain(columns.iter().map(|column| column.name))
        .collect();
    assert_eq!(names.len(), LEADING.len() + columns.len());
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
fn loss_and_failure_are_words_and_their_reply_is_absent() {
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
