//! An executor that keeps journals of its experiments for results that go to another process. They survive
//! the end of this process and of the connection. A store takes them in exactly once.
//!
//! Owns the journals, one for each experiment. What carries the orders out is another executor.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use neph_journal::{JournalRecorder, journal_path};
use neph_model::{
    Executor, ExecutorLost, ExperimentId, Order, OrderFailed, OrderResult, Prepared, Records, Span,
    Ticket, Update,
};

use crate::failure::failed;

/// Keeps journals of what another executor measures. A record is reported when it is in a journal. An
/// experiment that has a journal in the folder is not carried out a second time.
#[derive(Debug)]
pub struct JournallingExecutor<E> {
    inner: E,
    folder: PathBuf,
    next: Ticket,
    /// Orders that run, by the ticket that `inner` gave.
    running: BTreeMap<Ticket, RunningOrder>,
    /// Updates that `inner` knows nothing of.
    pending_updates: VecDeque<(Ticket, Update)>,
}

/// An order that runs.
#[derive(Debug)]
struct RunningOrder {
    /// The ticket of this executor.
    ticket: Ticket,
    /// Of an order for experiments.
    experiments: Vec<ExperimentId>,
    recorders: BTreeMap<ExperimentId, JournalRecorder>,
    /// Why a journal could not be kept: nothing is reported any more but this, at the end.
    refused: Option<OrderFailed>,
}

impl<E: Executor> JournallingExecutor<E> {
    /// Keeps the journals in `folder`, which is there.
    pub const fn new(inner: E, folder: PathBuf) -> Self {
        Self {
            inner,
            folder,
            next: Ticket(0),
            running: BTreeMap::new(),
            pending_updates: VecDeque::new(),
        }
    }

    /// One of these experiments that has a journal.
    fn find_existing_journal(&self, experiments: &[ExperimentId]) -> Option<OrderFailed> {
        let mut paths = experiments.iter().map(|id| journal_path(&self.folder, *id));
        let path = paths.find(|path| path.exists())?;
        let reason = format!(
            "it was carried out before: its journal is {}",
            path.display()
        );
        Some(failed("carry an experiment out", reason))
    }

    /// An update under this executor's ticket, once its records are in a journal; `None` if that fails.
    fn store_update(&mut self, inner: Ticket, update: Update) -> Option<(Ticket, Update)> {
        let running = self.running.get_mut(&inner)?;
        let ticket = running.ticket;
        if let Update::Done(result) = update {
            let final_result: Result<OrderResult, _> = running.refused.take().map_or(result, Err);
            self.running.remove(&inner);
            return Some((ticket, Update::Done(final_result)));
        }
        if running.refused.is_some() {
            return None;
        }
        let stored = match &update {
            Update::Prepared(prepared) => running.begin(&self.folder, prepared),
            Update::Recorded(experiment, records) => running.keep(*experiment, records),
            Update::Journalled(..)
            | Update::Progress(_)
            | Update::Pinged(_)
            | Update::Sampled(_)
            | Update::Captured(_)
            | Update::Done(_) => Ok(()),
        };
        if let Err(reason) = stored {
            running.refused = Some(reason);
            self.inner.cancel(inner);
            return None;
        }
        Some((ticket, update))
    }
}

impl RunningOrder {
    /// A journal for each experiment that begins.
    fn begin(
        &mut self,
        folder: &Path,
        prepared: &[Result<Prepared, OrderFailed>],
    ) -> Result<(), OrderFailed> {
        for (experiment, result) in self.experiments.iter().zip(prepared) {
            if result.is_ok() {
                let recorder = JournalRecorder::create(folder, *experiment);
                let recorder = recorder.map_err(|error| failed("begin a journal", error))?;
                self.recorders.insert(*experiment, recorder);
            }
        }
        Ok(())
    }

    fn keep(&mut self, experiment: ExperimentId, records: &Records) -> Result<(), OrderFailed> {
        let Some(recorder) = self.recorders.get_mut(&experiment) else {
            return Ok(());
        };
        let stored = records.keep_in(recorder);
        stored.map_err(|error| failed("record what is measured", error))
    }
}

impl<E: Executor> Executor for JournallingExecutor<E> {
    fn submit(&mut self, order: Order) -> Ticket {
        let ticket = self.next;
        self.next.0 += 1;
        let experiments: Vec<ExperimentId> = match &order {
            Order::Experiments(orders) => orders.iter().map(|order| order.experiment.id).collect(),
            _ => Vec::new(),
        };
        if let Some(refused) = self.find_existing_journal(&experiments) {
            self.pending_updates
                .push_back((ticket, Update::Done(Err(refused))));
            return ticket;
        }
        let running = RunningOrder {
            ticket,
            experiments,
            recorders: BTreeMap::new(),
            refused: None,
        };
        self.running.insert(self.inner.submit(order), running);
        ticket
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        if !self.pending_updates.is_empty() {
            return Ok(self.pending_updates.drain(..).collect());
        }
        let updates = self.inner.poll(patience)?;
        let stored = updates
            .into_iter()
            .filter_map(|(inner, update)| self.store_update(inner, update));
        Ok(stored.collect())
    }

    fn cancel(&mut self, ticket: Ticket) {
        let mut running = self.running.iter();
        if let Some((inner, _)) = running.find(|(_, running)| running.ticket == ticket) {
            self.inner.cancel(*inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_journal::Contents;
    use neph_model::executor::contract;

    use super::*;
    use crate::LocalExecutor;
    use crate::executor::tests::{contract_subject, order, reflector};

    const PATIENCE: Span = Span::from_millis(20);

    fn followed(executor: &mut dyn Executor, ticket: Ticket) -> Vec<Update> {
        let mut followed_updates = Vec::new();
        loop {
            for (of, update) in executor.poll(PATIENCE).expect("it is there") {
                assert_eq!(of, ticket);
                let is_last = matches!(update, Update::Done(_));
                followed_updates.push(update);
                if is_last {
                    return followed_updates;
                }
            }
        }
    }

    #[test]
    fn the_journalling_executor_fulfils_the_executor_contract() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = || JournallingExecutor::new(LocalExecutor::new(), folder.path().to_owned());
        contract::check(&mut || Box::new(make()), contract_subject());
    }

    #[test]
    fn journals_contain_reported_messages_and_no_experiment_runs_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let local_reflector = reflector();
        let requested = order(&format!("ws://{}", local_reflector.address()));
        let (id, unreachable_order) = (requested.experiment.id, order("ws://127.0.0.1:1"));
        let mut executor = JournallingExecutor::new(LocalExecutor::new(), folder.path().to_owned());
        let both_orders = Order::Experiments(vec![unreachable_order.clone(), requested.clone()]);
        let ticket = executor.submit(both_orders);
        let mut messages = Vec::new();
        for update in followed(&mut executor, ticket) {
            if let Update::Recorded(_, records) = update {
                messages.extend(records.messages);
            }
        }
        let path = journal_path(folder.path(), id);
        let contents = Contents::of(&path, id).expect("readable").expect("there");
        let mut stored_messages = Vec::new();
        let visited = contents.each_message(|message| {
            stored_messages.push(message);
            Ok::<(), neph_journal::JournalError>(())
        });
        visited.expect("readable");
        messages.sort_by_key(|message| (message.flow, message.seq));
        assert!(!stored_messages.is_empty());
        assert_eq!(stored_messages, messages);
        let missing_journal = journal_path(folder.path(), unreachable_order.experiment.id);
        assert!(!missing_journal.exists(), "it did not begin");

        let ticket = executor.submit(Order::Experiments(vec![requested]));
        let updates = followed(&mut executor, ticket);
        let [Update::Done(Err(reason))] = &updates[..] else {
            panic!("{updates:?}")
        };
        assert!(
            reason.to_string().contains("carried out before"),
            "{reason}"
        );
    }

    #[test]
    fn an_order_without_a_writable_journal_fails_and_reports_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let local_reflector = reflector();
        let mut requested = order(&format!("ws://{}", local_reflector.address()));
        requested.scenario.messages = 100_000;
        let missing_folder = folder.path().join("gone");
        let mut executor = JournallingExecutor::new(LocalExecutor::new(), missing_folder);
        let ticket = executor.submit(Order::Experiments(vec![requested]));
        let updates = followed(&mut executor, ticket);
        let [Update::Done(Err(reason))] = &updates[..] else {
            panic!("{updates:?}")
        };
        assert!(
            reason.to_string().starts_with("begin a journal"),
            "{reason}"
        );
    }
}
