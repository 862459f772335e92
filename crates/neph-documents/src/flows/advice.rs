//! The advice on source ports as text.

use crate::cell::OrDash;
use neph_flows::{Advice, AdviceEvidence, AdvisedPort, AdvisedVersusRandom, Horizon, PortAdvice};
use neph_model::{Fleet, Span};

use super::lines::{duration_text, percent};
use neph_text::counted::counted;

/// The whole text for the endpoint with this index.
pub(super) fn text(advice: &Advice, fleet: &Fleet, endpoint: usize) -> String {
    let body = match &advice.port_advice {
        PortAdvice::Refused { why: reason } => format!("no advice: {reason}\n"),
        PortAdvice::Given(evidence) => evidence_text(evidence, fleet, endpoint),
    };
    format!("\nadvice\n{body}caution: {}\n", advice.caution)
}

fn evidence_text(evidence: &AdviceEvidence, fleet: &Fleet, endpoint: usize) -> String {
    let share = &evidence.lowest_class_share;
    let subject = if fleet.lifetime.is_some() {
        "flows that were active at the end, or had ended shortly before, were on the low path"
    } else {
        "flows were on the low path at the end"
    };
    let mut text = format!(
        "the low path (class with the lowest base latency): {}; median of a random source port: {}\n\
         {} of {} {subject}: {} (95 % confidence interval {:.1} to {:.1})\n",
        evidence.low,
        evidence.random,
        share.hits,
        share.n,
        percent(share.share),
        share.low * 100.0,
        share.high * 100.0
    );
    if let Some(reason) = &evidence.no_ports {
        text.push_str(&format!("no port is advised: {reason}\n"));
    }
    if let Some(valid_for) = evidence.holds {
        text.push_str(&ports_text(
            evidence,
            valid_for,
            &scope_text(fleet, endpoint),
        ));
    }
    text.push_str(&best_of_text(evidence));
    if let Some(loss) = evidence.loss.filter(|loss| loss.is_more) {
        text.push_str(&format!(
            "caution: the connection with the lowest latency is on a path that loses {} of its messages; the other paths lose {}\n",
            percent(loss.low.share),
            percent(loss.others.share)
        ));
    }
    text.push_str(&test_text(evidence));
    text
}

/// The flows for which a port keeps its path: a hash has the protocol, both addresses and both
/// ports.
fn scope_text(fleet: &Fleet, endpoint: usize) -> String {
    let protocol = fleet.probe.protocol();
    let destination = fleet.endpoints.get(endpoint);
    let destination = destination.map_or_else(String::new, |destination| {
        format!(" to {}", destination.address)
    });
    format!("For {protocol} from here{destination} only")
}

/// The ports to use, how long such advice is valid, and the gain.
fn ports_text(evidence: &AdviceEvidence, valid_for: Span, scope_text: &str) -> String {
    let ports: Vec<String> = evidence
        .ports
        .iter()
        .map(|port| port.port.to_string())
        .collect();
    let min_stay = evidence.ports.iter().map(|port| port.held).min();
    format!(
        "{scope_text}: use source port {}.\n\
         Each advised port was on the low path for at least {} and {}.\n{}\n",
        ports.join(", "),
        duration_text(min_stay.unwrap_or_default()),
        losses_text(&evidence.ports),
        gain_text(evidence, valid_for)
    )
}

/// Recent losses of the ports; ports with losses by name.
fn losses_text(ports: &[AdvisedPort]) -> String {
    let lossy: Vec<String> = ports
        .iter()
        .filter_map(|port| Some((port.port, port.loss.filter(|loss| loss.hits > 0)?)))
        .map(|(port, loss)| format!("{port} {} of {}", loss.hits, loss.n))
        .collect();
    let samples = ports.iter().filter_map(|port| port.loss).map(|loss| loss.n);
    let others_text = if lossy.len() < ports.len() {
        "; the others none"
    } else {
        ""
    };
    match (lossy.is_empty(), samples.max()) {
        (true, Some(samples)) => format!("lost none of its last {}", counted(samples, "message")),
        (true, None) => "has no recent messages to estimate its loss".to_owned(),
        (false, _) => format!(
            "lost of its last messages: {}{others_text}",
            lossy.join(", ")
        ),
    }
}

/// The gain of a port on the low path over a random port, and the result of the test.
fn gain_text(evidence: &AdviceEvidence, valid_for: Span) -> String {
    let mut text = format!(
        "The median over ports is {} lower on the low path ({}) than on a random source port ({})",
        evidence.random - evidence.low,
        evidence.low,
        evidence.random
    );
    if let Some(single_connection) = evidence.best_of.iter().find(|best| best.connections == 1) {
        text.push_str(&format!(
            ", and p99 over ports {} lower ({}, random port {})",
            single_connection.p99 - evidence.low,
            evidence.low,
            single_connection.p99
        ));
    }
    if let Some(horizon) = evidence
        .horizons
        .iter()
        .find(|horizon| horizon.after == valid_for)
    {
        text.push_str(&format!(
            ". In this measurement, {} after it was chosen, the port was still on the low path in {} of {} checks; a random port was on it in {}",
            duration_text(valid_for),
            percent(horizon.on_low.share),
            horizon.on_low.n,
            percent(horizon.random_on_lowest_class)
        ));
    }
    text + "."
}

/// The gain of several connections, by their number.
fn best_of_text(evidence: &AdviceEvidence) -> String {
    let mut text =
        "\nwithout a chosen port: open several connections and keep the one with the lowest latency\n\
        connections   one is on the low path   latency at p50   latency at p99\n"
            .to_owned();
    for best in &evidence.best_of {
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

/// The test of the advice; empty if it could not be tested.
fn test_text(evidence: &AdviceEvidence) -> String {
    if evidence.horizons.is_empty() {
        return String::new();
    }
    let mut text = "\ntest of the advice: the port with the lowest latency, checked later in this measurement\n\
        checked after  still on the low path (95 % confidence interval, n)  a random port is  saved at p50  saved at p99\n"
        .to_owned();
    text.extend(evidence.horizons.iter().map(horizon_row));
    if evidence
        .horizons
        .iter()
        .any(|horizon| horizon.p50.is_none() || horizon.p99.is_none())
    {
        text.push_str("-: too few checks; p50 needs 6, p99 needs 299\n");
    }
    text.push_str(
        "n: number of checks, one per consecutive period; the share also uses times between them\n",
    );
    text
}

fn horizon_row(horizon: &Horizon) -> String {
    let low = &horizon.on_low;
    format!(
        "{:>13}  {:>51}  {:>16}  {:>12}  {:>12}\n",
        duration_text(horizon.after),
        format!(
            "{} ({:.0} to {:.0}, {})",
            percent(low.share),
            low.low * 100.0,
            low.high * 100.0,
            low.n
        ),
        percent(horizon.random_on_lowest_class),
        gain_cell(horizon.p50),
        gain_cell(horizon.p99)
    )
}

/// A gain; `-` with too few periods.
fn gain_cell(comparison: Option<AdvisedVersusRandom>) -> String {
    comparison.or_dash(|comparison| comparison.gain().to_string())
}

#[cfg(test)]
mod tests {
    use neph_model::ProbeKind;

    use super::*;

    fn port(port: u16, seconds: i64) -> AdvisedPort {
        AdvisedPort {
            port,
            base: Span::from_millis(70),
            held: Span::from_secs(seconds),
            loss: None,
        }
    }

    #[test]
    fn the_text_omits_others_if_each_port_has_losses() {
        let port_with_losses = |number, lost| AdvisedPort {
            loss: Some(neph_flows::Share {
                hits: lost,
                n: 63,
                cases: 63.0,
                share: 0.0,
                low: 0.0,
                high: 0.1,
            }),
            ..port(number, 60)
        };
        assert_eq!(
            losses_text(&[port_with_losses(1, 4), port_with_losses(2, 1)]),
            "lost of its last messages: 1 4 of 63, 2 1 of 63"
        );
        assert_eq!(
            losses_text(&[port_with_losses(1, 4), port_with_losses(2, 0)]),
            "lost of its last messages: 1 4 of 63; the others none"
        );
        assert_eq!(
            losses_text(&[port_with_losses(1, 0)]),
            "lost none of its last 63 messages"
        );
    }

    #[test]
    fn port_advice_contains_scope_minimum_time_and_gain() {
        let best = neph_flows::BestOf {
            connections: 1,
            chance: 0.4,
            p50: Span::from_millis(72),
            p99: Span::from_millis(78),
        };
        let evidence = AdviceEvidence {
            low: Span::from_millis(70),
            random: Span::from_millis(72),
            lowest_class_share: neph_flows::Share {
                hits: 4,
                n: 10,
                cases: 10.0,
                share: 0.4,
                low: 0.2,
                high: 0.7,
            },
            ports: vec![port(30_002, 600), port(30_010, 480)],
            loss: None,
            holds: Some(Span::from_secs(60)),
            no_ports: None,
            best_of: vec![best],
            horizons: Vec::new(),
        };
        let fleet = Fleet {
            probe: ProbeKind::Syn,
            slots: 10,
            endpoints: vec![neph_model::FleetEndpoint {
                name: "x".to_owned(),
                address: ([192, 0, 2, 1], 443).into(),
            }],
            interval: Span::from_secs(1),
            lifetime: None,
            criteria: None,
        };
        let text = ports_text(&evidence, Span::from_secs(60), &scope_text(&fleet, 0));
        assert_eq!(
            text,
            "For TCP from here to 192.0.2.1:443 only: use source port 30002, 30010.\n\
             Each advised port was on the low path for at least 8 min and has no recent messages to estimate its loss.\n\
             The median over ports is 2.00 ms lower on the low path (70.00 ms) than on a random source port \
             (72.00 ms), and p99 over ports 8.00 ms lower (70.00 ms, random port 78.00 ms).\n"
        );
    }
}
