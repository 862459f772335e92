//! What is counted of questions and answers: how many, and how long the round trips took.

use neph_model::Span;
use neph_stats::Sketches;

use crate::flow::Quantiles;
use crate::sample::Half;

/// Questions, answers and round trips of one pair or of several.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub(super) packets: u64,
    pub(super) asked: u64,
    pub(super) answered: u64,
    /// Answers stamped before their questions.
    pub(super) backwards: u64,
    /// Of each half: of the client's there are some for QUIC alone.
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

impl Counted {
    pub(super) fn trip(&mut self, half: Half, trip: Span) {
        let nanos = u64::try_from(trip.nanos()).unwrap_or(0);
        self.trips.add(half as u8, nanos);
        let sums = &mut self.sums[half as usize];
        sums.n += 1;
        sums.sum = sums.sum.saturating_add(u128::from(nanos));
        sums.squares = sums.squares.saturating_add(u128::from(nanos).pow(2));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.asked += other.asked;
        self.answered += other.answered;
        self.backwards += other.backwards;
        self.trips.merge(&other.trips);
        for (all, sums) in self.sums.iter_mut().zip(&other.sums) {
            all.n += sums.n;
            all.sum = all.sum.saturating_add(sums.sum);
            all.squares = all.squares.saturating_add(sums.squares);
        }
    }

    /// Forgets round trips that are not believed.
    pub(super) fn without_trips(self) -> Self {
        Self {
            trips: Sketches::default(),
            sums: [Sums::default(); 2],
            ..self
        }
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

    /// Answers that are stamped before what was asked: they have no round trip. 0 of QUIC.
    pub const fn backwards(&self) -> u64 {
        self.backwards
    }

    /// Round trips between the point of capture and the end behind `half`, its time to answer
    /// included; of the client's half there are some for QUIC alone.
    pub fn trips(&self, half: Half) -> Option<Quantiles> {
        self.trips.of([half as u8]).as_ref().map(Quantiles::of)
    }

    /// Mean and deviation of the round trips to the server.
    pub fn deviation(&self) -> Option<Deviation> {
        let Sums { n, sum, squares } = self.sums[Half::Server as usize];
        let mean = sum.checked_div(n)?;
        // Times that lie may be so long that even 128 bits do not hold their squares.
        let variance = n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)? / (n * n);
        let span = |nanos: u128| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Some(Deviation {
            mean: span(mean),
            deviation: span(variance.isqrt()),
        })
    }
}
