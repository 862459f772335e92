//! Advice on source ports for people.

use neph_flows::{Advice, AdvisedPort, Against, Counsel, Guide, Horizon};

use super::summary::interval;
use super::words::percent;

/// All of it for one endpoint.
pub(super) fn text(advice: &Advice) -> String {
    let body = match &advice.counsel {
        Counsel::Refused { why } => format!("no advice: {why}\n"),
        Counsel::Given(guide) => given(guide),
    };
    format!("\nadvice\n{body}caution: {}\n", advice.caution)
}

fn given(guide: &Guide) -> String {
    let mut text = format!(
        "the low path has {}; a random flow gets {}. At the end {} was on it\n",
        guide.low,
        guide.random,
        interval(&guide.low_share, "flow")
    );
    if let Some(why) = &guide.no_ports {
        text.push_str(&format!("no port is advised: {why}\n"));
    }
    if let Some(holds) = guide.holds {
        let ports: Vec<String> = guide.ports.iter().map(port).collect();
        text.push_str(&format!(
            "take source port (such advice held for {holds} in the test): {}\n",
            ports.join(", ")
        ));
    }
    text.push_str(
        "\nconnections opened at random, the best kept   chance of low        p50        p99\n",
    );
    for best in &guide.best_of {
        text.push_str(&format!(
            "{:>45}  {:>14}  {:>9}  {:>9}\n",
            best.connections,
            percent(best.chance),
            best.p50.to_string(),
            best.p99.to_string()
        ));
    }
    if !guide.horizons.is_empty() {
        text.push_str(
            "\nadvice tested on the past: so long after it   still low (95 % interval, times)   chance   gain at p50   gain at p99\n",
        );
        guide
            .horizons
            .iter()
            .for_each(|horizon| text.push_str(&tested(horizon)));
    }
    text
}

/// A port, how long it has been on the low path, and what it lost lately.
fn port(port: &AdvisedPort) -> String {
    let loss = port
        .loss
        .map(|loss| format!(", lost {} of its last {}", loss.hits, loss.n));
    let loss = loss.unwrap_or_default();
    format!("{} (there for {}{loss})", port.port, port.held)
}

fn tested(horizon: &Horizon) -> String {
    let low = &horizon.on_low;
    format!(
        "{:>45}  {:>33}  {:>7}  {:>12}  {:>12}\n",
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
