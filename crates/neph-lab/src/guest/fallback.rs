//! Decides which guests this host can run, and replaces the others by namespaces.
//!
//! Runs before anything is created: checks programs first, then starts the guest's program in a trial. If the
//! host cannot run guests, the same topology uses namespaces, and the caller gets a list of them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::lab::LabError;
use crate::plan::Step;
use crate::program;
use crate::topology::Topology;
use crate::topology::fixture::Trial;

/// Guests that are namespaces, because this host cannot run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackGuests {
    /// The name of their table.
    pub guests: String,
    /// Their sites.
    pub sites: Vec<String>,
    /// Why they cannot run.
    pub reason: String,
}

impl fmt::Display for FallbackGuests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            guests,
            sites,
            reason,
        } = self;
        let sites = sites.join(", ");
        write!(
            f,
            "guests as namespaces: those of [[guest]] {guests} ({sites}) cannot run here: {reason}"
        )
    }
}

/// The topology that this host can run, and its replaced guests. Without a folder for a trial, only checks
/// for programs.
///
/// # Errors
/// Guests cannot run, and the topology does not allow namespaces.
pub(crate) fn replace_unsupported(
    topology: &Topology,
    folder: Option<&Path>,
) -> Result<(Topology, Vec<FallbackGuests>), LabError> {
    let mut runnable_topology = topology.clone();
    let mut fallback_guests = Vec::new();
    // Tables with equal needs are tried once.
    let mut trial_results: Vec<(String, Option<String>)> = Vec::new();
    for fixture in &mut runnable_topology.fixtures {
        let Some(trial) = fixture.build.trial() else {
            continue;
        };
        let earlier_trial = trial_results.iter().find(|(line, _)| *line == trial.line);
        let unsupported_reason = if let Some((_, earlier_reason)) = earlier_trial {
            earlier_reason.clone()
        } else {
            let reason = unsupported_reason(&trial, folder)?;
            trial_results.push((trial.line.clone(), reason.clone()));
            reason
        };
        let Some(reason) = unsupported_reason else {
            continue;
        };
        let name = fixture.name.clone();
        let fallback = trial
            .fallback
            .map_err(|remedy| LabError::UnsupportedGuests {
                guests: name.clone(),
                reason: reason.clone(),
                remedy,
            })?;
        let sites = fallback.pods().into_iter();
        let sites = sites.map(|site| topology.sites[site].name.clone());
        fallback_guests.push(FallbackGuests {
            guests: name,
            sites: sites.collect(),
            reason,
        });
        fixture.build = Arc::clone(&fallback);
    }
    Ok((runnable_topology, fallback_guests))
}

/// Why this host cannot run it, if it cannot.
fn unsupported_reason(trial: &Trial, folder: Option<&Path>) -> Result<Option<String>, LabError> {
    let programs = trial.programs.iter().copied();
    let static_programs = trial.static_programs.iter().copied();
    let mut checks = programs
        .map(program::require_program)
        .chain(static_programs.map(program::require_static));
    if let Some(missing) = checks.find_map(Result::err) {
        return Ok(Some(missing.to_string()));
    }
    let Some(folder) = folder else {
        return Ok(None);
    };
    Ok(program::complaint(&trial.line, folder)?)
}

/// The steps of the trials, each with the lab's namespace.
pub(crate) fn trial_steps(topology: &Topology, wire: &str) -> Vec<Step> {
    let trials = topology.fixtures.iter().filter_map(|fixture| {
        let line = fixture.build.trial()?.line;
        let name = &fixture.name;
        let line = format!(
            "neph: have namespaces for [[guest]] {name} unless this ends with status 0: {line}"
        );
        Some(Step::new(wire, line))
    });
    trials.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(programs: &[&'static str], line: &str, folder: Option<&Path>) -> Option<String> {
        let trial = Trial {
            programs: programs.to_vec(),
            static_programs: Vec::new(),
            line: line.to_owned(),
            fallback: Err("nothing"),
        };
        unsupported_reason(&trial, folder).expect("a shell")
    }

    #[test]
    fn missing_programs_are_reported_before_a_trial_and_a_trial_by_its_last_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let lab_folder = Some(folder.path());
        assert_eq!(reason(&["sh"], "echo x > tried", lab_folder), None);
        assert!(folder.path().join("tried").exists(), "in the lab's folder");
        let message = reason(
            &["sh"],
            "echo one; echo 'no ptrace'; echo; exit 1",
            lab_folder,
        );
        assert_eq!(message.as_deref(), Some("no ptrace"));
        let message = reason(&["sh"], "exit 3", lab_folder);
        assert_eq!(message.as_deref(), Some("it does not start"));
        assert_eq!(reason(&["sh"], "exit 3", None), None, "nowhere to try it");
        let message = reason(&["no-such-x"], "true", None).expect("no such program");
        assert!(message.contains("'no-such-x' is missing"), "{message}");
    }
}
