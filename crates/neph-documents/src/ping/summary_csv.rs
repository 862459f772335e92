//! The summary as CSV: a row for each flow and quantity, from the same numbers as the JSON.

use neph_text::csv_field;

use super::PingSummary;
use super::summary_document::{FlowSummary, NumbersDocument};

const HEADING: &str =
    "target,quantity,messages,lost,n,min_ns,mean_ns,p50_ns,p90_ns,p99_ns,max_ns,sd_ns";

/// The whole table. A flow without a reply has a row too, with its loss.
pub fn summary_csv(summary: &PingSummary) -> String {
    let mut text = HEADING.to_owned() + "\n";
    for flow in &summary.flows {
        text.push_str(&csv_row(flow, "response", flow.response_ns.as_ref()));
        for (name, numbers) in [
            ("service", &flow.service_ns),
            ("tcp", &flow.tcp_ns),
            ("network", &flow.network_ns),
            ("network and peer", &flow.network_and_peer_ns),
        ] {
            if numbers.is_some() {
                text.push_str(&csv_row(flow, name, numbers.as_ref()));
            }
        }
        for stage in &flow.stages {
            let name = format!("stage {}", stage.stage);
            text.push_str(&csv_row(flow, &name, stage.ns.as_ref()));
        }
    }
    text
}

fn csv_row(flow: &FlowSummary, quantity: &str, numbers: Option<&NumbersDocument>) -> String {
    let value_cell = |value: fn(&NumbersDocument) -> Option<f64>| cell(numbers.and_then(value));
    let cells = [
        csv_field(&flow.target).into_owned(),
        csv_field(quantity).into_owned(),
        flow.tally.messages.to_string(),
        flow.tally.lost.to_string(),
        numbers.map_or_else(String::new, |numbers| numbers.n.to_string()),
        value_cell(|numbers| numbers.min),
        value_cell(|numbers| numbers.mean),
        value_cell(|numbers| numbers.p50?.value),
        value_cell(|numbers| numbers.p90?.value),
        value_cell(|numbers| numbers.p99?.value),
        value_cell(|numbers| numbers.max),
        value_cell(|numbers| numbers.sd),
    ];
    cells.join(",") + "\n"
}

/// Whole nanoseconds; an unknown value is empty.
fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.0}"))
}
