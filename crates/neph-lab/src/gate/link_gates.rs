//! The gates of a link, one for each direction.

use super::{Change, Gate, Shape};
use crate::direction::Direction;

/// The gates from `a` to `b` and from `b` to `a`.
pub(crate) fn gates_of_link(shapes: &[Shape; 2], schedule: &[Change], seed: u64) -> [Gate; 2] {
    // The directions must not draw the same outcomes.
    let seeds = [seed, !seed];
    Direction::BOTH.map(|direction| {
        let is_affected = |change: &Change| change.direction.is_none_or(|only| only == direction);
        let changes = (0..).zip(schedule);
        let changes = changes.filter(|(_, change)| is_affected(change));
        let changes = changes.map(|(number, change)| (number, change.clone()));
        let index = direction.index();
        Gate::with_schedule(shapes[index].clone(), changes.collect(), seeds[index])
    })
}
