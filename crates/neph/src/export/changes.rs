//! `neph export --changes`: the path changes that a detector finds in the messages of fleets.
//!
//! Owns the content of a row. The detector reads one experiment after the other, with the stored
//! settings, as a report does. Each row has the result of the trace of its change.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use clap::ValueEnum;
use neph_documents::export_rows::{Change, ChangeRow, RowWithExperiment, TracedPaths};
use neph_documents::wall_time;
use neph_flows::{DetectedChange, DetectedChanges, Detector, DetectorRun, Settings};
use neph_model::{ChangeId, Experiment, Fleet, PathHash, TracedChange};
use neph_store::{SentWithin, Store, StoreError, WallClock};

use super::FileFormat;
use super::rows::{Rows, row_experiment};
use crate::output;

/// The detector of path changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ChangeDetector {
    /// The detector of `neph flows` and reports: it checks each flow's RTTs against those of all other flows
    Guard,
    /// The published rule of Chiesa et al. (docs/sources.md, source 3) for each flow alone
    Rule,
    /// Finds the times at which the minimum RTT of a flow changes; each flow alone, in its complete series
    ChangePoints,
}

impl ChangeDetector {
    /// The name on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Rule => "rule",
            Self::ChangePoints => "change-points",
        }
    }

    const fn detector(self) -> Detector {
        match self {
            Self::Guard => Detector::Guard,
            Self::Rule => Detector::Rule,
            Self::ChangePoints => Detector::ChangePoints,
        }
    }
}

/// The routes that were traced for reported changes.
type TracedChanges = BTreeMap<ChangeId, (TracedChange, PathHash)>;

/// Writes the path changes that this detector finds in fleets; returns their number.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    format: FileFormat,
    change_detector: ChangeDetector,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let output_error = |source: io::Error| StoreError::Output {
        format: "path changes",
        source,
    };
    let mut rows =
        Rows::begin::<RowWithExperiment<ChangeRow>>(format, out).map_err(output_error)?;
    for experiment in experiments {
        let Some(fleet) = &experiment.fleet else {
            continue;
        };
        let columns = row_experiment(store, experiment)?;
        let clock = WallClock::of(experiment);
        let detected_changes = detect_changes(store, experiment, fleet, change_detector)?;
        let traced_changes = find_traced_changes(store, experiment, &detected_changes.changes)?;
        if let Some(limit) = detected_changes.forgotten {
            let limit_text = wall_time::utc(clock.wall(limit));
            output::say(&format!(
                "neph: experiment {}: there were more path changes than are kept; those up to {limit_text} are not among the rows",
                experiment.id
            ));
        }
        for change in detected_changes.changes {
            let paths = traced_changes
                .get(&change.id())
                .map(|(traced_change, after)| TracedPaths {
                    before: traced_change.before.map(String::from),
                    after: Some(after.to_string()),
                    has_other_routers: traced_change.other_routers,
                });
            let flow_change = Change {
                fleet,
                detector: change_detector.name(),
                change: &change,
            };
            let row = ChangeRow::of(flow_change, paths.unwrap_or_default(), |time| {
                clock.wall(time)
            });
            let experiment_row = RowWithExperiment {
                experiment: columns.clone(),
                row,
            };
            rows.push(&experiment_row).map_err(output_error)?;
        }
    }
    rows.end().map_err(output_error)
}

/// Memory is bounded: only the routes of `changes` are kept.
fn find_traced_changes(
    store: &dyn Store,
    experiment: &Experiment,
    changes: &[DetectedChange],
) -> Result<TracedChanges, StoreError> {
    let change_ids: BTreeSet<ChangeId> = changes.iter().map(DetectedChange::id).collect();
    let mut traced_changes = TracedChanges::new();
    store.visit_traced_routes(experiment.id, &mut |batch| {
        for route in batch {
            let Some((id, change)) = route.change_id().zip(route.change) else {
                continue;
            };
            if change_ids.contains(&id) {
                traced_changes.insert(id, (change, route.route.hash));
            }
        }
        Ok(())
    })?;
    Ok(traced_changes)
}

fn detect_changes(
    store: &dyn Store,
    experiment: &Experiment,
    fleet: &Fleet,
    change_detector: ChangeDetector,
) -> Result<DetectedChanges, StoreError> {
    let detector_run = DetectorRun::new(fleet, Settings::of(fleet), change_detector.detector());
    let mut detector_run = detector_run.map_err(|error| StoreError::Output {
        format: "path changes",
        source: io::Error::other(error),
    })?;
    store.visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
        for message in batch {
            detector_run.push(message);
        }
        Ok(())
    })?;
    Ok(detector_run.finish())
}
