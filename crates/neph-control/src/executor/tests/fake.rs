//! A test executor without measurements.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use neph_model::{
    Ending, Executor, ExecutorLost, ExperimentId, ExperimentOrder, ExperimentResult, FlowIndex,
    Instant, Marks, Message, Order, OrderResult, Prepared, Records, Seq, Span, Ticket, Update,
    Wall,
};

/// Messages of each experiment.
pub(super) const MESSAGES: u64 = 6;

/// Records one message per poll, and counts the starts of each experiment.
#[derive(Debug)]
pub(super) struct Fake {
    starts: Arc<Mutex<BTreeMap<ExperimentId, u64>>>,
    running: BTreeMap<Ticket, (Vec<ExperimentOrder>, u64)>,
    next: Ticket,
}

pub(super) fn message(seq: u64) -> Message {
    let at = Instant::from_nanos(i64::try_from(seq).expect("few") * 1_000_000);
    Message::new(FlowIndex(0), Seq(seq), Marks::intended_at(at))
}

pub(super) fn ended(ending: Ending) -> ExperimentResult {
    ExperimentResult::of_end(ending, Wall::from_unix_nanos(9), Vec::new())
}

impl Fake {
    pub(super) fn new(starts: Arc<Mutex<BTreeMap<ExperimentId, u64>>>) -> Self {
        Self {
            starts,
            running: BTreeMap::new(),
            next: Ticket(0),
        }
    }
}

impl Executor for Fake {
    fn submit(&mut self, order: Order) -> Ticket {
        let Order::Experiments(orders) = order else {
            panic!("only experiments are ordered")
        };
        let ticket = self.next;
        self.next.0 += 1;
        for order in &orders {
            let mut starts = self.starts.lock().expect("whole");
            *starts.entry(order.experiment.id).or_default() += 1;
        }
        self.running.insert(ticket, (orders, 0));
        ticket
    }

    fn poll(&mut self, _patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        let mut updates = Vec::new();
        self.running.retain(|ticket, (orders, done)| {
            let started = Wall::from_unix_nanos(1);
            if *done == 0 {
                let prepared = |_: &ExperimentOrder| {
                    Ok(Prepared {
                        started,
                        flows: Vec::new(),
                        fleet: None,
                    })
                };
                let prepared_orders = orders.iter().map(prepared).collect();
                updates.push((*ticket, Update::Prepared(prepared_orders)));
            } else {
                for order in &*orders {
                    let records = Records {
                        messages: vec![message(*done - 1)],
                        ..Records::default()
                    };
                    updates.push((*ticket, Update::Recorded(order.experiment.id, records)));
                }
            }
            *done += 1;
            if *done > MESSAGES {
                let results = orders.iter().map(|_| Ok(ended(Ending::Complete)));
                let result = OrderResult::Experiments(results.collect());
                updates.push((*ticket, Update::Done(Ok(result))));
            }
            *done <= MESSAGES
        });
        Ok(updates)
    }

    fn cancel(&mut self, _ticket: Ticket) {}
}
