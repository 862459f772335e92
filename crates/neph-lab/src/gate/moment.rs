//! A moment in virtual or real time.

use neph_model::Span;

/// A moment in nanoseconds, on the clock of the caller of the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    /// Before every packet.
    pub(crate) const DISTANT_PAST: Self = Self(i64::MIN / 2);
    /// After every packet.
    #[cfg(test)]
    pub(crate) const NEVER: Self = Self(i64::MAX);
}

impl std::ops::Add<Span> for Moment {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.nanos()))
    }
}

impl std::ops::Sub for Moment {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
