//! A Latency Tester's output folder: `raw-data/` with one file per experiment under the Latency
//! Tester's file names, and the settings. The import reads what this module writes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use neph_model::{Campaign, Experiment, ExperimentStatus, Scenario};

use super::latency_tester::export_latency_tester_csv;
use crate::columns::ExperimentContext;
use crate::import::FileName;
use crate::{Store, StoreError};

/// The folder of measurements.
const RAW_DATA: &str = "raw-data";
/// The settings file.
const SETTINGS: &str = "settings.yaml";

/// Writes `experiments` of `campaign` below `folder`, which is created if needed; returns the
/// number of rows. A file is `raw-data/<run>-<endpoint>.i<milliseconds>.x<bytes>.csv`; other varied
/// parameters follow the endpoint's name. Nothing is pooled: experiments that are not complete get
/// a folder named after their status, a repeat gets `again-2`. A plan that was a settings file is
/// written too.
///
/// # Errors
/// The store cannot be read, or a file cannot be written.
pub fn export_latency_tester_folder(
    store: &dyn Store,
    campaign: &Campaign,
    experiments: &[Experiment],
    folder: &Path,
) -> Result<u64, StoreError> {
    let scenarios = store.scenarios(campaign.id)?;
    let mut used_paths = BTreeSet::new();
    let mut rows = 0;
    for experiment in experiments {
        let context = ExperimentContext::of(experiment, &scenarios);
        let path = folder
            .join(RAW_DATA)
            .join(unique_path(&context, &mut used_paths));
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(StoreError::file("make", parent))?;
        let file = File::create(&path).map_err(StoreError::file("make", &path))?;
        rows += export_latency_tester_csv(store, experiment, &mut BufWriter::new(file))?;
    }
    if is_settings_file(&campaign.plan_path) {
        let path = folder.join(SETTINGS);
        fs::write(&path, &campaign.plan_text).map_err(StoreError::file("write", &path))?;
    }
    Ok(rows)
}

fn is_settings_file(plan_path: &str) -> bool {
    let extension = Path::new(plan_path).extension();
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// A unique path for an experiment's file below `raw-data`.
fn unique_path(context: &ExperimentContext<'_>, used_paths: &mut BTreeSet<PathBuf>) -> PathBuf {
    let folder = match context.experiment.status {
        ExperimentStatus::Complete => PathBuf::new(),
        status => PathBuf::from(status.name()),
    };
    let name = file_name(context);
    let mut path = folder.join(&name);
    let mut attempt = 2;
    while !used_paths.insert(path.clone()) {
        path = folder.join(format!("again-{attempt}")).join(&name);
        attempt += 1;
    }
    path
}

fn file_name(context: &ExperimentContext<'_>) -> String {
    let scenario = context.scenario;
    let endpoint = scenario.map_or_else(|| context.experiment.scenario.to_string(), endpoint_label);
    let file_name = FileName {
        run: Some(context.experiment.block.saturating_add(1)),
        endpoint,
        interval: scenario.map(|scenario| scenario.interval),
        request_bytes: scenario.map(|scenario| scenario.request_size.bytes()),
    };
    // The two characters that a file name cannot contain.
    format!("{file_name}.csv").replace(['/', '\0'], "_")
}

/// The endpoint's name and the other parameters that distinguish this scenario.
fn endpoint_label(scenario: &Scenario) -> String {
    let mut label = scenario.endpoint.clone();
    for parameter_name in &scenario.varied {
        if let Some(parameter) = scenario.parameters.get(*parameter_name) {
            label.push_str(&format!(
                "_{parameter_name}-{}",
                parameter.text().replace(' ', "")
            ));
        }
    }
    label
}
