//! Which packet back answers which packet there.
//!
//! Owns the rules, by the order at the last point: nearest to who answers, where the fewest are under
//! way. An echo is answered by the reply of its number; a segment by the first that
//! acknowledges its last byte, if it was not sent again and nothing newer was under way; of everything
//! else a packet is answered by the next one back, if none went there in between, and if it is the near
//! end that asks (askers). Fragments behind the
//! first have no ports, by which one asker is told from another: they ask and answer nothing.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::followed::Followed;
use super::packet::{Kind, NONE};
use crate::sequence::Serial;
use crate::ways::Way;

/// A packet there and what answered it, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// The packet that went there.
    pub there: u32,
    /// What came back.
    pub back: u32,
}

/// What awaits an answer: by flow, and an echo by its number too.
type Waiting = HashMap<(u32, u32), (u32, Option<Serial>), RandomState>;

impl Followed {
    /// Round trips between the first point and the far end, in the order of their answers.
    pub fn trips(&self) -> Vec<Trip> {
        let mut trips = Vec::new();
        let mut waiting = Waiting::default();
        let asked_from_far = self.asked_from_far();
        let mut highest: HashMap<u32, Serial, RandomState> = HashMap::default();
        for number in self.order(self.segments()) {
            let packet = self.packets.get(number);
            if packet.kind == Kind::Piece || asked_from_far.contains(&packet.flow) {
                continue;
            }
            let echo = match packet.kind {
                Kind::Echo | Kind::Reply => packet.seq,
                _ => NONE,
            };
            match self.way(number) {
                Some(Way::There) => {
                    let end = Serial(packet.seq).plus(packet.length);
                    let is_segment = matches!(packet.kind, Kind::Acknowledging | Kind::Segment);
                    if packet.kind == Kind::Reply || is_segment && packet.length == 0 {
                        continue;
                    }
                    let place = (packet.flow, echo);
                    let known = highest.get(&packet.flow).copied();
                    if is_segment && known.is_some_and(|known| !end.is_after(known)) {
                        waiting.remove(&place);
                        continue;
                    }
                    if is_segment {
                        highest.insert(packet.flow, end);
                    }
                    waiting.insert(place, (number, is_segment.then_some(end)));
                }
                Some(Way::Back) => {
                    let place = (self.answering[packet.flow as usize], echo);
                    let Some((there, end)) = waiting.get(&place).copied() else {
                        continue;
                    };
                    let is_answer = match end {
                        None => packet.kind != Kind::Echo,
                        Some(end) => {
                            packet.kind == Kind::Acknowledging && Serial(packet.ack).since(end) >= 0
                        }
                    };
                    if is_answer {
                        waiting.remove(&place);
                        let back = number;
                        trips.push(Trip { there, back });
                    }
                }
                None => {}
            }
        }
        trips
    }
}
