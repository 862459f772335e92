//! Reads an experiment's messages from its journal or from its columns.

use neph_journal::Contents;
use neph_model::{ExperimentId, Message};

use super::Embedded;
use crate::StoreError;
use crate::columns::ColumnsReader;
use crate::store::MessageVisitor;

/// Messages per batch of a running experiment.
const BATCH: usize = 4096;

impl Embedded {
    /// From the journal while it runs, from the columns afterwards. A reader may look for the
    /// journal while the writer finishes, then for the columns. It finds one of them: the columns
    /// get their name before the catalog records the end and before the journal is removed.
    pub(super) fn visit(
        &self,
        experiment: ExperimentId,
        visitor: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError> {
        if let Some(contents) = self.running_contents(experiment)? {
            return visit_journal(&contents, visitor);
        }
        let path = self.workspace.messages_path(experiment);
        let Some(reader) = ColumnsReader::open(&path)? else {
            return Err(StoreError::Malformed {
                path,
                reason: "the experiment has ended and its messages are not there".to_owned(),
            });
        };
        for group in 0..reader.row_groups() {
            visitor(&reader.row_group(group)?)?;
        }
        Ok(())
    }
}

fn visit_journal(contents: &Contents, visitor: &mut MessageVisitor<'_>) -> Result<(), StoreError> {
    let mut batch: Vec<Message> = Vec::with_capacity(contents.message_count().min(BATCH));
    contents.each_message(|message| {
        batch.push(message);
        if batch.len() == BATCH {
            visitor(&batch)?;
            batch.clear();
        }
        Ok::<(), StoreError>(())
    })?;
    if batch.is_empty() {
        return Ok(());
    }
    visitor(&batch)
}
