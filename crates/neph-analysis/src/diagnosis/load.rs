//! The load that the plan itself makes (`stress`): whose doing it is what shows under it.
//!
//! Owns the comparison with the same scenario without it. How much of an effect there is, and what to
//! say of it, is the rules'.

use std::collections::BTreeMap;

use neph_model::Stress;

use super::{Place, Run, Sight};

/// Whose doing an effect is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing<'s> {
    /// Not the load's: the plan makes none, or there is as much without it.
    Own,
    /// The load's: without it there is so much.
    Load(&'s str, f64),
    /// Nobody can tell: the plan measures nothing without its load.
    Unknown(&'s str),
}

/// Without the load there is less than this share of what it does.
const LESS: f64 = 0.5;

impl Doing<'_> {
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self, Self::Load(..))
    }

    /// What to do: `own` where it is not the load's doing, `of_load` where it is; where nobody can
    /// tell, to measure without the load, and `own` if that shows as much.
    pub(crate) fn remedy(&self, own: &str, of_load: &str) -> String {
        match self {
            Self::Own => own.to_owned(),
            Self::Load(..) => of_load.to_owned(),
            Self::Unknown(_) => measure_without(own),
        }
    }
}

impl<'a> Sight<'a> {
    /// Whose doing it is that there is so much of an effect in a scenario's experiments, of which this is
    /// one; `without` tells how much of it others have.
    pub(crate) fn whose(
        &self,
        run: &Run<'a>,
        with: f64,
        without: impl FnOnce(&[&Run<'a>]) -> Option<f64>,
    ) -> Doing<'a> {
        let load = run.scenario.stress();
        // Where none was made, whatever was asked, it can have done nothing.
        let Some(load) = load.filter(|_| run.experiment.experiment.load_made(load).is_some())
        else {
            return Doing::Own;
        };
        let calm = Some(self.without_load(run)).filter(|runs| !runs.is_empty());
        match calm.and_then(|calm| without(&calm)) {
            None => Doing::Unknown(load),
            Some(calm) if is_by_load(with, calm) => Doing::Load(load, calm),
            Some(_) => Doing::Own,
        }
    }

    /// The experiments by where they went; where a place was measured without the plan's load too, those
    /// alone. What is always there (a proxy, a slow link) is there then, and nothing that a load adds.
    pub(crate) fn places_at_rest(&self) -> BTreeMap<Place, Vec<&Run<'a>>> {
        let mut places = self.places();
        for runs in places.values_mut() {
            if runs.iter().any(|run| run.scenario.stress().is_none()) {
                runs.retain(|run| run.scenario.stress().is_none());
            }
        }
        places
    }

    /// The experiments of the same scenario, from the same site, in which the plan makes no load.
    fn without_load(&self, run: &Run<'a>) -> Vec<&Run<'a>> {
        let is_twin = |other: &&Run<'a>| {
            other.scenario.stress().is_none()
                && other.site() == run.site()
                && other.scenario.is_alike_but_for_stress(run.scenario)
        };
        self.runs.iter().filter(is_twin).collect()
    }
}

/// Whether so much under a load, and so much without it, is the load's doing.
pub(crate) fn is_by_load(with: f64, without: f64) -> bool {
    without < LESS * with
}

/// What to do where nobody can tell whether the load does it: where it does not, what is the path's `own`.
pub(crate) fn measure_without(own: &str) -> String {
    format!(
        "measure the same with stress = \"{}\" beside it, which tells whether the load does it; if not, {own}",
        Stress::NONE
    )
}
