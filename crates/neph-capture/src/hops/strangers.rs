//! Packets of hosts of which none passed both points of a segment, beside what passed, and what both
//! points show under different names.
//!
//! Owns the counts. Does not own knowing what was renamed (renamed).

use super::followed::Followed;
use super::renamed::Called;

/// What both points of a segment show of hosts of which none passed both, and of flows that one of them
/// shows under other addresses or ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strangers {
    /// Packets at the first point, of hosts of which none passed both.
    pub here: u64,
    /// And at the second.
    pub there: u64,
    /// Packets that passed both.
    pub met: u64,
    /// Packets at the second that the first shows under other addresses or ports, be it that others of
    /// their hosts passed both.
    pub renamed: u64,
    /// Of names that are others at the second point those of the most packets: at the first point,
    /// and at the second.
    pub name: Option<(Called, Called)>,
    /// Whether others, that passed both points as they are, have these names.
    pub is_shared: [bool; 2],
}

impl Followed {
    /// Of a segment.
    pub fn strangers(&self, segment: usize) -> Strangers {
        let at = |point| {
            let order = self.order(point);
            order
                .filter(move |number| !self.crosses[segment][self.between(*number).0])
                .count() as u64
        };
        let renamed = self.renamed.get(segment);
        Strangers {
            here: at(segment),
            there: at(segment + 1),
            met: self.passed(segment, segment + 1).count() as u64,
            renamed: renamed.map_or(0, |renamed| renamed.packets),
            name: renamed.and_then(|renamed| renamed.name),
            is_shared: renamed.map_or([false; 2], |renamed| renamed.is_shared),
        }
    }
}
