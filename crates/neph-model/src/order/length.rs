//! The maximum duration of an order, and its traffic: for leases and policies.

use super::{ExperimentOrder, Order};
use crate::{Measure, Span, Wall};

/// The time to find and reach the target, and to wait for the last replies.
const AROUND: Span = Span::from_secs(60);
/// The most that a traceroute takes: 30 silent hops.
const TRACEROUTE: Span = Span::from_secs(120);
/// The time of a trace for each probe, if a router answers once per second.
const SLOW_ROUTER: Span = Span::from_secs(1);
/// A capture that has no end of its own lasts until it is ended.
const CAPTURE: Span = Span::from_secs(24 * 3600);

/// The traffic of an order, with the traffic that it requests from its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Messages a second.
    pub messages: f64,
    /// Payload, bits a second.
    pub bits: f64,
    /// Payload of the whole order, bytes. Saturates.
    pub bytes: u64,
}

impl Order {
    /// The longest that it takes from `now` on, if it begins then.
    pub fn longest(&self, now: Wall) -> Span {
        let work = match self {
            Self::Experiments(orders) => {
                let each = orders.iter().map(ExperimentOrder::longest);
                each.max().unwrap_or(Span::ZERO)
            }
            // It is over when all that it sent is acknowledged.
            Self::Throughput(order) => order.duration.times(2),
            Self::Traceroute(_) => TRACEROUTE,
            Self::Pings(order) => {
                let left = order.until.unix_nanos().saturating_sub(now.unix_nanos());
                Span::from_nanos(left.max(0))
            }
            Self::Load(order) => order.duration,
            Self::Reflector(order) => order.duration,
            Self::Capture(order) => order.duration.unwrap_or(CAPTURE),
        };
        work + AROUND
    }

    /// What its messages are; nothing of transfers and loads, whose traffic the path decides.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Experiments(orders) => orders.iter().map(ExperimentOrder::traffic).sum(),
            Self::Pings(order) => {
                let each = order
                    .pings
                    .iter()
                    .map(|echo_to| echoes(echo_to.interval, Span::ZERO));
                each.sum()
            }
            _ => Traffic::default(),
        }
    }
}

impl ExperimentOrder {
    /// The time of its schedule.
    fn scheduled(&self) -> Span {
        let count = i64::try_from(self.scenario.messages).unwrap_or(i64::MAX);
        self.scenario.interval.times(count)
    }

    fn longest(&self) -> Span {
        let traced = self.trace.map_or(Span::ZERO, |trace| {
            let probes = i64::from(trace.flows) * i64::from(trace.limits.queries);
            SLOW_ROUTER.times(probes)
        });
        self.scheduled() + self.timeout + traced
    }

    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn traffic(&self) -> Traffic {
        let scenario = &self.scenario;
        let each = scenario
            .request_size
            .bytes()
            .saturating_add(scenario.response_size.bytes());
        let measure = scenario.measure();
        if measure.is_transfer() {
            return self.of_transfer(measure);
        }
        let flows = scenario.flows().unwrap_or(1);
        let messages = f64::from(flows) / scenario.interval.secs_f64().max(1e-9);
        let main = Traffic {
            messages,
            bits: messages * each as f64 * 8.0,
            bytes: each.saturating_mul(scenario.messages_of_all_flows()),
        };
        let duration = self.scheduled();
        self.echoes(duration).chain([main]).sum()
    }

    /// The ICMP echoes that run alongside.
    fn echoes(&self, duration: Span) -> impl Iterator<Item = Traffic> {
        let companion = self.companion.map(|interval| echoes(interval, duration));
        let pings = self
            .pings
            .iter()
            .map(move |ping| echoes(ping.interval, duration));
        pings.chain(companion)
    }

    /// What a transfer at a rate sends; of one without, the path decides.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates"
    )]
    fn of_transfer(&self, measure: Measure) -> Traffic {
        let target_rate = measure.target_rate();
        let bits = target_rate.map_or(0.0, |rate| rate.bits_per_second() as f64);
        let duration = self.scheduled();
        let main = Traffic {
            messages: 0.0,
            bits,
            bytes: (bits * duration.secs_f64() / 8.0) as u64,
        };
        self.echoes(duration).chain([main]).sum()
    }
}

/// ICMP echo requests and their replies.
#[expect(clippy::cast_precision_loss, reason = "rates")]
fn echoes(interval: Span, duration: Span) -> Traffic {
    const BYTES: u64 = 2 * 56;
    let messages = 1.0 / interval.secs_f64().max(1e-9);
    let count = u64::try_from(duration.nanos() / interval.nanos().max(1)).unwrap_or(0);
    Traffic {
        messages,
        bits: messages * BYTES as f64 * 8.0,
        bytes: count.saturating_mul(BYTES),
    }
}

impl std::iter::Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::default(), |sum, traffic| Self {
            messages: sum.messages + traffic.messages,
            bits: sum.bits + traffic.bits,
            bytes: sum.bytes.saturating_add(traffic.bytes),
        })
    }
}
