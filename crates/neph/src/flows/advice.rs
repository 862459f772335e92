//! Advice on source ports for people.

use neph_flows::{Advice, AdvisedPort, Against, Counsel, Guide, Horizon};

use super::words::percent;
use crate::counted::counted;

/// All of it for one endpoint.
pub(super) fn text(advice: &Advice) -> String {
    let body = match &advice.counsel {
        Counsel::Refused { why } => format!("no advice: {why}\n"),
        Counsel::Given(guide) => given(guide),
    };
    format!("\nadvice\n{body}caution: {}\n", advice.caution)
}

fn given(guide: &Guide) -> String {
    let share = &guide.low_share;
    let mut text = format!(
        "the low path, the class with the lowest base latency, has {}; a flow on a random source port has {} or less in half of all cases\n\
         {} of {} were on the low path at the end: {} (95 % interval {:.1} to {:.1})\n",
        guide.low,
        guide.random,
        share.hits,
        counted(share.n, "flow"),
        percent(share.share),
        share.low * 100.0,
        share.high * 100.0
    );
    if let Some(why) = &guide.no_ports {
        text.push_str(&format!("no port is advised: {why}\n"));
    }
    if let Some(holds) = guide.holds {
        let ports: Vec<String> = guide.ports.iter().map(port).collect();
        text.push_str(&format!(
            "take source port {}\ntested on the past, such a port was on the low path more often than a random one still {holds} later\n",
            ports.join(", or ")
        ));
    }
    text.push_str(&best_of(guide));
    text.push_str(&all_tested(guide));
    text
}

/// What several connections give, by their number.
fn best_of(guide: &Guide) -> String {
    let mut text =
        "\nwithout choosing ports: open some connections, keep the one with the lowest latency\n\
        connections   one is on the low path   latency at p50   latency at p99\n"
            .to_owned();
    for best in &guide.best_of {
        text.push_str(&format!(
            "{:>11}  {:>23}  {:>15}  {:>15}\n",
            best.connections,
            percent(best.chance),
            best.p50.to_string(),
            best.p99.to_string()
        ));
    }
    text
}

/// How the advice would have fared; nothing, where it could not be tested.
fn all_tested(guide: &Guide) -> String {
    if guide.horizons.is_empty() {
        return String::new();
    }
    let mut text = "\nthe advice tested on the past: had one taken the port that was best, and looked later\n\
        looked after   still on the low path (95 % interval, times)   a random port is   saved at p50   saved at p99\n"
        .to_owned();
    text.extend(guide.horizons.iter().map(tested));
    text
}

/// A port, how long it has been on the low path, and what it lost lately.
fn port(port: &AdvisedPort) -> String {
    let loss = port.loss.map(|loss| {
        let messages = counted(loss.n, "message");
        format!(", lost {} of its last {messages}", loss.hits)
    });
    let loss = loss.unwrap_or_default();
    format!("{} (on the low path for {}{loss})", port.port, port.held)
}

fn tested(horizon: &Horizon) -> String {
    let low = &horizon.on_low;
    format!(
        "{:>12}  {:>45}  {:>17}  {:>13}  {:>13}\n",
        horizon.after.to_string(),
        format!(
            "{} ({:.0} to {:.0}, {})",
            percent(low.share),
            low.low * 100.0,
            low.high * 100.0,
            low.n
        ),
        percent(horizon.random_on_low),
        gain(horizon.p50),
        gain(horizon.p99)
    )
}

/// Of too few times there is none.
fn gain(against: Option<Against>) -> String {
    against.map_or_else(|| "-".to_owned(), |against| against.gain().to_string())
}
