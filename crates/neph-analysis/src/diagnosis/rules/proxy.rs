//! A proxy in the path: TCP ends at a host that is nearer than the server that reads the messages.

use crate::diagnosis::{Agreement, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::millis;

pub(crate) const RULE: Rule = Rule {
    name: "l7-proxy",
    title: "L7 proxy in the path",
    limits: "The rule needs a neph reflector behind the proxy, and messages of one segment. It reports the RTT behind the proxy, not the number of proxies. It does not see a proxy on the server's host.",
    covers: &[],
    needs: &[
        Need::Replies(MIN_MESSAGES),
        Need::PeerTimestamps,
        Need::OneSegment,
    ],
    evaluate,
};

/// Minimum RTT behind a proxy in milliseconds: a wake-up on a busy host takes less.
const MIN_DIFFERENCE_MS: f64 = 0.15;
/// Longest transmission time per byte, both directions together, in milliseconds (1 Mbit/s: 8 ms for a
/// kilobyte). A message may exceed the handshake by this much; a fast acknowledgement proves a lower value.
const MAX_BYTE_TIME_MS: f64 = 0.008;
/// With fewer messages the minimum is not yet that of the path.
const MIN_MESSAGES: usize = 10;

/// The result of an experiment.
struct ProxyEvidence {
    /// Minimum RTT to the proxy, which acknowledges, in milliseconds.
    proxy_rtt: f64,
    /// Minimum RTT to the server, which replies, in milliseconds.
    server_rtt: f64,
    /// The difference that does not yet prove a proxy, in milliseconds.
    min_difference: f64,
    /// Transmission time of the messages' bytes, in milliseconds.
    transmission: f64,
}

impl ProxyEvidence {
    fn of(run: &Run<'_>) -> Option<Self> {
        let scenario = run.scenario;
        let (request_size, response_size) = (scenario.request_size, scenario.response_size);
        // The comparison rests on TCP's handshake, which carries no payload. Larger messages take longer for
        // their bytes.
        if !request_size.max(response_size).is_one_segment() || !run.flow.flow.reflector {
            return None;
        }
        let network_times = run.sorted_network_times();
        let proxy_rtt = run.min_tcp_rtt()?;
        if network_times.len() < MIN_MESSAGES {
            return None;
        }
        let server_rtt = network_times.min()?;
        // The accuracy of the minimum, by the spread of the fastest messages.
        let uncertainty_ms = network_times.quantile(0.1)? - server_rtt;
        Some(Self {
            proxy_rtt,
            server_rtt,
            min_difference: MIN_DIFFERENCE_MS.max(uncertainty_ms),
            transmission: transmission_time_ms(run, proxy_rtt),
        })
    }

    fn added_ms(&self) -> f64 {
        self.server_rtt - self.proxy_rtt
    }

    /// The ratio to the rule's threshold, if the bytes take this many milliseconds.
    fn ratio(&self, transmission: f64) -> f64 {
        self.added_ms() / self.min_difference.max(transmission)
    }
}

/// Longest transmission time of a request and its reply, in milliseconds. Limited by the fastest
/// acknowledgement, if it is known.
#[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
fn transmission_time_ms(run: &Run<'_>, proxy_rtt: f64) -> f64 {
    let scenario = run.scenario;
    let (request_bytes, response_bytes) = (
        scenario.request_size.bytes() as f64,
        scenario.response_size.bytes() as f64,
    );
    let ack_rtts: SortedValues = run
        .flow
        .exchanges
        .iter()
        .filter_map(|exchange| exchange.ack)
        .map(neph_model::Span::millis_f64)
        .collect();
    let max_time_ms = MAX_BYTE_TIME_MS * (request_bytes + response_bytes);
    let Some(min_ack_rtt_ms) = ack_rtts.min() else {
        return max_time_ms;
    };
    // The reply's link is rarely the slower one.
    let request_time_ms = (min_ack_rtt_ms - proxy_rtt).max(0.0);
    (request_time_ms * (1.0 + response_bytes / request_bytes.max(1.0))).min(max_time_ms)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs_without_load().into_iter();
    pairs
        .filter_map(|(pair, runs)| diagnose_group(&input.name(&pair), &runs))
        .collect()
}

fn diagnose_group(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let observed: Vec<(&Run<'_>, ProxyEvidence)> = runs
        .iter()
        .filter_map(|run| Some((*run, ProxyEvidence::of(run)?)))
        .collect();
    let median_of = |value: fn(&ProxyEvidence) -> f64| {
        let values = observed.iter().map(|(_, evidence)| value(evidence));
        values.collect::<SortedValues>().median()
    };
    // Most acknowledgements travel with a reply, also through a proxy. A single one that did not proves that
    // bytes take no longer.
    let transmission_times_ms = observed.iter().map(|(_, evidence)| evidence.transmission);
    let transmission = transmission_times_ms.min_by(f64::total_cmp)?;
    let ratios: SortedValues = observed
        .iter()
        .map(|(_, evidence)| evidence.ratio(transmission))
        .collect();
    // A proxy is present in all experiments or in none.
    if ratios.quantile(0.2)? < 1.0 {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: ratios.count_above(1.0),
        total: observed.len(),
        ratio: ratios.median()?,
    };
    let (proxy_rtt, server_rtt, added_ms) = (
        median_of(|evidence| evidence.proxy_rtt)?,
        median_of(|evidence| evidence.server_rtt)?,
        median_of(ProxyEvidence::added_ms)?,
    );
    let cause = format!(
        "{name}: a proxy terminates TCP: the RTT to the proxy is {}, to the server {}. The second connection adds {} to each message.",
        millis(proxy_rtt),
        millis(server_rtt),
        millis(added_ms),
    );
    let remedy = "if this matters: use an L4 load balancer or connect directly, move the proxy nearer to the server, and keep its connections to the server open";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with_added_latency(added_ms)
        .with("minimum RTT to the proxy", proxy_rtt, "ms")
        .with("minimum RTT to the server", server_rtt, "ms")
        .with("behind the proxy", added_ms, "ms")
        .observed_in(observed.iter().map(|(run, _)| *run));
    Some(result)
}
