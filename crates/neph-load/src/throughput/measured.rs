//! Results of a throughput test from both ends.

use std::net::SocketAddr;

use neph_model::Wall;
use neph_wire::throughput::{Direction, Intervals, TestRequest};

use super::ends::DirectionEnds;
use super::limit::{Limit, find_limit};
use super::totals::Totals;

/// Results of a throughput test.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The server.
    pub address: SocketAddr,
    /// The parameters.
    pub test_request: TestRequest,
    /// When data began to flow.
    pub started: Wall,
    /// Counts of the client.
    pub client: Intervals,
    /// Counts of the server.
    pub server: Intervals,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

/// Totals of one direction, and its limit.
#[derive(Clone, Debug)]
pub struct DirectionResult {
    /// Up or down.
    pub direction: Direction,
    /// The totals.
    pub totals: Totals,
    /// What limits the throughput.
    pub limit: Limit,
}

impl Measured {
    /// Without counts.
    pub(super) fn begin(address: SocketAddr, test_request: TestRequest, started: Wall) -> Self {
        Self {
            address,
            test_request,
            started,
            client: Intervals::default(),
            server: Intervals::default(),
            is_stopped: false,
            fault: None,
        }
    }

    /// The directions in which data flowed.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let requested = self.test_request.direction;
        let up = requested.has_up().then_some(Direction::Up);
        let down = requested.has_down().then_some(Direction::Down);
        up.into_iter().chain(down)
    }

    /// Counts of the sending end and of the receiving end of a direction.
    pub(super) const fn ends(&self, direction: Direction) -> DirectionEnds<'_> {
        match direction {
            Direction::Up | Direction::Both => DirectionEnds {
                sender: &self.client,
                receiver: &self.server,
            },
            Direction::Down => DirectionEnds {
                sender: &self.server,
                receiver: &self.client,
            },
        }
    }

    /// The result of each direction.
    pub fn results(&self) -> Vec<DirectionResult> {
        let results = self.directions().map(|direction| {
            let totals = Totals::of(self.ends(direction), &self.test_request);
            let limit = find_limit(&totals);
            DirectionResult {
                direction,
                totals,
                limit,
            }
        });
        results.collect()
    }
}
