//! Runs the flows and collects their reports, in bounded memory.

use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use neph_model::{EventKind, FlowRole, Instant, Local, Stop};
use neph_probe::{Flow, Report, now};
use neph_sys::clock;

use super::first_reply::FirstReply;
use super::ping_writer::PingWriter;
use crate::exit::Failure;
use crate::metrics::ping::PingMetrics;
use crate::output;
use neph_documents::ping::{FlowTotals, PingResult, PlannedFlow, PlannedFlows};

/// Interval at which reports of the flows are read.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the flows to their end.
///
/// # Errors
/// The main flow cannot start: the others are useless without it. If another flow cannot start,
/// that is reported.
pub(super) fn run(
    planned_flows: &PlannedFlows,
    stop: &Stop,
    writer: &mut PingWriter<'_>,
    metrics: &PingMetrics,
) -> Result<PingResult, Failure> {
    let mut flow_slots = Vec::new();
    let flows_stop = Stop::new();
    for planned in &planned_flows.flows {
        let flow = Flow::start(planned.spec.clone(), flows_stop.clone())?;
        flow_slots.push(Some(flow));
    }
    let mut result = PingResult::default();
    result
        .flows
        .resize_with(flow_slots.len(), FlowTotals::default);
    let mut first_replies: Vec<FirstReply> = Vec::new();
    first_replies.resize_with(flow_slots.len(), FirstReply::default);
    loop {
        if stop.is_set() {
            flows_stop.set();
        }
        let mut open_count = 0;
        // In reverse order: the ICMP echo is last, and its result is a column in the lines of the
        // main flow.
        for (index, slot) in flow_slots.iter_mut().enumerate().rev() {
            let mut watched_flow = WatchedFlow {
                planned: &planned_flows.flows[index],
                measured: &mut result.flows[index],
                first_reply: &mut first_replies[index],
                metrics: (metrics, index),
            };
            if watched_flow.read_reports(slot.as_ref(), writer)? {
                open_count += 1;
            } else if let Some(flow) = slot.take()
                && let Err(error) = flow.join()
            {
                if planned_flows.flows[index].spec.role == FlowRole::Main {
                    flows_stop.set();
                    return Err(error.into());
                }
                output::say(&format!("neph: {error}"));
            }
        }
        // The additional ICMP echo ends with the main flow.
        let mut requested_flows = flow_slots
            .iter()
            .zip(&planned_flows.flows)
            .filter(|(_, planned)| planned.is_requested());
        if requested_flows.all(|(slot, _)| slot.is_none()) {
            flows_stop.set();
        }
        if result.early_end_reason.is_none() {
            result.early_end_reason = give_up_reason(&first_replies, planned_flows, now());
            if result.early_end_reason.is_some() {
                flows_stop.set();
            }
        }
        if open_count == 0 {
            break;
        }
        clock::nap(POLL_INTERVAL);
    }
    Ok(result)
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
    fn read_reports(
        &mut self,
        slot: Option<&Flow>,
        writer: &mut PingWriter<'_>,
    ) -> Result<bool, Failure> {
        let Self {
            planned,
            measured,
            first_reply,
            metrics: (metrics, flow_index),
        } = self;
        let Some(flow) = slot else { return Ok(false) };
        loop {
            match flow.reports().try_recv() {
                Ok(Report::Message(message)) => {
                    if message.ledger().is_some() {
                        first_reply.set_answered();
                    }
                    measured.add(&message);
                    metrics.add_message(*flow_index, &message);
                    writer.message(planned, &message)?;
                }
                Ok(Report::Reply(message)) => {
                    first_reply.set_answered();
                    writer.reply(planned, &message)?;
                }
                Ok(Report::Event { kind, text, at }) => {
                    measured.connections += u32::from(kind == EventKind::Connected);
                    first_reply.record_event(kind, &text, now());
                    metrics.add_event(*flow_index, kind);
                    writer.event(planned, at, kind, &text)?;
                }
                Ok(Report::Opened { .. } | Report::Tcp { .. }) => {}
                Ok(Report::Anchor(anchor)) => writer.anchor(anchor),
                Ok(Report::Ended(tally)) => measured.tally = tally,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }
}

/// Why neph gives up: every requested endless flow has only met refusals. A flow with a given
/// number of messages sends them all.
fn give_up_reason(
    first_replies: &[FirstReply],
    planned_flows: &PlannedFlows,
    now: Instant<Local>,
) -> Option<String> {
    let requested_flows = first_replies.iter().zip(&planned_flows.flows);
    let requested_flows = requested_flows.filter(|(_, planned)| planned.is_requested());
    let mut reasons = requested_flows.map(|(first_reply, planned)| {
        let reason = first_reply.give_up_reason(now)?;
        let is_endless = planned.spec.schedule.messages().is_none();
        is_endless.then(|| format!("{}: {reason}", planned.spec.target))
    });
    let first_reason = reasons.next()??;
    reasons
        .all(|reason| reason.is_some())
        .then_some(first_reason)
}
