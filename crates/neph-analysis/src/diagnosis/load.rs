//! Decides whether an effect is due to the load that the plan generates (`stress`).
//!
//! Owns the comparison with the same scenario without load. The rules measure the effect and write the text.

use std::collections::BTreeMap;

use neph_model::Stress;

use super::{Place, Run, Sight};

/// What causes an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing<'s> {
    /// Not the load: the plan generates none, or the effect is as large without it.
    Own,
    /// The load (by name): without it the effect has this size.
    Load(&'s str, f64),
    /// Unknown: the plan measures nothing without its load.
    Unknown(&'s str),
}

/// The load is the cause if the effect without it is less than this share of the effect with it.
const LESS: f64 = 0.5;

impl Doing<'_> {
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self, Self::Load(..))
    }

    /// The remedy: `own` if the load is not the cause, `of_load` if it is. If the cause is unknown: measure
    /// without the load, and apply `own` if the effect remains.
    pub(crate) fn remedy(&self, own: &str, of_load: &str) -> String {
        match self {
            Self::Own => own.to_owned(),
            Self::Load(..) => of_load.to_owned(),
            Self::Unknown(_) => measure_without(own),
        }
    }
}

impl<'a> Sight<'a> {
    /// Decides what causes an effect of this size in a scenario's experiments; `run` is one of them.
    /// `without` measures the effect in other experiments.
    pub(crate) fn whose(
        &self,
        run: &Run<'a>,
        with: f64,
        without: impl FnOnce(&[&Run<'a>]) -> Option<f64>,
    ) -> Doing<'a> {
        let load = run.scenario.stress();
        // A load that was requested but not generated has no effect.
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

    /// The experiments by place. A place that was also measured without the plan's load has those experiments
    /// only. They show what is permanent (a proxy, a slow link) without the effects of the load.
    pub(crate) fn places_at_rest(&self) -> BTreeMap<Place, Vec<&Run<'a>>> {
        let mut places = self.places();
        for runs in places.values_mut() {
            if runs.iter().any(|run| run.scenario.stress().is_none()) {
                runs.retain(|run| run.scenario.stress().is_none());
            }
        }
        places
    }

    /// The experiments of the same scenario and site in which the plan generates no load.
    fn without_load(&self, run: &Run<'a>) -> Vec<&Run<'a>> {
        let is_twin = |other: &&Run<'a>| {
            other.scenario.stress().is_none()
                && other.site() == run.site()
                && other.scenario.is_identical_but_for_stress(run.scenario)
        };
        self.runs.iter().filter(is_twin).collect()
    }
}

/// Whether an effect of size `with` under load, and `without` without it, is due to the load.
pub(crate) fn is_by_load(with: f64, without: f64) -> bool {
    without < LESS * with
}

/// The remedy if it is unknown whether the load is the cause; `own` applies if it is not.
pub(crate) fn measure_without(own: &str) -> String {
    format!(
        "to check whether the load causes it, add a scenario with stress = \"{}\"; if it does not, {own}",
        Stress::NONE
    )
}
