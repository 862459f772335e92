//! Additional data of a fleet: transfers on the ports of its classes, and the verdicts of traces on its path
//! changes.

use neph_flows::{ComparedRoutes, Completion, completions};
use neph_model::Span;

use super::cells::Cell;
use crate::fleet::Pair;

pub(crate) const TRANSFERS: [&str; 9] = [
    "class",
    "bytes",
    "n",
    "ports",
    "failed",
    "median_ms",
    "low_ms",
    "high_ms",
    "ratio",
];

/// A row for each class. All transfers of a measurement have the same size.
pub(crate) fn transfers(pair: &Pair<'_>) -> Vec<Vec<Cell>> {
    let size = pair
        .transfers()
        .next()
        .map(|transfer| transfer.size.bytes());
    let completions = completions(pair.transfers());
    completions
        .iter()
        .map(|result| completion(result, size))
        .collect()
}

fn completion(result: &Completion, size: Option<u64>) -> Vec<Cell> {
    let ends = result.interval;
    vec![
        Cell::Integer(result.class as u64 + 1),
        size.map_or(Cell::Absent, Cell::Integer),
        Cell::Integer(result.n),
        Cell::Integer(result.ports),
        Cell::Integer(result.failed),
        Cell::real(result.median.map(Span::millis_f64)),
        Cell::real(ends.map(|(low, _)| low.millis_f64())),
        Cell::real(ends.map(|(_, high)| high.millis_f64())),
        Cell::real(result.ratio),
    ]
}

pub(crate) const TRACED: [&str; 4] = ["changes", "compared", "other_routers", "same_routers"];

/// One row; none if no change has routes to compare.
pub(crate) fn traced(pair: &Pair<'_>) -> Vec<Vec<Cell>> {
    let changes = pair.changes().count() as u64;
    let compared = ComparedRoutes::of(pair.changes().map(|change| change.evidence.trace));
    if compared.total() == 0 {
        return Vec::new();
    }
    let row = [changes, compared.total(), compared.others, compared.same].map(Cell::Integer);
    vec![row.to_vec()]
}
