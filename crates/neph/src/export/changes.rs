//! `neph export --changes`: the path changes that a detector finds in the messages of fleets.
//!
//! Owns what a row says. Changes are looked for in one experiment after the other, by what was kept
//! with it, as a report does; beside each stands what the trace said that was made for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use clap::ValueEnum;
use neph_flows::{AllDetected, Detected, Detecting, Detector, Settings};
use neph_model::{ChangeId, Experiment, Fleet, Instant, Own, PathHash, TracedChange};
use neph_store::{SentWithin, Store, StoreError, WallClock};
use serde_json::{Value, json};

use super::Format;
use super::rows::{Rows, WHOSE, whose};
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

/// What a row holds behind whose it is; moments are wall-clock nanoseconds since 1970.
const KEYS: [&str; 11] = [
    "detector",
    "endpoint",
    "lane",
    "source_port",
    "at_unix_ns",
    "told_unix_ns",
    "before_ns",
    "after_ns",
    "path_before",
    "path_after",
    "other_routers",
];

/// The routes that were traced for changes that are told.
type Traced = BTreeMap<ChangeId, (TracedChange, PathHash)>;

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
    let mut rows = Rows::begin(format, (&WHOSE, &KEYS), out).map_err(unwritten)?;
    for experiment in experiments {
        let Some(fleet) = &experiment.fleet else {
            continue;
        };
        let owner = whose(store, experiment)?;
        let clock = WallClock::of(experiment);
        let found = found(store, (experiment, fleet), by)?;
        let traced = traced(store, experiment, &found.changes)?;
        if let Some(until) = found.forgotten {
            let from = when::utc(clock.wall(until));
            output::say(&format!(
                "neph: experiment {}: there were more path changes than are kept; those up to {from} are not among the rows",
                experiment.id
            ));
        }
        for change in found.changes {
            let row = row(fleet, &clock, (by, &change), &traced);
            rows.push(&owner, row).map_err(unwritten)?;
        }
    }
    rows.end().map_err(unwritten)
}

/// However many routes there are, only those of `changes` are held.
fn traced(
    store: &dyn Store,
    experiment: &Experiment,
    changes: &[Detected],
) -> Result<Traced, StoreError> {
    let told: BTreeSet<ChangeId> = changes.iter().map(Detected::id).collect();
    let mut traced = Traced::new();
    store.visit_traced_routes(experiment.id, &mut |batch| {
        for one in batch {
            let Some((id, change)) = one.change_id().zip(one.change) else {
                continue;
            };
            if told.contains(&id) {
                traced.insert(id, (change, one.route.hash));
            }
        }
        Ok(())
    })?;
    Ok(traced)
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

fn row(fleet: &Fleet, clock: &WallClock, (by, change): (By, &Detected), traced: &Traced) -> Value {
    let unix = |at: Instant<Own>| clock.wall(at).unix_nanos();
    let endpoint = fleet.endpoints.get(fleet.endpoint_of(change.lane));
    let detector = by.to_possible_value();
    let told = traced.get(&change.id());
    json!({
        "detector": detector.map(|value| value.get_name().to_owned()),
        "endpoint": endpoint.map(|endpoint| endpoint.name.as_str()),
        "lane": change.lane.0,
        "source_port": change.source_port,
        "at_unix_ns": unix(change.at),
        "told_unix_ns": change.told.map(unix),
        "before_ns": change.before.nanos(),
        "after_ns": change.after.nanos(),
        "path_before": told.and_then(|(change, _)| change.before).map(String::from),
        "path_after": told.map(|(_, after)| after.to_string()),
        "other_routers": told.and_then(|(change, _)| change.others),
    })
}
