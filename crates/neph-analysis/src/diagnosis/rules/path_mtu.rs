//! A path-MTU black hole: a link on the way drops full packets, and the ICMP message that would say so
//! does not come back. Small packets pass, large ones never.
//!
//! Owns what counts as small and large, and how long nothing large may have passed. Where the ICMP
//! message does come, the kernel sends smaller segments and nothing is lost.

use neph_model::Outcome;

use crate::diagnosis::{Confidence, Found, Level, Place, Rule, Run, Sight};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "path-mtu-black-hole",
    title: "path-MTU black hole",
    limits: "It compares sizes: messages of several sizes to one endpoint, or large messages with the ICMP echoes beside them. A server application that hangs on large requests only looks the same where the requests are acknowledged.",
    covers: &["loss"],
    needs: &[],
    look,
};

/// A message of so many bytes or fewer fits into packets that every path carries (RFC 8200, section 5:
/// 1280 bytes, less headers).
const SMALL: u64 = 1_200;
/// From so many bytes on a message has full packets on an Ethernet path with tunnels.
const LARGE: u64 = 1_300;
/// So many large messages at least must have gone without one that came through ...
const LARGE_SENT: usize = 5;
/// ... and so many small ones have come through.
const SMALL_PASSED: usize = 5;

/// What a message costs that never comes through, in milliseconds: the default timeout.
const COST_MS: f64 = 5_000.0;

/// What became of the messages of one size class.
#[derive(Default)]
struct Passed<'r, 'a> {
    runs: Vec<&'r Run<'a>>,
    replied: usize,
    sent: usize,
    acknowledged: usize,
}

impl<'r, 'a> Passed<'r, 'a> {
    fn add(&mut self, run: &'r Run<'a>) {
        self.runs.push(run);
        for one in &run.flow.exchanges {
            self.sent += usize::from(one.outcome != Outcome::Failed);
            self.replied += usize::from(one.response.is_some());
            self.acknowledged += usize::from(one.ack.is_some());
        }
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let places = sight.places().into_iter();
    places
        .filter_map(|(place, runs)| told(sight, &place, &runs))
        .collect()
}

/// The larger of a scenario's request and reply: either may be the one that does not pass.
fn largest(run: &Run<'_>) -> u64 {
    let scenario = run.scenario;
    scenario
        .request_size
        .bytes()
        .max(scenario.response_size.bytes())
}

fn told(sight: &Sight<'_>, place: &Place, runs: &[&Run<'_>]) -> Option<Found> {
    let (mut small, mut large) = (Passed::default(), Passed::default());
    let mut echoes = 0;
    for run in runs {
        echoes += run.echoes().len();
        match largest(run) {
            size if size <= SMALL => small.add(run),
            size if size >= LARGE => large.add(run),
            _ => {}
        }
    }
    let none_passes = large.sent >= LARGE_SENT && large.replied == 0;
    if !none_passes {
        return None;
    }
    let by_size = small.replied >= SMALL_PASSED;
    // Alone, large requests must not even be acknowledged: else the server application may hang.
    let is_tcp = large.runs.first()?.scenario.probe().on_connection();
    let by_echo = is_tcp && echoes >= SMALL_PASSED && large.acknowledged == 0;
    if small.sent > 0 && small.replied == 0 {
        // Nothing passes, whatever its size.
        return None;
    }
    if !by_size && !by_echo {
        return None;
    }
    let least = large.runs.iter().map(|run| largest(run)).min()?;
    let (passed, what) = if by_size {
        (small.replied, "smaller messages")
    } else {
        (echoes, "ICMP echoes of 56 B")
    };
    let cause = format!(
        "{}: none of {} of {least} B or more came through, while {passed} {what} did: a link on the way \
         drops full packets, and no ICMP message says so (path-MTU black hole).",
        sight.name(place),
        plural(large.sent, "message"),
    );
    let remedy = "Let ICMP \"fragmentation needed\" (type 3 code 4; ICMPv6 type 2) through every firewall, \
                  clamp the MSS to the path's MTU on the router, or lower the MTU (tracepath finds it); \
                  net.ipv4.tcp_mtu_probing=1 works around it for TCP.";
    let (level, why) = if by_size && by_echo {
        (Level::Sure, "messages of two sizes and echoes agree")
    } else {
        (Level::Likely, "it rests on one comparison of sizes")
    };
    let confidence = Confidence {
        level,
        why: why.to_owned(),
    };
    let found = Found::new(cause, remedy.to_owned(), confidence)
        .with("large messages sent", real(large.sent), "messages")
        .with(
            "large messages acknowledged",
            real(large.acknowledged),
            "messages",
        )
        .with("small messages that passed", real(passed), "messages")
        .costing(COST_MS);
    Some(found.seen_in(large.runs.iter().copied()))
}
