//! Which flow has which port: of each lane, and back.

use neph_model::Lane;

use super::rota::Turn;

/// No flow was opened there yet.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Flows {
    lanes: Vec<InLane>,
    /// By port: the latest flow that has or had it.
    ports: Vec<Option<Holder>>,
}

#[derive(Clone, Copy, Debug)]
struct InLane {
    port: u16,
    /// The round in which its flow began.
    began: u64,
    /// The first round that is not told.
    untold: u64,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    lane: Lane,
    began: u64,
}

impl Flows {
    pub(crate) fn new(lanes: u32) -> Self {
        let empty = InLane {
            port: 0,
            began: NONE,
            untold: 0,
        };
        Self {
            lanes: vec![empty; lanes.max(1) as usize],
            ports: vec![None; 1 << 16],
        }
    }

    /// The port of the flow that this turn belongs to, if it has one already.
    pub(crate) fn port(&self, turn: &Turn) -> Option<u16> {
        let lane = self.lanes.get(turn.lane.0 as usize)?;
        (lane.began == turn.began()).then_some(lane.port)
    }

    /// The flow that this turn belongs to has this port.
    pub(crate) fn open(&mut self, turn: &Turn, port: u16) {
        let Some(lane) = self.lanes.get_mut(turn.lane.0 as usize) else {
            return;
        };
        lane.port = port;
        lane.began = turn.began();
        self.ports[usize::from(port)] = Some(Holder {
            lane: turn.lane,
            began: lane.began,
        });
    }

    /// The lane that has or had this port, and the round in which that flow began.
    pub(crate) fn of(&self, port: u16) -> Option<(Lane, u64)> {
        self.ports[usize::from(port)].map(|holder| (holder.lane, holder.began))
    }

    /// The first round of a lane that is not told.
    pub(crate) fn untold(&self, lane: Lane) -> u64 {
        self.lanes
            .get(lane.0 as usize)
            .map_or(0, |lane| lane.untold)
    }

    pub(crate) fn tell(&mut self, lane: Lane) {
        if let Some(lane) = self.lanes.get_mut(lane.0 as usize) {
            lane.untold += 1;
        }
    }
}
