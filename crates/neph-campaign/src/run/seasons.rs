//! What may run now: a scenario within its season, and the wait for the next one that opens.

use neph_model::{Span, Wall};

use super::Run;
use crate::agenda::Slot;
use crate::estimate::length;
use crate::observer::News;
use crate::plan::Season;

impl Run<'_, '_> {
    /// The next experiment whose season it is, after waiting for one if need be; `None` when all
    /// is done, or the stop flag is set while waiting.
    pub(super) fn next_in_season(&mut self) -> Option<Slot> {
        loop {
            let found = self
                .agenda
                .next_of(&|scenario| self.fits(scenario, self.plan.pause));
            if found.is_some() || self.crew.stop.is_set() {
                return found.filter(|_| !self.crew.stop.is_set());
            }
            let (until, season) = self.next_opening()?;
            let season = season.to_owned();
            self.crew.observer.tell(&News::OutOfSeason {
                season: &season,
                until,
            });
            self.crew.clock.wait_until(until, self.crew.stop);
        }
    }

    /// Whether a scenario may begin now and end within its season.
    pub(super) fn is_in_season(&self, scenario: u32) -> bool {
        self.fits(scenario, Span::ZERO)
    }

    /// Whether its season has room for a rest and then the experiment.
    pub(super) fn fits(&self, scenario: u32, rest: Span) -> bool {
        let now = self.crew.clock.now();
        let length = rest + length(&self.matrix[scenario as usize]);
        self.season_of(scenario)
            .is_none_or(|season| season.holds(now, length))
    }

    fn season_of(&self, scenario: u32) -> Option<&Season> {
        let name = self.matrix[scenario as usize].parameters.get("season")?;
        let mut seasons = self.plan.seasons.iter();
        seasons.find(|season| season.name == *name)
    }

    /// When the first scenario that is still open may begin, and its season; `None` if all is done.
    fn next_opening(&self) -> Option<(Wall, &str)> {
        let now = self.crew.clock.now();
        let openings = self.agenda.open_pairs().filter_map(|(_, scenario)| {
            let season = self.season_of(scenario)?;
            let length = self.plan.pause + length(&self.matrix[scenario as usize]);
            Some((season.next(now, length)?, season.name.as_str()))
        });
        // One that is open now would have been found: this guards against waiting for nothing.
        openings.filter(|(until, _)| *until > now).min()
    }
}
