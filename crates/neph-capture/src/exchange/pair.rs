//! One pair: what of it awaits an answer, and what was counted.

use neph_model::{Span, Wall};

use super::counted::Counted;
use super::spin::Spin;
use super::waiting::{Asked, Found, Numbered, Questions};
use super::{Answered, Between, Question, Said};
use crate::sample::Half;
use crate::tcp::Side;

/// A ping is sent once: one with the number and content of another that came soon stands in the capture twice.
const PING_AGAIN: Span = Span::from_secs(1);
/// Resolvers ask again under the same number for so long; later it is another question.
const DNS_AGAIN: Span = Span::from_secs(30);
/// Round trips by the spin bit that are kept until it is believed.
const UNBELIEVED: usize = 64;

/// What takes longer is no round trip, but a clock that was set.
const LONGEST: Span = Span::from_secs(3600);

/// Who asks whom, and what came of it.
#[derive(Debug)]
pub struct Pair {
    between: Between,
    /// The other direction, where it travels in another VLAN or tunnel.
    pub(super) other: Option<Box<Between>>,
    began: Wall,
    last: Wall,
    /// Since the last look, or ever where nobody looks.
    counted: Counted,
    /// Until the last look.
    before: Option<Box<Counted>>,
    questions: Questions,
    spin: Spin,
    /// Round trips by the spin bit, while it is not believed.
    unbelieved: Vec<Answered>,
    /// Whether packets of the client, and of the server, were captured.
    heard: [bool; 2],
}

impl Pair {
    pub(super) fn begin(at: Wall, between: Between) -> Self {
        Self {
            between,
            other: None,
            began: at,
            last: at,
            counted: Counted::default(),
            before: None,
            questions: Questions::default(),
            spin: Spin::default(),
            unbelieved: Vec::new(),
            heard: [false; 2],
        }
    }

    /// A packet of it. Hands out the round trips that it shows, once they are believed.
    pub(super) fn see(&mut self, at: Wall, said: Said, found: &mut impl FnMut(&Between, Answered)) {
        self.last = self.last.max(at);
        self.counted.packets += 1;
        let trip = match said {
            Said::Asks(of) => {
                self.heard[Side::Client as usize] = true;
                return self.asks(at, of);
            }
            Said::Answers(of) => {
                self.heard[Side::Server as usize] = true;
                self.answers(at, of).map(|trip| (Half::Server, trip))
            }
            Said::Spins(side, first) => {
                self.heard[side as usize] = true;
                let trip = self.spin.see(at, side, first);
                trip.map(|trip| (side.half(), (trip, 1)))
            }
        };
        let Some((half, (round_trip, weight))) = trip.filter(|(_, (trip, _))| *trip <= LONGEST)
        else {
            return;
        };
        self.counted.trip(half, round_trip, weight);
        let answered = Answered {
            at,
            half,
            round_trip,
        };
        if self.is_believed() {
            for one in self.unbelieved.drain(..) {
                found(&self.between, one);
            }
            found(&self.between, answered);
        } else if self.unbelieved.len() < UNBELIEVED {
            self.unbelieved.push(answered);
        }
    }

    fn asks(&mut self, at: Wall, of: Numbered) {
        let again = match self.between.question {
            Question::Ping => PING_AGAIN,
            Question::Dns | Question::Quic => DNS_AGAIN,
        };
        self.counted.asked += u64::from(self.questions.ask(at, of, again) == Asked::Another);
        self.counted.not_followed += self.questions.take_left_out();
    }

    /// The round trip, and how many it stands for.
    fn answers(&mut self, at: Wall, of: Numbered) -> Option<(Span, u64)> {
        let (since, weight) = match self.questions.answer(of) {
            Found::Question(since, weight) => (since, weight),
            Found::NotFollowed => return None,
            Found::Nothing => {
                self.counted.unasked += 1;
                return None;
            }
        };
        self.counted.answered += 1;
        let nanos = at.unix_nanos().saturating_sub(since?.unix_nanos());
        self.counted.backwards += u64::from(nanos < 0);
        (nanos >= 0).then_some((Span::from_nanos(nanos), weight))
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

    /// Whether packets of one direction alone were captured: then it has no round trip.
    pub fn is_one_direction(&self) -> bool {
        self.heard != [true; 2]
    }

    /// Whether nothing of this direction was seen, and it answers what the other one shows.
    pub(super) fn is_mirrored_by(&self, said: Said) -> bool {
        let (side, fits) = match said {
            Said::Asks(_) => return false,
            Said::Answers(of) => (Side::Server, self.questions.awaits(of)),
            Said::Spins(side, _) => (side, true),
        };
        self.other.is_none() && fits && !self.heard[side as usize]
    }

    /// The other direction, where it travels in another VLAN or tunnel.
    pub fn other(&self) -> Option<&Between> {
        self.other.as_deref()
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
