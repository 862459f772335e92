//! Seasons that are equal: path changes of fleets whose level wanders from block to block.

use neph_analysis::{CampaignData, PlotSettings, findings};
use neph_flows::FleetView;
use neph_model::Span;
use neph_stats::Random;

use crate::outcome::{Row, Section, Target};
use crate::world::normal;

/// Fleets as the tests of reports have them.
#[expect(
    dead_code,
    unused_imports,
    reason = "the tests look at more than is counted here"
)]
#[path = "../../tests/report/synthetic/mod.rs"]
mod synthetic;

use synthetic::fleet::{FleetModel, PathStability, with_season};

const FLEET: FleetModel = FleetModel {
    flows: 16,
    pairs: 1,
    seconds: 60,
    stability: PathStability::Stable,
};
/// Experiments of each season.
const EXPERIMENTS: u32 = 12;
/// Path changes for each flow and hour, and how much their logarithm spreads.
const CHANGES: f64 = 200.0;
const BETWEEN_BLOCKS: f64 = 0.3;
const BETWEEN_EXPERIMENTS: f64 = 0.05;
const ALLOWED: Target = Target::AtMost(6.4);

/// Reports of seasons that are equal, and of one that has twice the path changes.
pub(crate) fn season_section(reports: u64) -> Section {
    let mut rows = Vec::new();
    for (ratio, quantity, target) in [
        (1.0, "equal ones: one is called better or worse", ALLOWED),
        (2.0, "twice the changes: it is called worse", Target::Shown),
    ] {
        for is_in_turn in [true, false] {
            for autocorrelation in [0.0, 0.5, 0.8, 0.95] {
                let seasons = Seasons {
                    is_in_turn,
                    autocorrelation,
                    ratio,
                };
                rows.push(Row {
                    world: seasons.to_text(),
                    quantity: quantity.to_owned(),
                    hits: seasons.verdicts(reports),
                    cases: usize::try_from(reports).unwrap_or(usize::MAX),
                    target,
                });
            }
        }
    }
    Section {
        about: "Two seasons, twelve experiments of a fleet in each; path changes spread by 30 % between blocks \
                and 5 % between experiments.",
        rows,
    }
}

#[derive(Clone, Copy)]
struct Seasons {
    /// Whether each block has an experiment of both; else the second follows the first.
    is_in_turn: bool,
    /// Of the level from block to block.
    autocorrelation: f64,
    /// How many times the changes of the first season the second has.
    ratio: f64,
}

impl Seasons {
    fn to_text(self) -> String {
        let order = if self.is_in_turn {
            "both in each block"
        } else {
            "one after the other"
        };
        format!(
            "{order}, autocorrelation of blocks {}",
            self.autocorrelation
        )
    }

    /// Of so many reports those that call a season better or worse.
    fn verdicts(self, reports: u64) -> usize {
        let (template, view) = (FLEET.campaign(), FLEET.view());
        let is_verdict = |text: &str| {
            let is_decided = text.contains(": worse") || text.contains(": better");
            text.contains("path changes") && is_decided
        };
        let has_verdict = |seed: &u64| {
            let data = self.campaign((&template, &view), *seed);
            let findings = findings(&data, &PlotSettings::default());
            findings.iter().any(|finding| is_verdict(&finding.text))
        };
        (0..reports).filter(has_verdict).count()
    }

    fn campaign(self, (template, view): (&CampaignData, &FleetView), seed: u64) -> CampaignData {
        let mut random = Random::new(seed);
        let mut data = template.clone();
        let (scenario, experiment) = (data.scenarios.remove(0), data.experiments.remove(0));
        for (index, season) in [(0, "night"), (1, "evening")] {
            let seasonal = with_season(&scenario, index, season);
            data.scenarios.push(seasonal);
        }
        let mut block_level = normal(&mut random);
        let blocks = if self.is_in_turn {
            EXPERIMENTS
        } else {
            2 * EXPERIMENTS
        };
        for block in 0..blocks {
            let seasons = match (self.is_in_turn, block < EXPERIMENTS) {
                (true, _) => 0..2,
                (false, true) => 0..1,
                (false, false) => 1..2,
            };
            for season in seasons {
                let level =
                    BETWEEN_BLOCKS * block_level + BETWEEN_EXPERIMENTS * normal(&mut random);
                let ratio = if season == 0 { 1.0 } else { self.ratio };
                let mut measured = experiment.clone();
                measured.scenario = season;
                measured.experiment.block = block;
                measured.fleet = Some(with_changes(view, ratio * CHANGES * level.exp()));
                data.experiments.push(measured);
            }
            let innovation_share = (1.0 - self.autocorrelation * self.autocorrelation).sqrt();
            block_level =
                self.autocorrelation * block_level + innovation_share * normal(&mut random);
        }
        data
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count above 0"
)]
fn with_changes(view: &FleetView, changes: f64) -> FleetView {
    let mut view = view.clone();
    let pair = &mut view.pairs[0];
    pair.changes = changes.round() as u64;
    pair.watched = Span::from_secs(3600);
    view
}
