use std::fs;

use neph_model::{ExperimentId, FleetMessage};
use proptest::prelude::*;

use super::*;
use crate::records_for_tests::{any_fleet_message, fleet_message};

fn journal_folder() -> (tempfile::TempDir, PathBuf, ExperimentId) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.fleet");
    (folder, path, ExperimentId::new())
}

fn read(folder: &Path, id: ExperimentId) -> Vec<FleetMessage> {
    let mut messages = Vec::new();
    let mut take = |batch: &[FleetMessage]| {
        messages.extend_from_slice(batch);
        Ok::<(), JournalError>(())
    };
    visit_fleet(folder, id, &mut take).expect("readable");
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_truncation_or_bit_error_yields_a_prefix(
        messages in prop::collection::vec(any_fleet_message(), 1..30),
        at in any::<prop::sample::Index>(),
        bit in 0..9_u32,
    ) {
        let (_folder, path, id) = journal_folder();
        fs::create_dir(&path).expect("writable");
        let mut writer = segment::SegmentWriter::create(&path, id, 1).expect("a new journal");
        for batch in messages.chunks(3) {
            writer.append(batch).expect("recorded");
        }
        prop_assert_eq!(&read(&path, id), &messages);
        let mut bytes = fs::read(segment_path(&path, 1)).expect("readable");
        let at = at.index(bytes.len());
        match bit {
            8 => bytes.truncate(at),
            bit => bytes[at] ^= 1 << bit,
        }
        fs::write(segment_path(&path, 1), &bytes).expect("writable");
        let prefix = read(&path, id);
        prop_assert!(prefix.len() < messages.len());
        prop_assert_eq!(&messages[..prefix.len()], &prefix[..]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fuzzing::framed(folder.path(), &[&bytes[..bytes.len() / 2]], &bytes[bytes.len() / 2..]);
        fuzzing::check_complete(folder.path(), &bytes);
    }
}

#[test]
fn a_full_segment_is_reported_once_and_the_next_message_opens_a_new_one() {
    let (_folder, folder, id) = journal_folder();
    let mut writer = FleetWriter::new(&folder, id);
    assert_eq!(writer.append(&[]).expect("nothing to do"), None);
    assert!(!folder.exists(), "no message, no folder");
    let messages: Vec<_> = (0..22)
        .map(|n| fleet_message(0, n, i64::from(n) * 60))
        .collect();
    let full: Vec<Option<u32>> = messages
        .iter()
        .map(|message| writer.append(&[*message]).expect("recorded"))
        .collect();
    let segment_counts: Vec<u32> = full.iter().copied().flatten().collect();
    assert_eq!((full[10], full[21]), (Some(1), Some(2)));
    assert_eq!(segment_counts, [1, 2]);
    assert_eq!(segment_numbers(&folder, "journal").expect("listed"), [1, 2]);
    assert_eq!(read(&folder, id), messages);
}

#[test]
fn the_estimate_of_a_journal_is_near_its_size() {
    let (_folder, folder, id) = journal_folder();
    let mut writer = FleetWriter::new(&folder, id);
    // 2,560 messages per second, a call every 50 ms.
    for call in 0..100 {
        let messages: Vec<_> = (0..128).map(|slot| fleet_message(slot, call, 0)).collect();
        writer.append(&messages).expect("recorded");
    }
    let taken = fs::metadata(segment_path(&folder, 1)).expect("there").len();
    let estimate = most_journalled(12_800, Span::from_secs(5)).bytes();
    assert!(
        (estimate * 9 / 10..=estimate).contains(&taken),
        "{taken}, {estimate}"
    );
    // Of ten hours, the last ten minutes; of many messages, the last million.
    let hours = most_journalled(60 * 12_800, Span::from_secs(36_000));
    assert_eq!(hours.bytes(), estimate);
    let estimate = most_journalled(u64::MAX, Span::from_secs(36_000));
    assert_eq!(estimate.bytes(), SEGMENT_MESSAGES * JOURNALLED_BYTES);
}
