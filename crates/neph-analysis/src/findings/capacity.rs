//! The capacity of a pair's link, from its throughput checks and messages.
//!
//! Owns when a check's result is the capacity and when it is a lower limit. The limit applies if messages
//! achieved more, or if the check ended before it had filled the link.

use neph_model::{SEGMENT, Span, Throughput};

use super::compare::median;
use crate::data::ExperimentData;
use crate::text::to_f64;
use crate::{CampaignData, PlotSettings};

/// A check is too low if the messages achieved more by this factor: both include headers.
const MIN_EXCEEDING_RATIO: f64 = 1.1;
/// Without losses, a window of this many times the achieved rate is not used yet.
const UNUSED_WINDOW_RATIO: f64 = 2.0;
/// A full link without losses has a queue that increases the RTT by this factor.
const QUEUE_RTT_RATIO: f64 = 1.25;

#[expect(clippy::cast_precision_loss, reason = "a segment")]
const SEGMENT_BITS: f64 = SEGMENT.bytes() as f64 * 8.0;

/// Capacity in bits of payload per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Capacity {
    /// The result of the checks.
    Measured(f64),
    /// The result of the checks is a lower limit.
    AtLeast(f64),
}

/// What the messages of a pair show of its link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Highest payload rate in an experiment, bits per second.
    max_rate: f64,
    /// The shortest round trip of all.
    min_rtt: Option<Span>,
}

impl Capacity {
    /// By the checks that have a result; `None` without one.
    pub(crate) fn of(checks: &[&Throughput], traffic: Traffic) -> Option<Self> {
        let max = checks.iter().map(|check| goodput(check)).reduce(f64::max)?;
        let filled_checks = checks.iter().filter(|check| {
            !ended_early(check, traffic) && MIN_EXCEEDING_RATIO * goodput(check) >= traffic.max_rate
        });
        let mut rates: Vec<f64> = filled_checks.map(|check| goodput(check)).collect();
        let capacity = median(&mut rates).map(Self::Measured);
        let capacity_or_bound =
            capacity.unwrap_or_else(|| Self::AtLeast(max.max(traffic.max_rate)));
        (max > 0.0).then_some(capacity_or_bound)
    }
}

impl Traffic {
    /// From these experiments, each with the payload of its requests in bytes.
    pub(crate) fn of<'a>(experiments: impl Iterator<Item = (u64, &'a ExperimentData)>) -> Self {
        experiments.fold(Self::default(), |traffic, (bytes, experiment)| Self {
            max_rate: traffic.max_rate.max(payload_rate(bytes, experiment)),
            min_rtt: traffic.min_rtt.into_iter().chain(min_rtt(experiment)).min(),
        })
    }

    /// From all experiments of an endpoint, and of a site if one is named.
    pub(crate) fn between(
        data: &CampaignData,
        settings: &PlotSettings,
        endpoint: &str,
        site: Option<&str>,
    ) -> Self {
        let shown = data.shown(settings).filter(|experiment| {
            let experiment_site = experiment
                .provenance
                .as_ref()
                .and_then(|provenance| provenance.site.as_deref());
            data.scenarios[experiment.scenario].endpoint == endpoint
                && (site.is_none() || experiment_site == site)
        });
        Self::of(shown.map(|experiment| {
            (
                data.scenarios[experiment.scenario].request_size.bytes(),
                experiment,
            )
        }))
    }
}

/// Whether a check ended before it had filled the link: no losses, and the window was still growing or no
/// queue had formed.
pub(crate) fn ended_early(check: &Throughput, traffic: Traffic) -> bool {
    let Some(last) = check.seconds.last() else {
        return false;
    };
    let Some(srtt) = last.srtt.filter(|srtt| *srtt > Span::ZERO) else {
        return false;
    };
    if check
        .seconds
        .iter()
        .any(|second| second.retransmissions > second.spurious_retransmissions)
    {
        return false;
    }
    // With larger segments, more of the window is unused.
    let window = f64::from(last.cwnd_segments.unwrap_or(0)) * SEGMENT_BITS;
    let is_growing = window / srtt.secs_f64() > UNUSED_WINDOW_RATIO * goodput(check);
    let has_no_queue = |min_rtt: Span| srtt.secs_f64() < QUEUE_RTT_RATIO * min_rtt.secs_f64();
    is_growing || traffic.min_rtt.is_some_and(has_no_queue)
}

#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn goodput(check: &Throughput) -> f64 {
    check.goodput.bits_per_second() as f64
}

/// Payload rate from the scheduled time of the first request until the last reply.
#[expect(clippy::cast_precision_loss, reason = "bytes of one message")]
fn payload_rate(bytes: u64, experiment: &ExperimentData) -> f64 {
    let messages = experiment.main().map_or(&[][..], |flow| &flow.exchanges);
    let first = messages.iter().map(|message| message.intended).min();
    let ends = messages
        .iter()
        .filter_map(|message| Some(message.intended + message.response?));
    let Some((first, last)) = first.zip(ends.clone().max()) else {
        return 0.0;
    };
    let seconds = (last - first).secs_f64().max(1e-9);
    to_f64(ends.count()) * bytes as f64 * 8.0 / seconds
}

fn min_rtt(experiment: &ExperimentData) -> Option<Span> {
    let exchanges = experiment
        .main()
        .into_iter()
        .flat_map(|flow| &flow.exchanges);
    let echoes = experiment.companion().into_iter();
    let echoes = echoes.flat_map(|flow| {
        flow.exchanges
            .iter()
            .map(|exchange| flow.round_trip(exchange))
    });
    exchanges
        .map(|exchange| exchange.min_rtt)
        .chain(echoes)
        .flatten()
        .min()
}

#[cfg(test)]
mod tests {
    use neph_model::{BitRate, ThroughputSecond, Wall};

    use super::*;

    /// One second over 40 ms, as (Mbit/s, retransmissions, window, smoothed round trip in ms).
    fn check((mbit, retransmissions, window, srtt): (u64, u32, u32, i64)) -> Throughput {
        let goodput = BitRate(mbit * 1_000_000);
        Throughput {
            block: 0,
            endpoint: "continent".into(),
            site: None,
            tool: "neph".into(),
            started: Wall::from_unix_nanos(0),
            seconds: vec![ThroughputSecond {
                goodput,
                retransmissions,
                spurious_retransmissions: 0,
                cwnd_segments: Some(window),
                srtt: Some(Span::from_millis(srtt)),
            }],
            goodput,
            failure: None,
        }
    }

    fn capacity_of(checks: &[(u64, u32, u32, i64)], carried_mbit: f64) -> Capacity {
        let checks: Vec<Throughput> = checks.iter().copied().map(check).collect();
        let traffic = Traffic {
            max_rate: carried_mbit * 1e6,
            min_rtt: Some(Span::from_millis(40)),
        };
        Capacity::of(&checks.iter().collect::<Vec<_>>(), traffic).expect("there are checks")
    }

    #[test]
    fn a_check_without_loss_or_queue_gives_a_lower_bound_of_capacity() {
        // The window is still growing; it fits, but there is no queue.
        for early in [(40, 0, 2671, 60), (14, 0, 50, 41)] {
            assert!(
                matches!(capacity_of(&[early], 1.0), Capacity::AtLeast(_)),
                "{early:?}"
            );
        }
        // Losses and a standing queue show a full link.
        for full in [(40, 7, 2671, 60), (3, 0, 46, 177)] {
            assert!(
                matches!(capacity_of(&[full], 1.0), Capacity::Measured(_)),
                "{full:?}"
            );
        }
        // One that filled the link is enough.
        let capacity = capacity_of(&[(40, 0, 2671, 48), (295, 831, 1579, 43)], 1.0);
        assert_eq!(capacity, Capacity::Measured(295e6));
    }

    #[test]
    fn carried_traffic_well_above_a_check_is_a_lower_bound() {
        assert_eq!(
            capacity_of(&[(14, 9, 50, 60)], 33.0),
            Capacity::AtLeast(33e6)
        );
        assert_eq!(
            capacity_of(&[(30, 9, 50, 60)], 32.0),
            Capacity::Measured(30e6)
        );
        assert_eq!(
            capacity_of(&[(40, 0, 2671, 48)], 33.0),
            Capacity::AtLeast(40e6)
        );
    }
}
