//! A proxy in the path: TCP ends at somebody nearer than whoever reads the messages.

use crate::diagnosis::{Agreement, Found, Need, Ordered, Rule, Run, Sight};
use crate::numbers::millis;

pub(crate) const RULE: Rule = Rule {
    name: "l7-proxy",
    title: "L7 proxy in the path",
    limits: "It needs a neph reflector behind the proxy and messages that fit into a segment each way. It tells how far behind the proxy the server is, in time, not how many proxies there are; a proxy on the server's own host adds less than it can tell.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::PeerMarks, Need::OneSegment],
    look,
};

/// Behind a proxy at least so many milliseconds lie: a wake-up of a busy machine takes less.
const LEAST_MS: f64 = 0.15;
/// On a link of a Mbit/s a kilobyte takes 8 ms: so much slower than its own handshake may a message
/// be for its bytes, per byte both ways, in milliseconds; given up where a quick acknowledgement
/// shows that they take less.
const SLOWEST_BYTE_MS: f64 = 0.008;
/// The least of fewer messages is not yet the path's.
const MESSAGES: usize = 10;

/// What an experiment shows.
struct Behind {
    /// TCP's least round trip: to whoever acknowledges.
    near: f64,
    /// The messages' least round trip: to whoever answers.
    far: f64,
    /// What is not yet a proxy, in milliseconds.
    least: f64,
    /// What the messages' bytes may take, in milliseconds.
    bytes: f64,
}

impl Behind {
    fn of(run: &Run<'_>) -> Option<Self> {
        let scenario = run.scenario;
        let (request, response) = (scenario.request_size, scenario.response_size);
        // The bytes of larger ones take time that TCP's handshake, which the comparison rests on, does
        // not take.
        if !request.max(response).is_one_segment() || !run.flow.flow.reflector {
            return None;
        }
        let networks = run.networks();
        let near = run.tcp_least()?;
        if networks.len() < MESSAGES {
            return None;
        }
        let far = networks.least()?;
        // How blunt the lower edge is: the least of so many is good to that.
        let blunt = networks.at(0.1)? - far;
        Some(Self {
            near,
            far,
            least: LEAST_MS.max(blunt),
            bytes: bytes_take(run, near),
        })
    }

    fn added(&self) -> f64 {
        self.far - self.near
    }

    /// Beside the rule's threshold, where the messages' bytes take so long.
    fn ratio(&self, bytes: f64) -> f64 {
        self.added() / self.least.max(bytes)
    }
}

/// What the bytes of a request and its reply may take, in milliseconds, at most: as long as the
/// request's take by the quickest acknowledgement, where that is told.
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
        .filter_map(|one| one.ack)
        .map(neph_model::Span::millis_f64)
        .collect();
    let slowest = SLOWEST_BYTE_MS * (request + response);
    let Some(quickest) = acknowledged.least() else {
        return slowest;
    };
    // The reply's link is rarely the slower one.
    let of_request = (quickest - near).max(0.0);
    (of_request * (1.0 + response / request.max(1.0))).min(slowest)
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let places = sight.places_at_rest().into_iter();
    places
        .filter_map(|(place, runs)| told(&sight.name(&place), &runs))
        .collect()
}

fn told(name: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let seen: Vec<(&Run<'_>, Behind)> = runs
        .iter()
        .filter_map(|run| Some((*run, Behind::of(run)?)))
        .collect();
    let middle = |value: fn(&Behind) -> f64| {
        let values = seen.iter().map(|(_, behind)| value(behind));
        values.collect::<Ordered>().median()
    };
    // Most acknowledgements travel with a reply, also through a proxy. A single one that did not
    // proves that bytes take no longer.
    let bytes = seen.iter().map(|(_, one)| one.bytes);
    let bytes = bytes.min_by(f64::total_cmp)?;
    let ratio: Ordered = seen.iter().map(|(_, one)| one.ratio(bytes)).collect();
    // It is always there or it is not.
    if ratio.at(0.2)? < 1.0 {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: ratio.above(1.0),
        of: seen.len(),
        ratio: ratio.median()?,
    };
    let (near, far, added) = (
        middle(|one| one.near)?,
        middle(|one| one.far)?,
        middle(Behind::added)?,
    );
    let cause = format!(
        "{name}: TCP ends before the server: whoever acknowledges is {} away, whoever answers {}. Somebody in between takes the connection and opens another, which adds {} to each message.",
        millis(near),
        millis(far),
        millis(added),
    );
    let remedy = "where this matters, reach the server by an L4 balancer or directly, put the proxy nearer to the server, and let it keep its connections to the server open";
    let found = Found::new(cause, remedy.to_owned(), confidence.confidence())
        .costing(added)
        .with("TCP's least round trip", near, "ms")
        .with("messages' least round trip", far, "ms")
        .with("behind the proxy", added, "ms")
        .seen_in(seen.iter().map(|(run, _)| *run));
    Some(found)
}
