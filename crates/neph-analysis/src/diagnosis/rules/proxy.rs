//! A proxy in the path: TCP ends at a host that is nearer than the server that reads the messages.

use crate::diagnosis::{Agreement, Need, Ordered, Rule, RuleInput, RuleResult, Run};
use crate::numbers::millis;

pub(crate) const RULE: Rule = Rule {
    name: "l7-proxy",
    title: "L7 proxy in the path",
    limits: "The rule needs a neph reflector behind the proxy, and messages of one segment. It reports the RTT behind the proxy, not the number of proxies. It does not see a proxy on the server's host.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::PeerMarks, Need::OneSegment],
    evaluate,
};

/// Minimum RTT behind a proxy in milliseconds: a wake-up on a busy host takes less.
const MIN_MS: f64 = 0.15;
/// Longest transmission time per byte, both directions together, in milliseconds (1 Mbit/s: 8 ms for a
/// kilobyte). A message may exceed the handshake by this much; a fast acknowledgement proves a lower value.
const SLOWEST_BYTE_MS: f64 = 0.008;
/// With fewer messages the minimum is not yet that of the path.
const MESSAGES: usize = 10;

/// The result of an experiment.
struct ProxyEvidence {
    /// Minimum RTT to the proxy, which acknowledges.
    near: f64,
    /// Minimum RTT to the server, which replies.
    far: f64,
    /// The difference that does not yet prove a proxy, in milliseconds.
    min_difference: f64,
    /// Transmission time of the messages' bytes, in milliseconds.
    bytes: f64,
}

impl ProxyEvidence {
    fn of(run: &Run<'_>) -> Option<Self> {
        let scenario = run.scenario;
        let (request, response) = (scenario.request_size, scenario.response_size);
        // The comparison rests on TCP's handshake, which carries no payload. Larger messages take longer for
        // their bytes.
        if !request.max(response).is_one_segment() || !run.flow.flow.reflector {
            return None;
        }
        let networks = run.networks();
        let near = run.min_tcp_rtt()?;
        if networks.len() < MESSAGES {
            return None;
        }
        let far = networks.min()?;
        // The accuracy of the minimum, by the spread of the fastest messages.
        let blunt = networks.at(0.1)? - far;
        Some(Self {
            near,
            far,
            min_difference: MIN_MS.max(blunt),
            bytes: bytes_take(run, near),
        })
    }

    fn added(&self) -> f64 {
        self.far - self.near
    }

    /// The ratio to the rule's threshold, if the bytes take this long.
    fn ratio(&self, bytes: f64) -> f64 {
        self.added() / self.min_difference.max(bytes)
    }
}

/// Longest transmission time of a request and its reply, in milliseconds. Limited by the fastest
/// acknowledgement, if it is known.
#[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
fn bytes_take(run: &Run<'_>, near: f64) -> f64 {
    let scenario = run.scenario;
    let (request, response) = (
        scenario.request_size.bytes() as f64,
        scenario.response_size.bytes() as f64,
    );
    let acknowledged: Ordered = run
        .flow
        .exchanges
        .iter()
        .filter_map(|exchange| exchange.ack)
        .map(neph_model::Span::millis_f64)
        .collect();
    let slowest = SLOWEST_BYTE_MS * (request + response);
    let Some(quickest) = acknowledged.min() else {
        return slowest;
    };
    // The reply's link is rarely the slower one.
    let of_request = (quickest - near).max(0.0);
    (of_request * (1.0 + response / request.max(1.0))).min(slowest)
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
    let middle = |value: fn(&ProxyEvidence) -> f64| {
        let values = observed.iter().map(|(_, behind)| value(behind));
        values.collect::<Ordered>().median()
    };
    // Most acknowledgements travel with a reply, also through a proxy. A single one that did not proves that
    // bytes take no longer.
    let bytes = observed.iter().map(|(_, split)| split.bytes);
    let bytes = bytes.min_by(f64::total_cmp)?;
    let ratio: Ordered = observed
        .iter()
        .map(|(_, split)| split.ratio(bytes))
        .collect();
    // A proxy is present in all experiments or in none.
    if ratio.at(0.2)? < 1.0 {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: ratio.above(1.0),
        total: observed.len(),
        ratio: ratio.median()?,
    };
    let (near, far, added) = (
        middle(|split| split.near)?,
        middle(|split| split.far)?,
        middle(ProxyEvidence::added)?,
    );
    let cause = format!(
        "{name}: a proxy terminates TCP: the RTT to the proxy is {}, to the server {}. The second connection adds {} to each message.",
        millis(near),
        millis(far),
        millis(added),
    );
    let remedy = "if this matters: use an L4 load balancer or connect directly, move the proxy nearer to the server, and keep its connections to the server open";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with_added_latency(added)
        .with("minimum RTT to the proxy", near, "ms")
        .with("minimum RTT to the server", far, "ms")
        .with("behind the proxy", added, "ms")
        .observed_in(observed.iter().map(|(run, _)| *run));
    Some(result)
}
