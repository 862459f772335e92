//! A path-MTU black hole. A link drops full-size packets, and the ICMP error does not reach the sender. Small
//! packets arrive, large ones never.
//!
//! Owns the definition of small and large, and how many large messages must fail. If the ICMP error arrives,
//! the kernel sends smaller segments, and nothing is lost.

use neph_model::Outcome;

use crate::diagnosis::{Confidence, Level, Rule, RuleInput, RuleResult, Run, SitePair};
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "path-mtu-black-hole",
    title: "path-MTU black hole",
    limits: "The rule compares messages of several sizes to one endpoint, or large messages with ICMP echoes. A server application that hangs on large requests looks the same if the requests are acknowledged.",
    covers: &["loss"],
    needs: &[],
    evaluate,
};

/// Messages up to this size in bytes fit into packets that every path carries (RFC 8200, section 5: 1280
/// bytes, less headers).
const MAX_SMALL_BYTES: u64 = 1_200;
/// From this size in bytes on, a message has full-size packets on an Ethernet path with tunnels.
const MIN_LARGE_BYTES: u64 = 1_300;
/// Minimum number of large messages, none of which arrived ...
const MIN_LARGE_SENT: usize = 5;
/// ... and minimum number of small messages that arrived.
const MIN_SMALL_RECEIVED: usize = 5;

/// Added latency of a message that never arrives, in milliseconds: the default timeout.
const TIMEOUT_MS: f64 = 5_000.0;

/// The outcome of the messages of one size class.
#[derive(Default)]
struct SizeClassOutcome<'r, 'a> {
    runs: Vec<&'r Run<'a>>,
    replied: usize,
    sent: usize,
    acknowledged: usize,
}

impl<'r, 'a> SizeClassOutcome<'r, 'a> {
    fn add(&mut self, run: &'r Run<'a>) {
        self.runs.push(run);
        for exchange in &run.flow.exchanges {
            self.sent += usize::from(exchange.outcome != Outcome::Failed);
            self.replied += usize::from(exchange.response.is_some());
            self.acknowledged += usize::from(exchange.ack.is_some());
        }
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs().into_iter();
    pairs
        .filter_map(|(pair, runs)| diagnose_group(input, &pair, &runs))
        .collect()
}

/// The larger of a scenario's request and reply: either may be the one that is dropped.
fn largest(run: &Run<'_>) -> u64 {
    let scenario = run.scenario;
    scenario
        .request_size
        .bytes()
        .max(scenario.response_size.bytes())
}

fn diagnose_group(input: &RuleInput<'_>, pair: &SitePair, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let (mut small, mut large) = (SizeClassOutcome::default(), SizeClassOutcome::default());
    let mut echoes = 0;
    for run in runs {
        echoes += run.echoes().len();
        match largest(run) {
            size if size <= MAX_SMALL_BYTES => small.add(run),
            size if size >= MIN_LARGE_BYTES => large.add(run),
            _ => {}
        }
    }
    let is_none_received = large.sent >= MIN_LARGE_SENT && large.replied == 0;
    if !is_none_received {
        return None;
    }
    let by_size = small.replied >= MIN_SMALL_RECEIVED;
    // Large requests alone are no evidence if they are acknowledged: the server application may hang.
    let is_tcp = large.runs.first()?.scenario.probe().uses_connection();
    let by_echo = is_tcp && echoes >= MIN_SMALL_RECEIVED && large.acknowledged == 0;
    if small.sent > 0 && small.replied == 0 {
        // Nothing arrives, of any size.
        return None;
    }
    if !by_size && !by_echo {
        return None;
    }
    let smallest = large.runs.iter().map(|run| largest(run)).min()?;
    let (passed, messages) = if by_size {
        (small.replied, "smaller messages")
    } else {
        (echoes, "ICMP echoes of 56 B")
    };
    let cause = format!(
        "{}: none of {} of {smallest} B or more arrived, but {passed} {messages} did: a link on the path drops \
         full-size packets without an ICMP message (path-MTU black hole).",
        input.name(pair),
        plural(large.sent, "message"),
    );
    let remedy = "let ICMP \"fragmentation needed\" (type 3 code 4; ICMPv6 type 2) pass every firewall. \
                  Or clamp the MSS to the path's MTU on the router, or lower the MTU (tracepath finds it). \
                  For TCP, net.ipv4.tcp_mtu_probing=1 works around it.";
    let (level, reason) = if by_size && by_echo {
        (Level::Sure, "messages of two sizes and echoes agree")
    } else {
        (Level::Likely, "based on one comparison of sizes")
    };
    let confidence = Confidence {
        level,
        why: reason.to_owned(),
    };
    let result = RuleResult::new(cause, remedy.to_owned(), confidence)
        .with("large messages sent", to_f64(large.sent), "messages")
        .with(
            "large messages acknowledged",
            to_f64(large.acknowledged),
            "messages",
        )
        .with("small messages that passed", to_f64(passed), "messages")
        .with_added_latency(TIMEOUT_MS);
    Some(result.observed_in(large.runs.iter().copied()))
}
