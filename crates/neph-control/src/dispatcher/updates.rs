//! The updates that a completely received result gives the campaign.

use neph_agent::remote::{Ended, ResultFile};
use neph_model::{OrderId, Update};

use crate::inbox::Inbox;

/// Updates for a completely received result.
pub(super) fn completed_updates(inbox: &Inbox, id: OrderId, ended: Ended) -> Vec<Update> {
    let mut updates = Vec::new();
    for file_length in &ended.files {
        match file_length.file {
            ResultFile::Journal(experiment) => {
                updates.push(Update::Journalled(experiment, inbox.folder_of(id)));
            }
            ResultFile::Segment(..) => {}
            ResultFile::Capture => {
                updates.push(Update::Captured(inbox.path_of(id, file_length.file)));
            }
            ResultFile::Pings => {
                let path = inbox.path_of(id, file_length.file);
                match neph_agent::remote::read_pings(&path) {
                    Ok(pings) => updates.push(Update::Pinged(pings)),
                    Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
                }
            }
        }
    }
    updates.push(Update::Done(ended.result));
    updates
}
