//! Which guests this machine can have, and what takes the place of those that it cannot.
//!
//! Asked before anything is made: programs first, then one trial that starts what would run them. A
//! machine that cannot have them gets the same topology with namespaces in their place, and whoever
//! brought it up is told.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::lab::LabError;
use crate::plan::Step;
use crate::program;
use crate::topology::Topology;
use crate::topology::fixture::Trial;

/// Guests that are namespaces here, because this machine cannot run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The name of their table.
    pub guests: String,
    /// Their sites.
    pub sites: Vec<String>,
    /// Why they cannot run, in words.
    pub why: String,
}

impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guests, sites, why } = self;
        let sites = sites.join(", ");
        write!(
            f,
            "guests as namespaces: those of [[guest]] {guests} ({sites}) cannot run here: {why}"
        )
    }
}

/// The topology as this machine can have it, and what in it stands in for guests. Without a folder to
/// try them in, only what they need is looked for.
///
/// # Errors
/// Guests cannot run and nothing may take their place.
pub(crate) fn settle(
    topology: &Topology,
    folder: Option<&Path>,
) -> Result<(Topology, Vec<StandIn>), LabError> {
    let mut settled = topology.clone();
    let mut stand_ins = Vec::new();
    // Tables that ask for the same are tried once.
    let mut tried: Vec<(String, Option<String>)> = Vec::new();
    for fixture in &mut settled.fixtures {
        let Some(trial) = fixture.build.trial() else {
            continue;
        };
        let known = tried.iter().find(|(line, _)| *line == trial.line);
        let hindrance = if let Some((_, known)) = known {
            known.clone()
        } else {
            let found = hindrance(&trial, folder)?;
            tried.push((trial.line.clone(), found.clone()));
            found
        };
        let Some(why) = hindrance else {
            continue;
        };
        let name = fixture.name.clone();
        let instead = trial.instead.map_err(|remedy| LabError::NoGuests {
            guests: name.clone(),
            why: why.clone(),
            remedy,
        })?;
        let sites = instead.pods().into_iter();
        let sites = sites.map(|site| topology.sites[site].name.clone());
        stand_ins.push(StandIn {
            guests: name,
            sites: sites.collect(),
            why,
        });
        fixture.build = Arc::clone(&instead);
    }
    Ok((settled, stand_ins))
}

/// Why this machine cannot have it, if it cannot.
fn hindrance(trial: &Trial, folder: Option<&Path>) -> Result<Option<String>, LabError> {
    let programs = trial.programs.iter().copied();
    let lone = trial.lone.iter().copied();
    let mut found = programs
        .map(program::must_have)
        .chain(lone.map(program::must_be_lone));
    if let Some(missing) = found.find_map(Result::err) {
        return Ok(Some(missing.to_string()));
    }
    let Some(folder) = folder else {
        return Ok(None);
    };
    Ok(program::complaint(&trial.line, folder)?)
}

/// How it is told which guests this machine can have, each with the lab's namespace.
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

    fn why(programs: &[&'static str], line: &str, folder: Option<&Path>) -> Option<String> {
        let trial = Trial {
            programs: programs.to_vec(),
            lone: Vec::new(),
            line: line.to_owned(),
            instead: Err("nothing"),
        };
        hindrance(&trial, folder).expect("a shell")
    }

    #[test]
    fn what_is_missing_is_told_before_anything_is_tried_and_a_trial_tells_by_its_last_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = Some(folder.path());
        assert_eq!(why(&["sh"], "echo x > tried", at), None);
        assert!(folder.path().join("tried").exists(), "in the lab's folder");
        let told = why(&["sh"], "echo one; echo 'no ptrace'; echo; exit 1", at);
        assert_eq!(told.as_deref(), Some("no ptrace"));
        let told = why(&["sh"], "exit 3", at);
        assert_eq!(told.as_deref(), Some("it does not start"));
        assert_eq!(why(&["sh"], "exit 3", None), None, "nowhere to try it");
        let told = why(&["no-such-x"], "true", None).expect("no such program");
        assert!(told.contains("'no-such-x' is missing"), "{told}");
    }
}
