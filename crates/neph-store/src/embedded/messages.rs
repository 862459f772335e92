//! Reading an experiment's messages, wherever they are at this moment.

use neph_journal::Contents;
use neph_model::{ExperimentId, Message};

use super::Embedded;
use crate::StoreError;
use crate::columns::ColumnsReader;
use crate::store::MessageVisitor;

/// Messages of a running experiment that are handed out at once.
const BATCH: usize = 4096;

impl Embedded {
    /// From the journal while it runs, from the columns afterwards. A reader may come while the
    /// writer finishes: the columns have their name before the catalog says so and before the
    /// journal goes, so that looking for the journal and then for the columns finds one of them.
    pub(super) fn visit(
        &self,
        experiment: ExperimentId,
        visit: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError> {
        if let Some(contents) = self.journalled(experiment)? {
            return visit_journal(&contents, visit);
        }
        let path = self.workspace.messages_of(experiment);
        let Some(reader) = ColumnsReader::open(&path)? else {
            return Err(StoreError::Malformed {
                path,
                what: "the experiment has ended and its messages are not there".to_owned(),
            });
        };
        for group in 0..reader.row_groups() {
            visit(&reader.row_group(group)?)?;
        }
        Ok(())
    }
}

fn visit_journal(contents: &Contents, visit: &mut MessageVisitor<'_>) -> Result<(), StoreError> {
    let mut batch: Vec<Message> = Vec::with_capacity(contents.message_count().min(BATCH));
    contents.each_message(|message| {
        batch.push(message);
        if batch.len() == BATCH {
            visit(&batch)?;
            batch.clear();
        }
        Ok::<(), StoreError>(())
    })?;
    if batch.is_empty() {
        return Ok(());
    }
    visit(&batch)
}
