//! `neph export --changes`: the path changes that a detector finds in the messages of fleets.
//!
//! Owns the rows. Changes are looked for in one experiment after the other, by what was kept with
//! it, as a report does.

use std::io::{self, Write};

use clap::ValueEnum;
use neph_flows::{AllDetected, Detected, Detecting, Detector, Settings};
use neph_model::{Experiment, Fleet, Instant, Own, Span};
use neph_store::{SentWithin, Store, StoreError, WallClock};
use serde_json::{Value, json};

use super::Format;
use crate::sheet::field;
use crate::{output, when};

/// Who tells path changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// As neph flows and reports do: the source's rule, and all flows together
    Guard,
    /// The source's rule alone, flow by flow
    Rule,
    /// Change points of the window's minima, flow by flow and after the fact
    ChangePoints,
}

impl By {
    const fn detector(self) -> Detector {
        match self {
            Self::Guard => Detector::Guard,
            Self::Rule => Detector::Rule,
            Self::ChangePoints => Detector::ChangePoints,
        }
    }
}

/// What a row holds; moments are wall-clock nanoseconds since 1970.
const KEYS: [&str; 14] = [
    "experiment_id",
    "scenario_id",
    "scenario",
    "block",
    "attempt",
    "status",
    "detector",
    "endpoint",
    "lane",
    "source_port",
    "at_unix_ns",
    "told_unix_ns",
    "before_ns",
    "after_ns",
];

/// Writes the changes that this detector finds in the experiments' fleets; returns how many.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    (format, by): (Format, By),
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let unwritten = |source: io::Error| StoreError::Output {
        format: "path changes",
        source,
    };
    if format == Format::Csv {
        writeln!(out, "{}", KEYS.join(",")).map_err(unwritten)?;
    }
    let mut rows = 0;
    for experiment in experiments {
        let Some(fleet) = &experiment.fleet else {
            continue;
        };
        let scenarios = store.scenarios(experiment.campaign)?;
        let scenario = scenarios.iter().find(|one| one.id == experiment.scenario);
        let label = scenario.map(neph_model::Scenario::label);
        let clock = WallClock::of(experiment);
        let found = found(store, (experiment, fleet), by)?;
        if let Some(until) = found.forgotten {
            let from = when::utc(clock.wall(until));
            output::say(&format!(
                "neph: experiment {}: there were more path changes than are kept; those up to {from} are not among the rows",
                experiment.id
            ));
        }
        for change in found.changes {
            let row = row((experiment, fleet), &clock, (by, &change));
            let line = line(format, row, label.as_deref());
            writeln!(out, "{line}").map_err(unwritten)?;
            rows += 1;
        }
    }
    out.flush().map_err(unwritten)?;
    Ok(rows)
}

fn found(
    store: &dyn Store,
    (experiment, fleet): (&Experiment, &Fleet),
    by: By,
) -> Result<AllDetected, StoreError> {
    let detecting = Detecting::new(fleet, Settings::of(fleet), by.detector());
    let mut detecting = detecting.map_err(|error| StoreError::Output {
        format: "path changes",
        source: io::Error::other(error),
    })?;
    store.visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
        for message in batch {
            detecting.push(message);
        }
        Ok(())
    })?;
    Ok(detecting.finish())
}

fn row(
    (experiment, fleet): (&Experiment, &Fleet),
    clock: &WallClock,
    (by, change): (By, &Detected),
) -> Value {
    let unix = |at: Instant<Own>| clock.wall(at).unix_nanos();
    let nanos = |span: Span| span.nanos();
    let endpoint = fleet.endpoints.get(fleet.endpoint_of(change.lane));
    let detector = by.to_possible_value();
    json!({
        "experiment_id": experiment.id.to_string(),
        "scenario_id": experiment.scenario.to_string(),
        "block": experiment.block,
        "attempt": experiment.attempt,
        "status": experiment.status.name(),
        "detector": detector.map(|value| value.get_name().to_owned()),
        "endpoint": endpoint.map(|endpoint| endpoint.name.as_str()),
        "lane": change.lane.0,
        "source_port": change.source_port,
        "at_unix_ns": unix(change.at),
        "told_unix_ns": change.told.map(unix),
        "before_ns": nanos(change.before),
        "after_ns": nanos(change.after),
    })
}

fn line(format: Format, mut row: Value, label: Option<&str>) -> String {
    row["scenario"] = label.into();
    if format == Format::Csv {
        return KEYS.map(|key| field(&row[key])).join(",");
    }
    // As in the other exports, what is absent has no key.
    if let Some(row) = row.as_object_mut() {
        row.retain(|_, value| !value.is_null());
    }
    row.to_string()
}
