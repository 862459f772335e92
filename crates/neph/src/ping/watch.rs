//! Runs the flows and collects their reports, in bounded memory.

use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use neph_model::{EventKind, FlowRole, Instant, Local, Stop};
use neph_probe::{Flow, Report, now};
use neph_sys::clock;

use super::first_reply::FirstReply;
use super::show::Show;
use crate::exit::Failure;
use crate::metrics::ping::PingMetrics;
use crate::output;
use neph_documents::ping::{FlowTotals, PingResult, PlannedFlow, PlannedFlows};

/// Interval at which reports of the flows are read.
const TICK: Duration = Duration::from_millis(10);

/// Runs the flows to their end.
///
/// # Errors
/// The main flow cannot start: the others are useless without it. If another flow cannot start,
/// that is reported.
pub(super) fn run(
    planned_flows: &PlannedFlows,
    stop: &Stop,
    show: &mut Show<'_>,
    metrics: &PingMetrics,
) -> Result<PingResult, Failure> {
    let mut running = Vec::new();
    let own_stop = Stop::new();
    for planned in &planned_flows.flows {
        let flow = Flow::start(planned.spec.clone(), own_stop.clone())?;
        running.push(Some(flow));
    }
    let mut everything = PingResult::default();
    everything
        .flows
        .resize_with(running.len(), FlowTotals::default);
    let mut first_replies: Vec<FirstReply> = Vec::new();
    first_replies.resize_with(running.len(), FirstReply::default);
    loop {
        if stop.is_set() {
            own_stop.set();
        }
        let mut open = 0;
        // In reverse order: the ICMP echo is last, and its result is a column in the lines of the
        // main flow.
        for (index, slot) in running.iter_mut().enumerate().rev() {
            let mut taken = WatchedFlow {
                planned: &planned_flows.flows[index],
                measured: &mut everything.flows[index],
                first_reply: &mut first_replies[index],
                metrics: (metrics, index),
            };
            if taken.take(slot.as_ref(), show)? {
                open += 1;
            } else if let Some(flow) = slot.take()
                && let Err(error) = flow.join()
            {
                if planned_flows.flows[index].spec.role == FlowRole::Main {
                    own_stop.set();
                    return Err(error.into());
                }
                output::say(&format!("neph: {error}"));
            }
        }
        // The additional ICMP echo ends with the main flow.
        let mut asked_for = running
            .iter()
            .zip(&planned_flows.flows)
            .filter(|(_, f)| f.is_requested());
        if asked_for.all(|(slot, _)| slot.is_none()) {
            own_stop.set();
        }
        if everything.early_end_reason.is_none() {
            everything.early_end_reason = hopeless(&first_replies, planned_flows, now());
            if everything.early_end_reason.is_some() {
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

/// A flow whose reports are read.
struct WatchedFlow<'t> {
    planned: &'t PlannedFlow,
    measured: &'t mut FlowTotals,
    first_reply: &'t mut FirstReply,
    /// The index of the flow there.
    metrics: (&'t PingMetrics, usize),
}

impl WatchedFlow<'_> {
    /// Reads the reports of the flow. Returns whether more may follow.
    fn take(&mut self, slot: Option<&Flow>, show: &mut Show<'_>) -> Result<bool, Failure> {
        let Self {
            planned,
            measured: watched,
            first_reply,
            metrics: (metrics, flow_index),
        } = self;
        let Some(flow) = slot else { return Ok(false) };
        loop {
            match flow.reports().try_recv() {
                Ok(Report::Message(message)) => {
                    if message.ledger().is_some() {
                        first_reply.answered();
                    }
                    watched.add(&message);
                    metrics.message(*flow_index, &message);
                    show.message(planned, &message)?;
                }
                Ok(Report::Reply(message)) => {
                    first_reply.answered();
                    show.reply(planned, &message)?;
                }
                Ok(Report::Event { kind, text, at }) => {
                    watched.connections += u32::from(kind == EventKind::Connected);
                    first_reply.event(kind, &text, now());
                    metrics.event(*flow_index, kind);
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
}

/// Why neph gives up: every requested endless flow has only met refusals. A flow with a given
/// number of messages sends them all.
fn hopeless(
    first_replies: &[FirstReply],
    planned_flows: &PlannedFlows,
    now: Instant<Local>,
) -> Option<String> {
    let asked_for = first_replies.iter().zip(&planned_flows.flows);
    let asked_for = asked_for.filter(|(_, planned)| planned.is_requested());
    let mut whys = asked_for.map(|(first_reply, planned)| {
        let reason = first_reply.lost(now)?;
        let is_endless = planned.spec.schedule.messages().is_none();
        is_endless.then(|| format!("{}: {reason}", planned.spec.target))
    });
    let first = whys.next()??;
    whys.all(|reason| reason.is_some()).then_some(first)
}
