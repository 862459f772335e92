//! `neph export --transfers`: the transfers on the ports of fleets' latency classes, a row each.

use std::io::{self, Write};

use neph_model::{ClassTransfer, Experiment, Span};
use neph_store::{Store, StoreError, WallClock};
use serde_json::{Value, json};

use super::Format;
use super::rows::{Rows, WHOSE, whose};

/// What a row holds behind whose it is; moments are wall-clock nanoseconds since 1970.
const KEYS: [&str; 8] = [
    "endpoint",
    "class",
    "source_port",
    "at_unix_ns",
    "bytes",
    "connect_ns",
    "whole_ns",
    "failure",
];

/// Writes the transfers of the experiments' fleets; returns how many.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    format: Format,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let unwritten = |source: io::Error| StoreError::Output {
        format: "transfers",
        source,
    };
    let mut rows = Rows::begin(format, (&WHOSE, &KEYS), out).map_err(unwritten)?;
    for experiment in experiments {
        let made = store.transfers(experiment.id)?;
        if made.is_empty() {
            continue;
        }
        let owner = whose(store, experiment)?;
        let clock = WallClock::of(experiment);
        for one in &made {
            let row = row(experiment, &clock, one);
            rows.push(&owner, row).map_err(unwritten)?;
        }
    }
    rows.end().map_err(unwritten)
}

fn row(experiment: &Experiment, clock: &WallClock, made: &ClassTransfer) -> Value {
    let endpoints = experiment.fleet.as_ref().map(|fleet| &fleet.endpoints);
    let endpoint = endpoints.and_then(|all| all.get(made.endpoint));
    let transfer = &made.transfer;
    json!({
        "endpoint": endpoint.map(|endpoint| endpoint.name.as_str()),
        "class": made.class,
        "source_port": transfer.source_port,
        "at_unix_ns": clock.wall(transfer.begun).unix_nanos(),
        "bytes": made.size.bytes(),
        "connect_ns": transfer.connect().map(Span::nanos),
        "whole_ns": transfer.whole().map(Span::nanos),
        "failure": transfer.failure(),
    })
}
