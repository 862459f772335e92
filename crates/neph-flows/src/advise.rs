//! Advice on source ports: which ports give the lowest latency, how long such advice has held, and its gain.
//! Refuses advice without sufficient data.
//!
//! The advice is tested on past data. It is given at many moments from what was known then, and compared
//! later with the latencies of the port and of all other ports.

use neph_model::{Instant, Local, Span};

use crate::advice::{
    Advice, AdviceEvidence, AdvisedPort, BestOf, CAUTION, LowestClassLoss, PortAdvice,
};
use crate::backtest::{backtest, min_duration};
use crate::horizon::Horizon;
use crate::recent_outcomes::LastMessages;
use crate::share::{Share, share};
use crate::view::{FleetView, FlowHistory};

mod loss;

/// Minimum number of flows of a pair.
const MIN_FLOWS: usize = 8;
/// Maximum number of ports that are named.
const MAX_PORTS: usize = 8;
/// Ports are named only if the advice held for at least the time that following it takes.
const MIN_VALIDITY: Span = Span::from_secs(60);
/// It must also hold for this long, if the measurement is long enough to show it.
const PREFERRED_VALIDITY: Span = Span::from_secs(300);
/// Numbers of connections that are evaluated.
const CONNECTION_COUNTS: [u32; 5] = [1, 2, 4, 8, 16];

/// Adds the advice on source ports for each endpoint.
pub fn add_advice(view: &mut FleetView) {
    let endpoints = 0..view.fleet.endpoints.len();
    view.advice = endpoints.map(|endpoint| advise(view, endpoint)).collect();
}

/// Advice on source ports for the endpoint with this index, which must exist in the fleet.
fn advise(view: &FleetView, endpoint: usize) -> Advice {
    let name = |endpoint: &neph_model::FleetEndpoint| endpoint.name.clone();
    let port_advice = match collect_evidence(view, endpoint) {
        Ok(evidence) => PortAdvice::Given(Box::new(evidence)),
        Err(reason) => PortAdvice::Refused { why: reason },
    };
    Advice {
        endpoint: view
            .fleet
            .endpoints
            .get(endpoint)
            .map_or_else(String::new, name),
        port_advice,
        caution: CAUTION,
    }
}

/// A flow at the end of the measurement.
#[derive(Clone, Copy, Debug)]
struct FinalFlow {
    /// Its index among the endpoint's flows.
    flow: usize,
    port: u16,
    base: Span,
    class: Option<u16>,
    start: Instant<Local>,
    until: Instant<Local>,
    last_messages: LastMessages,
}

fn collect_evidence(view: &FleetView, endpoint: usize) -> Result<AdviceEvidence, String> {
    let flows: Vec<&FlowHistory> = view.flows_of(endpoint).collect();
    let classes = view.classes.get(endpoint).map_or(&[][..], Vec::as_slice);
    let flows_at_end = flows_at_end(view, &flows);
    if flows_at_end.len() < MIN_FLOWS {
        return Err(format!(
            "{} had a base latency at the end; advice needs {MIN_FLOWS}: measure with more flows, or longer",
            count_text(flows_at_end.len())
        ));
    }
    let [low, _, ..] = classes else {
        return Err(
            "all flows have the same base latency: no source port is better than another"
                .to_owned(),
        );
    };
    let on_low = flows_at_end
        .iter()
        .filter(|flow| flow.class == Some(0))
        .count();
    let lowest_class_share = share(on_low as u64, flows_at_end.len() as u64)
        .ok_or("no flow had a base latency at the end")?;
    let horizons = backtest(view, &flows);
    let ports = choose_ports(&flows_at_end);
    let loss = loss::lowest_class_loss(classes, &flows, &flows_at_end);
    let validity = match loss.filter(|loss| loss.is_more) {
        Some(loss) => Err(loss_refusal(&loss)),
        None => check_validity(view, (on_low, ports.len()), &horizons, low.share),
    };
    let mut bases: Vec<(Span, f64)> = classes
        .iter()
        .map(|class| (class.base, class.share))
        .collect();
    bases.sort_unstable_by_key(|(base, _)| *base);
    Ok(AdviceEvidence {
        low: low.base,
        random: expected_best(&bases, 1).p50,
        lowest_class_share,
        loss,
        ports: if validity.is_ok() { ports } else { Vec::new() },
        holds: validity.as_ref().ok().copied(),
        no_ports: validity.err(),
        best_of: CONNECTION_COUNTS
            .iter()
            .map(|connections| expected_best(&bases, *connections))
            .collect(),
        horizons,
    })
}

fn count_text(number: usize) -> String {
    match number {
        0 => "no flow".to_owned(),
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    }
}

/// The flows that continued until the end. A flow without recent messages does not count.
fn flows_at_end(view: &FleetView, flows: &[&FlowHistory]) -> Vec<FinalFlow> {
    let recent_limit = view.until - view.silence();
    let final_flows = flows.iter().enumerate().filter_map(|(index, flow)| {
        let segment = flow
            .segments
            .last()
            .filter(|segment| segment.until >= recent_limit)?;
        Some(FinalFlow {
            flow: index,
            port: flow.source_port,
            base: segment.base,
            class: segment.class,
            start: segment.from,
            until: segment.until,
            last_messages: flow.last,
        })
    });
    final_flows.collect()
}

/// Whether ports can be named and how long such advice held; or why not, although flows differ. `ports` are
/// the number on the lowest path, and how many of them lose no more than others.
fn check_validity(
    view: &FleetView,
    (on_low, ports): (usize, usize),
    horizons: &[Horizon],
    lowest_class_share: f64,
) -> Result<Span, String> {
    if let Some(lifetime) = view.fleet.lifetime {
        return Err(format!(
            "flows were replaced every {}, so it is unknown how long a port keeps its path; measure without --renew",
            lifetime.exact()
        ));
    }
    if on_low == 0 {
        return Err("no flow was in the lowest class at the end".to_owned());
    }
    if ports == 0 {
        return Err(
            "the flows in the lowest class lost more of their last messages than the others"
                .to_owned(),
        );
    }
    let is_decisive = |horizon: &&Horizon| {
        (MIN_VALIDITY..=PREFERRED_VALIDITY).contains(&horizon.after) && horizon.can_hold()
    };
    let Some(decisive_horizon) = horizons.iter().rev().find(is_decisive) else {
        let chance = horizons
            .last()
            .map_or(lowest_class_share, |horizon| horizon.random_on_lowest_class);
        return Err(too_short_refusal(chance));
    };
    // Advice that is not better than a random port is no advice.
    let valid_horizons = horizons.iter().take_while(|horizon| horizon.holds());
    match valid_horizons.last() {
        Some(longest_horizon) if longest_horizon.after >= decisive_horizon.after => {
            Ok(longest_horizon.after)
        }
        _ => {
            let expired_horizon = horizons.iter().find(|horizon| !horizon.holds());
            Err(expired_refusal(expired_horizon.unwrap_or(decisive_horizon)))
        }
    }
}

fn loss_refusal(loss: &LowestClassLoss) -> String {
    let percent = |share: f64| share * 100.0;
    format!(
        "the low path loses {:.1} % of its messages (95 % confidence interval {:.1} to {:.1}), the others {:.1} %; compare the cost of loss with the gain in latency",
        percent(loss.low.share),
        percent(loss.low.low),
        percent(loss.low.high),
        percent(loss.others.share)
    )
}

fn too_short_refusal(chance: f64) -> String {
    let instruction = match min_duration(MIN_VALIDITY, chance) {
        Some(duration) => format!("measure for {}", duration.exact()),
        None => "no length suffices, as nearly all ports are on the path with the lowest latency"
            .to_owned(),
    };
    format!(
        "the measurement is too short to test whether its advice holds for {}; {instruction}",
        MIN_VALIDITY.exact()
    )
}

fn expired_refusal(horizon: &Horizon) -> String {
    format!(
        "ports do not keep their path. {} after the advice, a port was still on the low path in {:.0} % of checks (95 % confidence interval {:.0} to {:.0} from {} independent checks). A random port was on it in {:.0} %. Open several connections, keep the fastest, and check often",
        horizon.after.exact(),
        horizon.on_low.share * 100.0,
        horizon.on_low.low * 100.0,
        horizon.on_low.high * 100.0,
        horizon.on_low.n,
        horizon.random_on_lowest_class * 100.0
    )
}

/// The ports on the lowest path, without those that lose more than the others.
fn choose_ports(flows_at_end: &[FinalFlow]) -> Vec<AdvisedPort> {
    let count = |count_of: fn(&FinalFlow) -> u32| {
        flows_at_end
            .iter()
            .map(count_of)
            .map(u64::from)
            .sum::<u64>()
    };
    let totals = (
        count(|flow| flow.last_messages.lost),
        count(|flow| flow.last_messages.of),
    );
    let mut low: Vec<(&FinalFlow, Option<Share>)> = flows_at_end
        .iter()
        .filter(|flow| flow.class == Some(0))
        .map(|flow| {
            (
                flow,
                share(flow.last_messages.lost.into(), flow.last_messages.of.into()),
            )
        })
        .filter(|(flow, loss)| !has_more_loss(flow.last_messages, *loss, totals))
        .collect();
    low.sort_by_key(|(flow, _)| (flow.start, flow.base, flow.port));
    let ports = low
        .into_iter()
        .take(MAX_PORTS)
        .map(|(flow, loss)| AdvisedPort {
            port: flow.port,
            base: flow.base,
            held: flow.until - flow.start,
            loss,
        });
    ports.collect()
}

/// Whether a flow's loss is significantly above that of the others. `totals` are lost and all messages of all
/// flows.
fn has_more_loss(last_messages: LastMessages, loss: Option<Share>, totals: (u64, u64)) -> bool {
    let loss_of_others = share(
        totals.0.saturating_sub(last_messages.lost.into()),
        totals.1.saturating_sub(last_messages.of.into()),
    );
    let others_share = loss_of_others.map_or(0.0, |loss| loss.share);
    loss.is_some_and(|loss| loss.low > others_share)
}

/// The best of `connections` independent flows, which fall into classes by their shares. It is above a class
/// only if all of them are.
fn expected_best(classes: &[(Span, f64)], connections: u32) -> BestOf {
    let exponent = i32::try_from(connections).unwrap_or(i32::MAX);
    let total: f64 = classes.iter().map(|(_, share)| share).sum();
    // The probability that all are above the first `n` classes.
    let all_above_probability = |n: usize| {
        let lower_share: f64 = classes[..n].iter().map(|(_, share)| share).sum();
        (1.0 - lower_share / total).max(0.0).powi(exponent)
    };
    let quantile = |p: f64| {
        let class_count = (1..=classes.len()).find(|n| 1.0 - all_above_probability(*n) >= p - 1e-9);
        let last_index = classes.len().saturating_sub(1);
        classes[class_count.map_or(last_index, |n| n - 1)].0
    };
    BestOf {
        connections,
        chance: 1.0 - all_above_probability(1),
        p50: quantile(0.5),
        p99: quantile(0.99),
    }
}

#[cfg(test)]
mod tests;
