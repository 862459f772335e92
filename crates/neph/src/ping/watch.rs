//! Runs the flows and collects what they tell, in bounded memory.

use std::collections::VecDeque;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use neph_model::{
    Answer, Answers, ClockOffset, EventKind, FlowRole, Instant, Message, Own, Stop, SynAnswer,
    Tally,
};
use neph_probe::{Backends, Flow, Report, now};
use neph_stats::RunningSummary;
use neph_sys::clock;

use super::columns::Column;
use super::entries::Entries;
use super::flows::{Found, Planned};
use super::hope::Hope;
use super::retransmissions::Retransmissions;
use super::show::Show;
use crate::exit::Failure;
use crate::output;
use crate::peer_clock::PeerClock;

/// How often what the flows told is taken in.
const TICK: Duration = Duration::from_millis(10);

/// The latest messages of a flow, which diagnosis looks at: some 10 MB.
const RECENT: usize = 20_000;

/// What came of one flow.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) tally: Tally,
    /// One summary for each column, in nanoseconds.
    pub(super) values: Vec<RunningSummary>,
    /// Answers in their protocol's words, and why there was none.
    pub(super) answers: Answers,
    /// Where the time of the replies went.
    pub(super) entries: Entries,
    pub(super) retransmissions: Retransmissions,
    pub(super) last: Option<Message>,
    /// The latest messages, replied to or not.
    pub(super) recent: VecDeque<Message>,
    pub(super) connections: u32,
    /// Who answers behind the address.
    pub(super) backends: Backends,
    /// What the messages prove of the peer's clock.
    clock: PeerClock,
    hope: Hope,
}

/// What came of all flows.
#[derive(Debug, Default)]
pub(super) struct Everything {
    pub(super) flows: Vec<Watched>,
    /// Why it ended before anybody asked it to: nobody has ever answered.
    pub(super) given_up: Option<String>,
}

/// Runs the flows to their end.
///
/// # Errors
/// When the main flow cannot begin: what accompanies it is of no use alone. Of any other flow that
/// cannot, a sentence is said.
pub(super) fn run(found: &Found, stop: &Stop, show: &mut Show<'_>) -> Result<Everything, Failure> {
    let mut running = Vec::new();
    let own_stop = Stop::new();
    for planned in &found.flows {
        let flow = Flow::start(planned.spec.clone(), own_stop.clone())?;
        running.push(Some(flow));
    }
    let mut everything = Everything::default();
    everything
        .flows
        .resize_with(running.len(), Watched::default);
    loop {
        if stop.is_set() {
            own_stop.set();
        }
        let mut open = 0;
        // Backwards: the companion's echo has a column in the lines of what it accompanies.
        for (index, slot) in running.iter_mut().enumerate().rev() {
            let watched = &mut everything.flows[index];
            if take(slot.as_ref(), &found.flows[index], watched, show)? {
                open += 1;
            } else if let Some(flow) = slot.take()
                && let Err(error) = flow.join()
            {
                if found.flows[index].spec.role == FlowRole::Main {
                    own_stop.set();
                    return Err(error.into());
                }
                output::say(&format!("neph: {error}"));
            }
        }
        // The companion never outlives what it accompanies.
        let mut asked_for = running
            .iter()
            .zip(&found.flows)
            .filter(|(_, f)| f.is_asked_for());
        if asked_for.all(|(slot, _)| slot.is_none()) {
            own_stop.set();
        }
        if everything.given_up.is_none() {
            everything.given_up = everything.hopeless(found, now());
            if everything.given_up.is_some() {
                own_stop.set();
            }
        }
        if open == 0 {
            break;
        }
        clock::nap(TICK);
    }
    Ok(everything)
}

/// Takes in what a flow told; whether it may tell more.
fn take(
    slot: Option<&Flow>,
    planned: &Planned,
    watched: &mut Watched,
    show: &mut Show<'_>,
) -> Result<bool, Failure> {
    let Some(flow) = slot else { return Ok(false) };
    loop {
        match flow.reports().try_recv() {
            Ok(Report::Message(message)) => {
                if message.ledger().is_some() {
                    watched.hope.answered();
                }
                watched.add(&message);
                show.message(planned, &message)?;
            }
            Ok(Report::Reply(message)) => {
                watched.hope.answered();
                show.reply(planned, &message)?;
            }
            Ok(Report::Event { kind, text, at }) => {
                watched.connections += u32::from(kind == EventKind::Connected);
                watched.hope.event(kind, &text, now());
                show.event(planned, at, kind, &text)?;
            }
            Ok(Report::Opened { .. } | Report::Tcp { .. }) => {}
            Ok(Report::Anchor(anchor)) => show.anchor(anchor),
            Ok(Report::Ended(tally)) => watched.tally = tally,
            Err(TryRecvError::Empty) => return Ok(true),
            Err(TryRecvError::Disconnected) => return Ok(false),
        }
    }
}

impl Everything {
    /// Why nothing will come of it: each flow that was asked for is to go on until it is stopped,
    /// and has only met refusals. Whoever said how many messages there are gets as many.
    fn hopeless(&self, found: &Found, now: Instant<Own>) -> Option<String> {
        let asked_for = self.flows.iter().zip(&found.flows);
        let mut whys =
            asked_for
                .filter(|(_, planned)| planned.is_asked_for())
                .map(|(watched, planned)| {
                    let why = watched.hope.lost(now)?;
                    let is_endless = planned.spec.schedule.messages().is_none();
                    is_endless.then(|| format!("{}: {why}", planned.spec.target))
                });
        let first = whys.next()??;
        whys.all(|why| why.is_some()).then_some(first)
    }
}

impl Watched {
    fn add(&mut self, message: &Message) {
        self.values
            .resize_with(Column::ALL.len(), RunningSummary::default);
        self.answers.count(message.answer);
        self.last = Some(*message);
        self.retransmissions.add(message);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(*message);
        let Some(ledger) = message.ledger() else {
            return;
        };
        self.backends.add(message);
        self.entries.add(&ledger);
        self.clock.message(&message.marks);
        for (column, values) in Column::ALL.iter().zip(&mut self.values) {
            #[expect(clippy::cast_precision_loss, reason = "statistics")]
            let value = column.of(message).map(|span| span.nanos() as f64);
            if let Some(value) = value {
                values.add(value).expect("a span is finite");
            }
        }
    }

    /// Replies that were a RST to our SYN.
    pub(super) fn refused(&self) -> u64 {
        self.answers.of(Answer::Syn(SynAnswer::Rst))
    }

    /// The peer's clock minus ours when the latest message left, as far as the messages prove it.
    /// Several machines behind the address have no one clock.
    pub(super) fn offset(&self) -> Option<ClockOffset> {
        if self.backends.several().is_some() {
            return None;
        }
        let left = self.last.as_ref()?.marks.nic_tx?;
        self.clock.offset(left.nanos())
    }
}
