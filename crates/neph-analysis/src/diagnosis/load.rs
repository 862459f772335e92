//! Decides whether an effect is due to the load that the plan generates (`stress`).
//!
//! Owns the comparison with the same scenario without load. The rules measure the effect and write the text.

use std::collections::BTreeMap;

use neph_model::Stress;

use super::{RuleInput, Run, SitePair};

/// What causes an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadAttribution<'s> {
    /// Not the load: the plan generates none, or the effect is as large without it.
    NotLoad,
    /// The load (by name): without it the effect has this size.
    Load(&'s str, f64),
    /// Unknown: the plan measures nothing without its load.
    Unknown(&'s str),
}

/// The load is the cause if the effect without it is less than this share of the effect with it.
const MAX_CALM_SHARE: f64 = 0.5;

impl LoadAttribution<'_> {
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self, Self::Load(..))
    }

    /// The remedy: `usual_remedy` if the load is not the cause, `load_remedy` if it is. If the cause is
    /// unknown: measure without the load, and apply `usual_remedy` if the effect remains.
    pub(crate) fn remedy(&self, usual_remedy: &str, load_remedy: &str) -> String {
        match self {
            Self::NotLoad => usual_remedy.to_owned(),
            Self::Load(..) => load_remedy.to_owned(),
            Self::Unknown(_) => measure_without(usual_remedy),
        }
    }
}

impl<'a> RuleInput<'a> {
    /// Decides what causes an effect of this size in a scenario's experiments; `run` is one of them.
    /// `without` measures the effect in other experiments.
    pub(crate) fn attribute_effect(
        &self,
        run: &Run<'a>,
        effect: f64,
        measure_effect: impl FnOnce(&[&Run<'a>]) -> Option<f64>,
    ) -> LoadAttribution<'a> {
        let load = run.scenario.stress();
        // A load that was requested but not generated has no effect.
        let Some(load) = load.filter(|_| run.experiment.experiment.generated_load(load).is_some())
        else {
            return LoadAttribution::NotLoad;
        };
        let calm = Some(self.runs_without_load(run)).filter(|runs| !runs.is_empty());
        match calm.and_then(|calm| measure_effect(&calm)) {
            None => LoadAttribution::Unknown(load),
            Some(calm) if is_by_load(effect, calm) => LoadAttribution::Load(load, calm),
            Some(_) => LoadAttribution::NotLoad,
        }
    }

    /// The experiments by place. A place that was also measured without the plan's load has those experiments
    /// only. They show what is permanent (a proxy, a slow link) without the effects of the load.
    pub(crate) fn pairs_without_load(&self) -> BTreeMap<SitePair, Vec<&Run<'a>>> {
        let mut pairs = self.pairs();
        for runs in pairs.values_mut() {
            if runs.iter().any(|run| run.scenario.stress().is_none()) {
                runs.retain(|run| run.scenario.stress().is_none());
            }
        }
        pairs
    }

    /// The experiments of the same scenario and site in which the plan generates no load.
    fn runs_without_load(&self, run: &Run<'a>) -> Vec<&Run<'a>> {
        let is_same_without_load = |other: &&Run<'a>| {
            other.scenario.stress().is_none()
                && other.site() == run.site()
                && other.scenario.is_identical_but_for_stress(run.scenario)
        };
        self.runs.iter().filter(is_same_without_load).collect()
    }
}

/// Whether an effect of size `effect` under load, and `calm_effect` without it, is due to the load.
pub(crate) fn is_by_load(effect: f64, calm_effect: f64) -> bool {
    calm_effect < MAX_CALM_SHARE * effect
}

/// The remedy if it is unknown whether the load is the cause; `usual_remedy` applies if it is not.
pub(crate) fn measure_without(usual_remedy: &str) -> String {
    format!(
        "to check whether the load causes it, add a scenario with stress = \"{}\"; if it does not, {usual_remedy}",
        Stress::NONE
    )
}
