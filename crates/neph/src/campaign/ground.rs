//! The lab of a plan, as an executor needs it.

use std::collections::BTreeMap;

use neph_agent::LocalExecutor;
use neph_agent::lab::{GroundError, LabGround, LabPlan, SiteReflector};
use neph_campaign::Plan;
use neph_lab::Lab;
use neph_model::Stop;

use super::Read;
use crate::exit::Failure;
use crate::lab;

/// Whether what a plan's lab needs is permitted: asked before anything is written.
pub(super) fn check_rights(plan: &Plan) -> Result<(), Failure> {
    match plan.lab {
        None => Ok(()),
        Some(_) => Lab::is_permitted().map_err(lab::failure),
    }
}

/// The executor of a plan's experiments: in its lab, which is up as it is in this season when this
/// returns and ends with it, or on this host.
pub(super) fn executor(
    read: &Read,
    season: Option<&str>,
    stop: &Stop,
) -> Result<LocalExecutor, Failure> {
    let Read { plan, scenes, .. } = read;
    let Some(wanted) = &plan.lab else {
        return Ok(LocalExecutor::new());
    };
    let seasons = plan.seasons.iter().map(|season| season.name.as_str());
    let topology_of = seasons.filter_map(|season| {
        let file = &plan.topology_of(Some(season))?.value;
        let topology = scenes.iter().position(|scene| scene.file == *file)?;
        Some((season.to_owned(), topology))
    });
    let reflectors = wanted.reflectors.iter().map(|reflector| SiteReflector {
        site: reflector.site.value.clone(),
        spec: reflector.spec.value.clone(),
    });
    let plan = LabPlan {
        reflectors: reflectors.collect(),
        topologies: scenes.iter().map(|scene| scene.topology.clone()).collect(),
        topology_of: topology_of.collect::<BTreeMap<_, _>>(),
    };
    let ground = LabGround::up(plan, season, stop).map_err(failure)?;
    Ok(LocalExecutor::in_lab(Box::new(ground)))
}

fn failure(error: GroundError) -> Failure {
    match error {
        GroundError::Lab(error) => lab::failure(error),
        GroundError::Site(error) => Failure::usage(error),
        GroundError::Reflector(error) => Failure::refused(error),
    }
}
