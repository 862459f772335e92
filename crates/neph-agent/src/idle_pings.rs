//! Pings to the plan's destinations while no experiment runs.

use std::collections::BTreeMap;
use std::time::Duration;

use neph_model::{
    Anchor, EchoTo, FlowIndex, FlowRole, Local, Message, Permit, PingBetween, PingOrder, Span,
    Stop, Update,
};
use neph_probe::{Flow as Running, FlowSpec, Placement, Priority, Report, Schedule};

use crate::flows::{ECHO, echo_to};
use crate::order_context::OrderContext;

/// How often what the flows report is taken in.
const TICK: Duration = Duration::from_millis(100);
/// The last pings get so long for their replies: the block begins on time.
const REPLY_MARGIN: Span = Span::from_secs(1);
/// Pings are reported together for so long: one transaction each would wear the disk.
const FLUSH_INTERVAL: Span = Span::from_secs(5);

/// Pings until the order's end. A destination that cannot be resolved is left out: the experiments report
/// it.
pub(crate) fn ping(order: &PingOrder, site: Option<&Placement>, context: &OrderContext) {
    let origin = neph_probe::anchor();
    let stop = Stop::new();
    let mut running: Vec<Option<Running>> = Vec::new();
    let mut specs = Vec::new();
    for spec in self::specs(order, site, context.permit(), origin) {
        // Without the right to send ICMP nothing is measured here, as in the experiments.
        if let Ok(flow) = Running::start(spec.clone(), stop.clone()) {
            running.push(Some(flow));
            specs.push(spec);
        }
    }
    let mut by_flow: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
    let mut last_flush = neph_probe::now();
    while running.iter().any(Option::is_some) {
        neph_probe::nap(TICK);
        if context.stop().is_set() || neph_probe::anchor().wall >= order.until {
            stop.set();
        }
        for (index, slot) in running.iter_mut().enumerate() {
            let Some(flow) = slot else { continue };
            let messages = by_flow.entry(index).or_default();
            for report in flow.reports().try_iter() {
                match report {
                    Report::Message(message) => messages.push(message),
                    Report::Ended(_) => {
                        *slot = None;
                        break;
                    }
                    _ => {}
                }
            }
        }
        let is_over = running.iter().all(Option::is_none);
        if is_over || neph_probe::now() - last_flush >= FLUSH_INTERVAL {
            last_flush = neph_probe::now();
            let pings = by_flow.iter().flat_map(|(index, messages)| {
                let spec = &specs[*index];
                messages
                    .iter()
                    .map(move |message| ping_between(order, spec, message, origin))
            });
            let pings: Vec<PingBetween> = pings.collect();
            by_flow.clear();
            context.report(Update::Pinged(pings));
        }
    }
}

fn ping_between(
    order: &PingOrder,
    spec: &FlowSpec,
    message: &Message,
    origin: Anchor<Local>,
) -> PingBetween {
    let sent = message.marks.app_send.unwrap_or(message.marks.intended);
    let ledger = message.ledger();
    PingBetween {
        block: order.block,
        name: spec.name.clone(),
        address: spec.address.ip(),
        sent: origin.to_wall(sent),
        outcome: message.outcome,
        round_trip: message
            .marks
            .network_and_peer_round_trip()
            .filter(|_| ledger.is_some())
            .or_else(|| ledger.map(|ledger| ledger.service_time())),
    }
}

fn specs(
    order: &PingOrder,
    site: Option<&Placement>,
    permit: &Permit,
    origin: Anchor<Local>,
) -> Vec<FlowSpec> {
    let remaining = Span::from_nanos(
        order
            .until
            .unix_nanos()
            .saturating_sub(origin.wall.unix_nanos()),
    ) - REPLY_MARGIN;
    let flow = |(index, ping): (u32, &EchoTo)| {
        let (target, address) = echo_to(&ping.host, None, site, permit).ok()?;
        debug_assert!(target.kind().is_echo());
        let count = u64::try_from(remaining.nanos() / ping.interval.nanos().max(1)).unwrap_or(0);
        (count > 0).then(|| FlowSpec {
            index: FlowIndex(index),
            role: FlowRole::PingDestination,
            name: ping.name.clone(),
            schedule: Schedule {
                interval: ping.interval,
                count: Some(count),
                duration: None,
            },
            request_size: ECHO,
            response_size: ECHO,
            timeout: order.timeout,
            priority: Priority::Normal,
            site: site.cloned(),
            permit: permit.clone(),
            ..FlowSpec::plain(target, address)
        })
    };
    (0..).zip(&order.pings).filter_map(flow).collect()
}
