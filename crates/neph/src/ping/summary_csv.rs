//! The summary as CSV: a row for each flow and quantity, from the same numbers as the JSON.

use neph_text::csv_field;
use serde_json::Value;

use super::flows::Found;
use super::summary_json;
use super::watch::Everything;

const HEADING: &str =
    "target,quantity,messages,lost,n,min_ns,mean_ns,p50_ns,p90_ns,p99_ns,max_ns,sd_ns";

/// The whole table. A flow without a reply has a row too: its loss is what there is to tell.
pub(super) fn csv(found: &Found, watched: &Everything) -> String {
    let mut text = HEADING.to_owned() + "\n";
    let summary = summary_json::json(found, watched);
    for flow in summary["flows"].as_array().into_iter().flatten() {
        text.push_str(&row(flow, ("response", &flow["response_ns"])));
        for (name, key) in [
            ("service", "service_ns"),
            ("tcp", "tcp_ns"),
            ("network", "network_ns"),
            ("network and peer", "network_and_peer_ns"),
        ] {
            if !flow[key].is_null() {
                text.push_str(&row(flow, (name, &flow[key])));
            }
        }
        for stage in flow["stages"].as_array().into_iter().flatten() {
            let name = format!("stage {}", stage["stage"].as_str().unwrap_or_default());
            text.push_str(&row(flow, (&name, &stage["ns"])));
        }
    }
    text
}

fn row(flow: &Value, (quantity, numbers): (&str, &Value)) -> String {
    let mut cells = vec![
        csv_field(flow["target"].as_str().unwrap_or_default()).into_owned(),
        csv_field(quantity).into_owned(),
        cell(&flow["tally"]["messages"]),
        cell(&flow["tally"]["lost"]),
        cell(&numbers["n"]),
        cell(&numbers["min"]),
        cell(&numbers["mean"]),
    ];
    for quantile in ["p50", "p90", "p99"] {
        cells.push(cell(&numbers[quantile]["value"]));
    }
    cells.push(cell(&numbers["max"]));
    cells.push(cell(&numbers["sd"]));
    cells.join(",") + "\n"
}

/// Whole nanoseconds; what is not known is empty.
fn cell(value: &Value) -> String {
    match (value.as_u64(), value.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(real)) => format!("{real:.0}"),
        (None, None) => String::new(),
    }
}
