//! One pair: what of it awaits an answer, and what was counted.

use std::collections::VecDeque;

use neph_model::{Span, Wall};
use neph_stats::Sketches;

use super::spin::Spin;
use super::{Between, Question, Said};
use crate::flow::Quantiles;
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
    packets: u64,
    asked: u64,
    answered: u64,
    /// Number of the question, and when it passed; no time where it was asked twice.
    waiting: VecDeque<(u32, Option<Wall>)>,
    spin: Spin,
    /// Of the way to each side and back: of the client's there is one for QUIC alone.
    trips: Sketches,
    sums: [Sums; 2],
}

/// For the mean, and how far from it round trips lie.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: u128,
    sum: u128,
    squares: u128,
}

/// Mean and deviation as ping tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviation {
    /// The mean.
    pub mean: Span,
    /// The standard deviation of all, not of a sample.
    pub deviation: Span,
}

impl Pair {
    pub(super) fn begin(at: Wall, between: Between) -> Self {
        Self {
            between,
            began: at,
            last: at,
            packets: 0,
            asked: 0,
            answered: 0,
            waiting: VecDeque::new(),
            spin: Spin::default(),
            trips: Sketches::default(),
            sums: [Sums::default(); 2],
        }
    }

    pub(super) fn see(&mut self, at: Wall, said: Said) {
        self.last = self.last.max(at);
        self.packets += 1;
        match said {
            Said::Asks(id) => self.asks(at, id),
            Said::Answers(id) => self.answers(at, id),
            Said::Spins(side, first) => {
                if let Some(trip) = self.spin.see(at, side, first) {
                    self.count(side, trip);
                }
            }
        }
    }

    fn asks(&mut self, at: Wall, id: u32) {
        // Asked again: which of the two is answered cannot be told.
        if let Some((_, since)) = self.waiting.iter_mut().find(|(known, _)| *known == id) {
            *since = None;
            return;
        }
        self.asked += 1;
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((id, Some(at)));
    }

    fn answers(&mut self, at: Wall, id: u32) {
        let place = self.waiting.iter().position(|(known, _)| *known == id);
        let Some((_, since)) = place.and_then(|place| self.waiting.remove(place)) else {
            return;
        };
        self.answered += 1;
        let nanos = since.map_or(-1, |since| {
            at.unix_nanos().saturating_sub(since.unix_nanos())
        });
        if nanos >= 0 {
            self.count(Side::Server, Span::from_nanos(nanos));
        }
    }

    fn count(&mut self, side: Side, trip: Span) {
        if trip > LONGEST {
            return;
        }
        let nanos = u64::try_from(trip.nanos()).unwrap_or(0);
        self.trips.add(side as u8, nanos);
        let sums = &mut self.sums[side as usize];
        sums.n += 1;
        sums.sum += u128::from(nanos);
        sums.squares += u128::from(nanos).pow(2);
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

    /// Packets of both sides.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Questions, each counted once however often it was asked; 0 of QUIC.
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// Questions that were answered; 0 of QUIC.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// Round trips between the point of capture and the server, its time to answer included.
    pub fn trips(&self) -> Option<Quantiles> {
        self.of(Side::Server)
    }

    /// Those between the point of capture and the client: of QUIC alone.
    pub fn clients_trips(&self) -> Option<Quantiles> {
        self.of(Side::Client)
    }

    /// Mean and deviation of the round trips to the server.
    pub fn deviation(&self) -> Option<Deviation> {
        self.trips()?;
        let Sums { n, sum, squares } = self.sums[Side::Server as usize];
        let mean = sum / n;
        // Times that lie may be so long that even 128 bits do not hold their squares.
        let variance = n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)? / (n * n);
        let span = |nanos: u128| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Some(Deviation {
            mean: span(mean),
            deviation: span(variance.isqrt()),
        })
    }

    fn of(&self, side: Side) -> Option<Quantiles> {
        if self.between.question == Question::Quic && !self.spin.is_spinning() {
            return None;
        }
        self.trips.of([side as u8]).as_ref().map(Quantiles::of)
    }
}
