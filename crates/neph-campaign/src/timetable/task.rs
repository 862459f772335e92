//! A task: what is to be carried out, as far as a timetable cares.

use neph_model::Span;

use super::resource::Claim;

/// Something to be carried out once: how long it takes and what it claims meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    duration: Span,
    guard: Span,
    claims: Vec<Claim>,
}

impl Task {
    /// A task that takes `duration` and claims these resources; one that is claimed several times is
    /// claimed in the strictest of its modes. Negative times count as zero.
    pub fn new(duration: Span, claims: impl IntoIterator<Item = Claim>) -> Self {
        let mut claims: Vec<Claim> = claims.into_iter().collect();
        // By resource, then the strictest mode first.
        claims.sort();
        claims.dedup_by(|later, first| later.resource == first.resource);
        Self {
            duration: duration.max(Span::ZERO),
            guard: Span::ZERO,
            claims,
        }
    }

    /// The same, with its resources kept free for so long after its end: clocks of its ends may differ.
    #[must_use]
    pub fn with_guard(mut self, guard: Span) -> Self {
        self.guard = guard.max(Span::ZERO);
        self
    }

    /// How long it takes.
    pub const fn duration(&self) -> Span {
        self.duration
    }

    /// How long its resources are kept free after it.
    pub const fn guard(&self) -> Span {
        self.guard
    }

    /// How long it has its resources: duration and guard.
    pub fn slot(&self) -> Span {
        self.duration + self.guard
    }

    /// What it claims: each resource once, by resource.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Whether it must not overlap with `other`.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.claims.iter().any(|claim| {
            let mut other_claims = other.claims.iter();
            other_claims.any(|other_claim| {
                claim.resource == other_claim.resource
                    && claim.mode.excludes(other_claim.mode, &claim.resource)
            })
        })
    }
}
