//! The agreement about a start: all parties of a slot report ready before it begins, or it is missed, with
//! a reason. A missed slot shifts no other.
//!
//! Two state machines without clock or messages of their own. [`StartAgreement`] decides: it is with
//! the controller, or with the party that sends, so that slots need no controller once they are planned.
//! [`SlotEnd`] is with each end, and alone ensures that slots do not overlap. It begins and stops by its
//! own clock, and only while the error bound of that clock is within the guard.

mod slot_end;

use std::collections::BTreeMap;
use std::fmt;

use neph_model::{Span, Wall};

pub use slot_end::{SlotEnd, SlotStep};

/// When a slot begins and ends, on the clock to which all parties know their offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTimes {
    /// Its begin.
    pub start: Wall,
    /// Its end: what runs is stopped then.
    pub end: Wall,
}

/// What keeps slots of one resource from overlapping although clocks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The widest error bound of a clock with which a party may begin.
    pub bound: Span,
    /// Free time between two slots.
    pub between: Span,
    /// So long before its start it is decided whether a slot begins; then the parties hear of it.
    pub notice: Span,
}

/// The guard for parties with these error bounds: one may stop late by its bound and the next begin early
/// by its own, so that the two widest count. `stopping` is how long after its end the last packet of a slot
/// may come, `notice` how long messages take.
pub fn guard_of(bounds: &[Span], stopping: Span, notice: Span) -> Guard {
    let mut descending_bounds: Vec<Span> = bounds.iter().map(|bound| bound.abs()).collect();
    descending_bounds.sort_unstable_by_key(|bound| std::cmp::Reverse(*bound));
    Guard {
        bound: descending_bounds.first().copied().unwrap_or(Span::ZERO),
        between: descending_bounds.iter().take(2).copied().sum::<Span>() + stopping.max(Span::ZERO),
        notice: notice.max(Span::ZERO),
    }
}

/// What a party reports of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartyReport {
    /// It could begin; the error bound of its clock.
    Ready(Span),
    /// It has not ended the slot before.
    Busy,
    /// It began, and the slot is over for it.
    CarriedOut,
    /// It did not begin, or stopped early.
    Refused(MissedReason),
}

/// Why a slot was not carried out by a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedReason {
    /// It sent nothing.
    Silent,
    /// It reported ready too late, by so much.
    Late(Span),
    /// It was not connected when the start was decided.
    Offline,
    /// It had not ended the slot before.
    Busy,
    /// Its clock may be wrong by more than the guard allows; `None`: nothing is known of its clock.
    ClockTooWide(Option<Span>),
    /// The decision to begin did not reach it in time.
    NotNotified,
    /// It could not begin in time: it was suspended or had no CPU. So much after the start.
    Overslept(Span),
    /// It was restarted meanwhile.
    Restarted,
}

/// The reason, after a party's name.
impl fmt::Display for MissedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("did not report"),
            Self::Late(by) => write!(f, "was ready {by} too late"),
            Self::Offline => f.write_str("was not connected"),
            Self::Busy => f.write_str("was busy with the slot before"),
            Self::ClockTooWide(None) => f.write_str("does not know the offset of its clock"),
            Self::ClockTooWide(Some(bound)) => {
                write!(f, "knows the offset of its clock only to within {bound}")
            }
            Self::NotNotified => f.write_str("was not notified in time that the slot begins"),
            Self::Overslept(by) => write!(f, "was suspended until {by} after the start"),
            Self::Restarted => f.write_str("was restarted"),
        }
    }
}

/// A party and why it did not carry out a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingParty {
    /// Its name.
    pub party: String,
    /// Why.
    pub reason: MissedReason,
}

/// What became of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// All parties carried it out.
    CarriedOut,
    /// Not all did: those that did not, by name. None is missing here.
    Missed(Vec<MissingParty>),
}

/// Whether a slot begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartDecision {
    /// It is decided at this time, or when the last party is ready.
    Wait(Wall),
    /// It begins.
    Begin,
    /// It does not.
    Miss,
}

/// What is known of a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartyState {
    NotReported,
    Ready,
    Missed(MissedReason),
    CarriedOut,
}

/// A slot's start, from what its parties report.
#[derive(Clone, Debug)]
pub struct StartAgreement {
    times: SlotTimes,
    guard: Guard,
    parties: BTreeMap<String, PartyState>,
    /// Whether the slot begins, once that is decided.
    begins: Option<bool>,
}

impl StartAgreement {
    /// A slot without any report so far.
    pub fn new(times: SlotTimes, guard: Guard, parties: impl IntoIterator<Item = String>) -> Self {
        let party_states = parties
            .into_iter()
            .map(|party| (party, PartyState::NotReported));
        Self {
            times,
            guard,
            parties: party_states.collect(),
            begins: None,
        }
    }

    /// When it is decided at the latest.
    pub fn deadline(&self) -> Wall {
        self.times.start + -self.guard.notice
    }

    /// Takes note of what a party reported, received `at`. The last report of a party counts until the
    /// decision; after that only what it did. One that is no party of this slot is ignored.
    pub fn record_report(&mut self, party: &str, report: &PartyReport, at: Wall) {
        let is_decided = self.begins.is_some() || at > self.deadline();
        let is_missed = self.begins == Some(false);
        let late_ns = at.unix_nanos().saturating_sub(self.deadline().unix_nanos());
        let Some(state) = self.parties.get_mut(party) else {
            return;
        };
        *state = match (report, *state) {
            // What ended is over, however often it is reported.
            (_, PartyState::CarriedOut) | (PartyReport::CarriedOut, _) => PartyState::CarriedOut,
            // That a party was not notified follows from the decision: it is no reason of its own.
            (PartyReport::Refused(MissedReason::NotNotified), state) if is_missed => state,
            (PartyReport::Refused(reason), _) => PartyState::Missed(*reason),
            (PartyReport::Ready(_), PartyState::NotReported) if is_decided => {
                PartyState::Missed(MissedReason::Late(Span::from_nanos(late_ns)))
            }
            (_, state) if is_decided => state,
            (PartyReport::Ready(bound), _) if *bound > self.guard.bound => {
                PartyState::Missed(MissedReason::ClockTooWide(Some(*bound)))
            }
            (PartyReport::Ready(_), _) => PartyState::Ready,
            (PartyReport::Busy, _) => PartyState::Missed(MissedReason::Busy),
        };
    }

    /// Takes note that a party is not connected any more, before the decision.
    pub fn record_disconnect(&mut self, party: &str) {
        if self.begins.is_none()
            && let Some(state) = self.parties.get_mut(party)
        {
            *state = PartyState::Missed(MissedReason::Offline);
        }
    }

    /// Whether it begins, at `now`. A decision stands.
    pub fn decide(&mut self, now: Wall) -> StartDecision {
        let is_ready = |state: &PartyState| *state == PartyState::Ready;
        let are_all_ready = self.parties.values().all(is_ready);
        if self.begins.is_none() && (are_all_ready || now >= self.deadline()) {
            // What decides may have slept: a decision after the start reaches no party in time.
            self.begins = Some(are_all_ready && now < self.times.start);
        }
        match self.begins {
            None => StartDecision::Wait(self.deadline()),
            Some(true) => StartDecision::Begin,
            Some(false) => StartDecision::Miss,
        }
    }

    /// What became of it, after its end: every party carried it out, or each that did not has a reason.
    pub fn outcome(&self) -> SlotOutcome {
        let has_begun = self.begins == Some(true);
        let not_ready = self.parties.iter().filter_map(|(party, state)| {
            let reason = match state {
                PartyState::Missed(reason) => *reason,
                PartyState::NotReported => MissedReason::Silent,
                PartyState::Ready if has_begun => MissedReason::Silent,
                PartyState::Ready | PartyState::CarriedOut => return None,
            };
            Some(MissingParty {
                party: party.clone(),
                reason,
            })
        });
        let not_ready: Vec<MissingParty> = not_ready.collect();
        let mut states = self.parties.values();
        if states.all(|state| *state == PartyState::CarriedOut) {
            return SlotOutcome::CarriedOut;
        }
        if not_ready.is_empty() {
            // All were ready, and what decides was not there in time.
            let missing = self.parties.keys().map(|party| MissingParty {
                party: party.clone(),
                reason: MissedReason::NotNotified,
            });
            return SlotOutcome::Missed(missing.collect());
        }
        SlotOutcome::Missed(not_ready)
    }
}

#[cfg(test)]
mod tests;
