//! Advice on source ports in numbers.

use neph_flows::{AdviceEvidence, PortAdvice};
use neph_model::Span;

use super::cells::Cell;
use crate::fleet::Pair;

pub(crate) const COLUMNS: [&str; 10] = [
    "advice",
    "of",
    "share_low_path",
    "share_from",
    "share_to",
    "p50_ms",
    "p99_ms",
    "random_p50_ms",
    "random_p99_ms",
    "note",
];

/// Ports, connections of which the best is kept, and the backtest of the advice; or the reason for no advice.
/// Empty if no advice was requested.
pub(crate) fn rows(pair: &Pair<'_>) -> Vec<Vec<Cell>> {
    match pair.advice().map(|advice| &advice.port_advice) {
        None => Vec::new(),
        Some(PortAdvice::Refused { why }) => vec![row("none", "", &Numbers::default(), why)],
        Some(PortAdvice::Given(evidence)) => rows_of_advice(evidence),
    }
}

/// The numbers of a row.
#[derive(Default)]
struct Numbers {
    share: Option<(f64, Option<(f64, f64)>)>,
    best: Option<(Span, Option<Span>)>,
    random: Option<(Span, Option<Span>)>,
}

fn rows_of_advice(evidence: &AdviceEvidence) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = evidence
        .ports
        .iter()
        .map(|port| {
            let numbers = Numbers {
                best: Some((port.base, None)),
                ..Numbers::default()
            };
            let loss = port.loss.map_or_else(String::new, |loss| {
                format!(", lost {} of its last {}", loss.hits, loss.n)
            });
            let holds = evidence.holds.map_or_else(String::new, |holds| {
                format!("; the advice remained valid for {:.0} s", holds.secs_f64())
            });
            let held_seconds = port.held.secs_f64();
            let note = format!("on the low path for {held_seconds:.0} s{loss}{holds}");
            row("port", &port.port.to_string(), &numbers, &note)
        })
        .collect();
    if let Some(why) = &evidence.no_ports {
        rows.push(row("no port", "", &Numbers::default(), why));
    }
    let lossy = evidence.loss.filter(|loss| loss.is_more);
    let loss_note = lossy.map_or_else(String::new, |loss| {
        format!("the low path loses {:.1} %", loss.low.share * 100.0)
    });
    rows.extend(evidence.best_of.iter().map(|best| {
        let numbers = Numbers {
            share: Some((best.chance, None)),
            best: Some((best.p50, Some(best.p99))),
            ..Numbers::default()
        };
        let subject = best.connections.to_string();
        row("kept best", &subject, &numbers, &loss_note)
    }));
    rows.extend(evidence.horizons.iter().map(|horizon| {
        let share = horizon.on_low;
        let numbers = Numbers {
            share: Some((share.share, Some((share.low, share.high)))),
            best: horizon
                .p50
                .map(|p50| (p50.advised, horizon.p99.map(|p99| p99.advised))),
            random: horizon
                .p50
                .map(|p50| (p50.random, horizon.p99.map(|p99| p99.random))),
        };
        let subject = format!("{:.0} s later", horizon.after.secs_f64());
        let note = format!(
            "{} times; expected at random {:.3}",
            share.n, horizon.random_on_lowest_class
        );
        row("tested", &subject, &numbers, &note)
    }));
    rows
}

fn row(advice: &str, subject: &str, numbers: &Numbers, note: &str) -> Vec<Cell> {
    let text_or_absent = |text: &str| match text {
        "" => Cell::Absent,
        text => Cell::Text(text.to_owned()),
    };
    let ms = |span: Option<Span>| Cell::real(span.map(Span::millis_f64));
    let interval = numbers.share.and_then(|(_, interval)| interval);
    vec![
        text_or_absent(advice),
        text_or_absent(subject),
        Cell::real(numbers.share.map(|(share, _)| share)),
        Cell::real(interval.map(|(low, _)| low)),
        Cell::real(interval.map(|(_, high)| high)),
        ms(numbers.best.map(|(p50, _)| p50)),
        ms(numbers.best.and_then(|(_, p99)| p99)),
        ms(numbers.random.map(|(p50, _)| p50)),
        ms(numbers.random.and_then(|(_, p99)| p99)),
        text_or_absent(note),
    ]
}
