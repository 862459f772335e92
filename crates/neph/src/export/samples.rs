//! `neph export --samples`: the series of experiments (host, TCP statistics), a row for each value.

use std::io::{self, Write};

use neph_model::{Experiment, Instant, Sample};
use neph_store::{Store, StoreError, WallClock};
use serde_json::{Value, json};

use super::Format;
use super::rows::{Rows, WHOSE, whose};

/// What a row holds behind whose it is.
const KEYS: [&str; 4] = ["series", "at_ns", "at_unix_ns", "value"];

/// Writes the samples of the experiments; returns how many.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    format: Format,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let unwritten = |source: io::Error| StoreError::Output {
        format: "samples",
        source,
    };
    let mut rows = Rows::begin(format, (&WHOSE, &KEYS), out).map_err(unwritten)?;
    for experiment in experiments {
        let samples = store.samples(experiment.id)?;
        let owner = whose(store, experiment)?;
        let clock = WallClock::of(experiment);
        for sample in &samples {
            rows.push(&owner, row(&clock, sample)).map_err(unwritten)?;
        }
    }
    rows.end().map_err(unwritten)
}

fn row(clock: &WallClock, sample: &Sample) -> Value {
    json!({
        "series": sample.series.to_string(),
        "at_ns": sample.at,
        "at_unix_ns": clock.wall(Instant::from_nanos(sample.at)).unix_nanos(),
        "value": sample.value,
    })
}
