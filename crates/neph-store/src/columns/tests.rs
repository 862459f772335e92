use std::collections::BTreeSet;

use crate::records_for_tests::{any_message, message};
use neph_model::Message;
use proptest::prelude::*;

use super::*;
use crate::samples_for_tests::experiment;

fn round_trip(messages: &[Message]) -> Vec<Message> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.parquet");
    let metadata = FileMetadata::of(&experiment(), None);
    let mut writer = ColumnsWriter::create(&path, metadata).expect("a new file");
    for message in messages {
        writer.push(message).expect("written");
    }
    writer.finish().expect("finished");
    let reader = ColumnsReader::<Message>::open(&path)
        .expect("readable")
        .expect("there");
    (0..reader.row_groups())
        .flat_map(|group| reader.row_group(group).expect("readable"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn messages_are_read_back(messages in prop::collection::vec(any_message(), 0..60)) {
        prop_assert_eq!(round_trip(&messages), messages);
    }
}

#[test]
fn several_row_groups_are_read_back() {
    let count = u64::try_from(ROW_GROUP_ROWS).expect("small") + 10;
    let messages: Vec<_> = (0..count).map(|seq| message(0, seq)).collect();
    assert!(round_trip(&messages) == messages);
}

#[test]
fn every_column_has_a_unique_name_that_the_docs_describe() {
    let page = include_str!("../../../../docs/schema.md");
    let leading = LEADING_COLUMNS.iter().map(|column| column.name);
    let names: BTreeSet<_> = leading
        .chain(<Message as Row>::COLUMNS.iter().map(|column| column.name))
        .collect();
    assert_eq!(
        names.len(),
        LEADING_COLUMNS.len() + <Message as Row>::COLUMNS.len()
    );
    for name in names {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "docs/schema.md lacks {name}"
        );
    }
}

#[test]
fn a_file_that_is_no_parquet_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, b"PAR1 but not really").expect("writable");
    let error = ColumnsReader::<Message>::open(&path)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("x.parquet"), "{error}");
}
