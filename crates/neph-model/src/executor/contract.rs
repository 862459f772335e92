//! The guarantees of every executor, as claims that a test checks.
//!
//! Owns the claims; the caller provides what to measure. A claim that is not true panics with its
//! name.

#![expect(
    clippy::disallowed_methods,
    reason = "a claim about an executor has a deadline, and this crate uses none of ours"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Executor, OrderResult, Ticket, Update};
use crate::{
    CampaignId, Ending, Experiment, ExperimentId, ExperimentOrder, FlowIndex, Order, Scenario, Seq,
    Span, Wall,
};

/// How long an order may take to end once it is cancelled.
const MAX_AFTER_CANCEL: Duration = Duration::from_secs(10);
/// How long an order of the contract may take in all.
const MAX_ORDER_DURATION: Duration = Duration::from_mins(1);
const POLL_TIMEOUT: Span = Span::from_millis(20);

/// Something to measure: each call makes a new experiment.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// One of at least 10 messages that is over within some seconds.
    pub short_order: fn() -> ExperimentOrder,
    /// One that would run for minutes.
    pub long_order: fn() -> ExperimentOrder,
    /// One that cannot begin.
    pub impossible_order: fn() -> ExperimentOrder,
    /// The messages in the journal of an experiment in this folder.
    pub journalled: fn(&Path, ExperimentId) -> Vec<(FlowIndex, Seq)>,
}

/// An order for a new experiment of a scenario, of this host, with nothing besides.
pub fn order_of(scenario: Scenario, timeout: Span) -> ExperimentOrder {
    ExperimentOrder {
        experiment: Experiment::new(CampaignId::new(), scenario.id, Wall::from_unix_nanos(0)),
        scenario,
        site: None,
        reflector: false,
        last_address: None,
        timeout,
        companion: None,
        pings: Vec::new(),
        trace: None,
        start: None,
    }
}

/// What was reported of one order, up to its end.
#[derive(Debug)]
struct Reported {
    subject: Subject,
    updates: Vec<Update>,
    messages: BTreeMap<ExperimentId, BTreeSet<(FlowIndex, Seq)>>,
    ended: Option<Instant>,
}

impl Reported {
    const fn of(subject: Subject) -> Self {
        Self {
            subject,
            updates: Vec::new(),
            messages: BTreeMap::new(),
            ended: None,
        }
    }

    /// Whether its messages are being sent.
    fn sends(&self) -> bool {
        self.has_sent(1)
    }

    /// Whether this number of messages was due.
    fn has_sent(&self, count: u64) -> bool {
        let is_running = |update: &Update| match update {
            Update::Progress(progress) => progress.due >= count,
            Update::Recorded(_, records) => !records.messages.is_empty(),
            _ => false,
        };
        self.updates.iter().any(is_running)
    }

    fn results(&self) -> &[Result<crate::ExperimentResult, crate::OrderFailed>] {
        match self.updates.last() {
            Some(Update::Done(Ok(OrderResult::Experiments(results)))) => results,
            _ => panic!("an order for experiments ends with their results"),
        }
    }

    fn endings(&self) -> Vec<Ending> {
        let each = self
            .results()
            .iter()
            .map(|experiment_result| match experiment_result {
                Ok(result) => result.ending.clone(),
                Err(reason) => Ending::Failed(reason.to_string()),
            });
        each.collect()
    }

    fn add(&mut self, update: Update) {
        let (experiment, messages) = match &update {
            Update::Recorded(experiment, records) => {
                let each = records.messages.iter();
                let keys = each.map(|message| (message.flow, message.seq));
                (*experiment, keys.collect())
            }
            Update::Journalled(experiment, folder) => {
                (*experiment, (self.subject.journalled)(folder, *experiment))
            }
            _ => return self.updates.push(update),
        };
        let observed = self.messages.entry(experiment).or_default();
        for message in messages {
            assert!(observed.insert(message), "{message:?} is reported twice");
        }
        self.updates.push(update);
    }

    /// How many messages were reported of an experiment, each once.
    fn messages(&self, of: ExperimentId) -> usize {
        self.messages.get(&of).map_or(0, BTreeSet::len)
    }
}

/// Polls until all these orders have ended; `each` sees the time and what was reported so far.
fn follow(
    executor: &mut dyn Executor,
    subject: Subject,
    tickets: &[Ticket],
    mut each: impl FnMut(&mut dyn Executor, &BTreeMap<Ticket, Reported>),
) -> BTreeMap<Ticket, Reported> {
    let began = Instant::now();
    let mut reports: BTreeMap<Ticket, Reported> = tickets
        .iter()
        .map(|ticket| (*ticket, Reported::of(subject)))
        .collect();
    while reports.values().any(|report| report.ended.is_none()) {
        let open = reports.iter().filter(|(_, report)| report.ended.is_none());
        let open: Vec<&Ticket> = open.map(|(ticket, _)| ticket).collect();
        assert!(
            began.elapsed() < MAX_ORDER_DURATION,
            "an order ends: {open:?}"
        );
        for (ticket, update) in executor.poll(POLL_TIMEOUT).expect("the executor is there") {
            let entry = reports
                .get_mut(&ticket)
                .expect("only what was ordered is reported");
            assert!(entry.ended.is_none(), "nothing comes after the end");
            let is_first = entry.updates.is_empty();
            let is_prepared = matches!(update, Update::Prepared(_));
            let failed = matches!(update, Update::Done(Err(_)));
            assert!(
                failed || is_prepared == is_first,
                "prepared comes first, and once"
            );
            if matches!(update, Update::Done(_)) {
                entry.ended = Some(Instant::now());
            }
            entry.add(update);
        }
        each(executor, &reports);
    }
    reports
}

/// Checks every claim on executors that `make` creates.
///
/// # Panics
/// A claim is not true.
pub fn check(make: &mut dyn FnMut() -> Box<dyn Executor>, subject: Subject) {
    an_experiment_is_reported_whole(make().as_mut(), subject);
    what_cannot_begin_leaves_the_others_alone(make().as_mut(), subject);
    orders_run_at_the_same_time_and_one_is_cancelled(make().as_mut(), subject);
    a_cancelled_order_keeps_what_it_measured(make().as_mut(), subject);
    nothing_to_report_takes_no_longer_than_patience(make().as_mut());
}

fn an_experiment_is_reported_whole(executor: &mut dyn Executor, subject: Subject) {
    let order = (subject.short_order)();
    let (id, expected) = (order.experiment.id, order.scenario.messages);
    let ticket = executor.submit(Order::Experiments(vec![order]));
    let reports = follow(executor, subject, &[ticket], |_, _| {});
    let report = &reports[&ticket];
    assert_eq!(report.endings(), [Ending::Complete]);
    let Some(Update::Prepared(prepared)) = report.updates.first() else {
        panic!("what is prepared comes first");
    };
    let prepared = prepared[0].as_ref().expect("it can begin");
    let ended = report.results()[0].as_ref().expect("it ran").ended;
    assert!(prepared.started <= ended, "it ends after it began");
    assert_eq!(report.messages(id) as u64, expected, "each message once");
    // After the end, a cancel does nothing, and no report follows.
    executor.cancel(ticket);
    let more = executor.poll(POLL_TIMEOUT).expect("the executor is there");
    assert_eq!(more, []);
}

fn what_cannot_begin_leaves_the_others_alone(executor: &mut dyn Executor, subject: Subject) {
    let orders = vec![(subject.impossible_order)(), (subject.short_order)()];
    let ticket = executor.submit(Order::Experiments(orders));
    let reports = follow(executor, subject, &[ticket], |_, _| {});
    let endings = reports[&ticket].endings();
    assert!(
        matches!(&endings[..], [Ending::Failed(_), Ending::Complete]),
        "{endings:?}"
    );
}

fn orders_run_at_the_same_time_and_one_is_cancelled(executor: &mut dyn Executor, subject: Subject) {
    let long = executor.submit(Order::Experiments(vec![(subject.long_order)()]));
    let order = (subject.short_order)();
    let half = order.scenario.messages / 2;
    let short = executor.submit(Order::Experiments(vec![order]));
    assert_ne!(long, short, "each order has its ticket");
    // The long one would outlast the contract: the short one ends during it. Journals are
    // transferred while nothing is measured, which is after the long one.
    let reports = follow(executor, subject, &[long, short], |executor, reports| {
        let is_alongside = executor.gives_journals() && reports[&short].has_sent(half);
        if reports[&short].ended.is_some() || is_alongside {
            executor.cancel(long);
        }
    });
    assert_eq!(reports[&short].endings(), [Ending::Complete]);
    assert_eq!(reports[&long].endings(), [Ending::Interrupted]);
}

fn a_cancelled_order_keeps_what_it_measured(executor: &mut dyn Executor, subject: Subject) {
    let order = (subject.long_order)();
    let (id, message_count) = (order.experiment.id, order.scenario.messages);
    let ticket = executor.submit(Order::Experiments(vec![order]));
    let mut cancelled: Option<Instant> = None;
    let reports = follow(executor, subject, &[ticket], |executor, reports| {
        if cancelled.is_none() && reports[&ticket].sends() {
            executor.cancel(ticket);
            cancelled = Some(Instant::now());
        }
    });
    let report = &reports[&ticket];
    assert_eq!(report.endings(), [Ending::Interrupted]);
    let stored = report.messages(id) as u64;
    assert!(
        (1..message_count).contains(&stored),
        "{stored} of {message_count} messages"
    );
    let ended = report.ended.expect("it ended");
    let took = ended.duration_since(cancelled.expect("it was cancelled"));
    assert!(took < MAX_AFTER_CANCEL, "it ends within {took:?}");
}

fn nothing_to_report_takes_no_longer_than_patience(executor: &mut dyn Executor) {
    let began = Instant::now();
    assert_eq!(executor.poll(POLL_TIMEOUT), Ok(Vec::new()));
    // A busy machine may take its time; a poll that waits for an update would wait for ever.
    assert!(began.elapsed() < MAX_AFTER_CANCEL, "a poll returns");
}
