//! What both ends of a throughput test counted.

use std::net::SocketAddr;

use neph_model::Wall;
use neph_wire::throughput::{Ask, Direction, Intervals};

use super::ends::Ends;
use super::limit::{Limit, judge};
use super::totals::Totals;

/// A throughput test that was carried out.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The server.
    pub address: SocketAddr,
    /// What was asked for.
    pub ask: Ask,
    /// When data began to flow.
    pub started: Wall,
    /// What the client counted.
    pub client: Intervals,
    /// What the server counted.
    pub server: Intervals,
    /// It was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

/// One direction as a whole, and what limits it.
#[derive(Clone, Debug)]
pub struct DirectionResult {
    /// Up or down.
    pub direction: Direction,
    /// What was counted.
    pub totals: Totals,
    /// Why it was not more.
    pub limit: Limit,
}

impl Measured {
    /// Nothing was counted yet.
    pub(super) fn begin(address: SocketAddr, ask: Ask, started: Wall) -> Self {
        Self {
            address,
            ask,
            started,
            client: Intervals::default(),
            server: Intervals::default(),
            is_stopped: false,
            fault: None,
        }
    }

    /// The directions in which data flowed.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let asked = self.ask.direction;
        let up = asked.has_up().then_some(Direction::Up);
        let down = asked.has_down().then_some(Direction::Down);
        up.into_iter().chain(down)
    }

    /// What the sending end of a direction counted, and what the receiving end did.
    pub(super) const fn ends(&self, direction: Direction) -> Ends<'_> {
        match direction {
            Direction::Up | Direction::Both => Ends {
                sender: &self.client,
                receiver: &self.server,
            },
            Direction::Down => Ends {
                sender: &self.server,
                receiver: &self.client,
            },
        }
    }

    /// Each direction as a whole.
    pub fn results(&self) -> Vec<DirectionResult> {
        let results = self.directions().map(|direction| {
            let totals = Totals::of(self.ends(direction), &self.ask);
            let limit = judge(&totals);
            DirectionResult {
                direction,
                totals,
                limit,
            }
        });
        results.collect()
    }
}
