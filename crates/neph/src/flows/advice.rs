//! Advice on source ports for people.

use neph_flows::{Advice, Counsel, Guide, Horizon};

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
    if !guide.ports.is_empty() {
        text.push_str("take source port:");
        for port in &guide.ports {
            text.push_str(&format!(" {} (there for {})", port.port, port.held));
        }
        text.push('\n');
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
            "\nadvice tested on the past: so long after it   still low (95 % interval, n)   chance   gain at p50   gain at p99\n",
        );
        guide
            .horizons
            .iter()
            .for_each(|horizon| text.push_str(&tested(horizon)));
    }
    text
}

fn tested(horizon: &Horizon) -> String {
    let low = &horizon.on_low;
    format!(
        "{:>45}  {:>29}  {:>7}  {:>12}  {:>12}\n",
        horizon.after.to_string(),
        format!(
            "{} ({:.0} to {:.0}, {})",
            percent(low.share),
            low.low * 100.0,
            low.high * 100.0,
            low.n
        ),
        percent(horizon.random_on_low),
        horizon.p50.gain().to_string(),
        horizon.p99.gain().to_string()
    )
}
