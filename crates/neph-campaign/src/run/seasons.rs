//! What may run now: a scenario within its season, and the wait for the next one that opens.

use neph_model::{Campaign, Experiment, Scenario, Span, Wall};

use super::{Run, RunError};
use crate::agenda::{Agenda, AgendaSlot};
use crate::estimate::length;
use crate::expand::scenarios;
use crate::observer::CampaignEvent;
use crate::plan::{Plan, Season};

/// The season of what [`super::resume`] would carry out first at `now`, after these `experiments`:
/// so that a lab can be brought up as it is then. `None` where there are no seasons, or all is done.
pub fn next_season(
    plan: &Plan,
    campaign: &Campaign,
    experiments: &[Experiment],
    now: Wall,
) -> Option<String> {
    let matrix = scenarios(plan);
    let agenda = Agenda::resumed(plan, &matrix, campaign, experiments);
    let is_allowed = |scenario| fits_season(plan, &matrix[scenario as usize], now, plan.pause);
    let slot = agenda.next_allowed(&is_allowed).or_else(|| agenda.next())?;
    let scenario = &matrix[slot.scenario as usize];
    scenario.season().map(str::to_owned)
}

/// Whether a scenario's season has room at `now` for a rest and then its experiment.
fn fits_season(plan: &Plan, scenario: &Scenario, now: Wall, pause: Span) -> bool {
    let season = season_of(plan, scenario);
    season.is_none_or(|season| season.is_open_for(now, pause + length(scenario)))
}

fn season_of<'a>(plan: &'a Plan, scenario: &Scenario) -> Option<&'a Season> {
    let name = scenario.season()?;
    plan.seasons.iter().find(|season| season.name == name)
}

impl Run<'_, '_> {
    /// The next experiment whose season it is, after waiting for one if need be; `None` when all
    /// is done, or the stop flag is set while waiting.
    pub(super) fn next_in_season(&mut self) -> Result<Option<AgendaSlot>, RunError> {
        loop {
            let next_slot = self
                .agenda
                .next_allowed(&|scenario| self.has_room(scenario, self.plan.pause));
            if next_slot.is_some() || self.participants.stop.is_set() {
                return Ok(next_slot.filter(|_| !self.participants.stop.is_set()));
            }
            let Some((until, season)) = self.next_opening() else {
                return Ok(None);
            };
            let season = season.to_owned();
            self.participants
                .observer
                .report(&CampaignEvent::OutOfSeason {
                    season: &season,
                    until,
                });
            let block = self.agenda.next().map_or(0, |slot| slot.block);
            self.wait_until(block, until)?;
        }
    }

    /// Whether a scenario may begin now and end within its season.
    pub(super) fn is_in_season(&self, scenario: u32) -> bool {
        self.has_room(scenario, Span::ZERO)
    }

    /// Whether its season has room for a rest and then the experiment.
    pub(super) fn has_room(&self, scenario: u32, pause: Span) -> bool {
        let now = self.participants.clock.now();
        fits_season(self.plan, &self.matrix[scenario as usize], now, pause)
    }

    /// When the first scenario that is still open may begin, and its season; `None` if all is done.
    fn next_opening(&self) -> Option<(Wall, &str)> {
        let now = self.participants.clock.now();
        let openings = self.agenda.open_pairs().filter_map(|(_, scenario)| {
            let scenario = &self.matrix[scenario as usize];
            let season = season_of(self.plan, scenario)?;
            let length = self.plan.pause + length(scenario);
            Some((season.next_opening(now, length)?, season.name.as_str()))
        });
        // One that is open now would have been found: this guards against waiting for nothing.
        openings.filter(|(until, _)| *until > now).min()
    }
}
