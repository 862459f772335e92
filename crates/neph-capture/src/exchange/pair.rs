//! One pair: what of it awaits an answer, and what was counted.

use std::collections::VecDeque;

use neph_model::{Span, Wall};

use super::counted::Counted;
use super::spin::Spin;
use super::{Between, Question, Said};
use crate::sample::Half;
use crate::tcp::Side;

/// Questions of a pair that may await their answers; of more the oldest are forgotten.
const WAITING: usize = 64;

/// What takes longer is no round trip, but a clock that was set.
const LONGEST: Span = Span::from_secs(3600);

/// Who asks whom, and what came of it.
#[derive(Debug)]
pub struct Pair {
    between: Between,
    began: Wall,
    last: Wall,
    /// Since the last look, or ever where nobody looks.
    counted: Counted,
    /// Until the last look.
    before: Option<Box<Counted>>,
    /// Number of the question, and when it passed; no time where it was asked twice.
    waiting: VecDeque<(u32, Option<Wall>)>,
    spin: Spin,
    /// Of QUIC whether packets of the client, and of the server, were captured.
    heard: [bool; 2],
}

impl Pair {
    pub(super) fn begin(at: Wall, between: Between) -> Self {
        Self {
            between,
            began: at,
            last: at,
            counted: Counted::default(),
            before: None,
            waiting: VecDeque::new(),
            spin: Spin::default(),
            heard: [false; 2],
        }
    }

    /// A packet of it. A round trip, if it ends one that is believed.
    pub(super) fn see(&mut self, at: Wall, said: Said) -> Option<(Half, Span)> {
        self.last = self.last.max(at);
        self.counted.packets += 1;
        let (half, trip) = match said {
            Said::Asks(id) => {
                self.asks(at, id);
                return None;
            }
            Said::Answers(id) => (Half::Server, self.answers(at, id)?),
            Said::Spins(side, first) => {
                self.heard[side as usize] = true;
                let half = match side {
                    Side::Client => Half::Client,
                    Side::Server => Half::Server,
                };
                (half, self.spin.see(at, side, first)?)
            }
        };
        if trip > LONGEST {
            return None;
        }
        self.counted.trip(half, trip);
        self.is_believed().then_some((half, trip))
    }

    fn asks(&mut self, at: Wall, id: u32) {
        // Asked again: which of the two is answered cannot be told.
        if let Some((_, since)) = self.waiting.iter_mut().find(|(known, _)| *known == id) {
            *since = None;
            return;
        }
        self.counted.asked += 1;
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((id, Some(at)));
    }

    fn answers(&mut self, at: Wall, id: u32) -> Option<Span> {
        let place = self.waiting.iter().position(|(known, _)| *known == id);
        let (_, since) = place.and_then(|place| self.waiting.remove(place))?;
        self.counted.answered += 1;
        let nanos = at.unix_nanos().saturating_sub(since?.unix_nanos());
        self.counted.backwards += u64::from(nanos < 0);
        (nanos >= 0).then_some(Span::from_nanos(nanos))
    }

    /// What it showed since the last look; `None` if no packet came.
    pub(super) fn look(&mut self) -> Option<Counted> {
        if self.counted.packets == 0 {
            return None;
        }
        let recent = std::mem::take(&mut self.counted);
        self.before.get_or_insert_default().merge(&recent);
        Some(self.believed(recent))
    }

    /// What it showed since the last look, as it ends.
    pub(super) fn rest(&self) -> Counted {
        self.believed(self.counted.clone())
    }

    fn believed(&self, counted: Counted) -> Counted {
        if self.is_believed() {
            counted
        } else {
            counted.without_trips()
        }
    }

    fn is_believed(&self) -> bool {
        self.between.question != Question::Quic || self.spin.is_spinning()
    }

    /// Whether it is of QUIC, and packets of one direction alone were captured: its spin bit tells no
    /// round trip then, however it turns.
    pub fn is_one_direction(&self) -> bool {
        self.between.question == Question::Quic && self.heard != [true; 2]
    }

    /// Who asks whom.
    pub const fn between(&self) -> &Between {
        &self.between
    }

    /// When its first packet was captured.
    pub const fn began(&self) -> Wall {
        self.began
    }

    /// When its last packet was captured.
    pub const fn last(&self) -> Wall {
        self.last
    }

    /// All that it showed.
    pub fn counted(&self) -> Counted {
        let mut all = self.counted.clone();
        if let Some(before) = &self.before {
            all.merge(before);
        }
        self.believed(all)
    }
}
