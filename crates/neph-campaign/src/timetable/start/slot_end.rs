//! One end of a slot: begins and stops by its own clock.

use neph_model::{ClockOffset, Span, Wall};

use super::{Guard, MissedReason, PartyReport, SlotTimes};

/// A party that begins later than this is not in step with the others: its slot is missed.
const MAX_LATENESS: Span = Span::from_secs(1);

/// What a party does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotStep {
    /// Nothing until this time of its own clock.
    Wait(Wall),
    /// Begin now. The sender checks before each packet that it is before this time of its own clock.
    Begin(Wall),
    /// Go on until this time of its own clock.
    Run(Wall),
    /// The slot is over; what is to be reported.
    Over(PartyReport),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Waiting,
    Running,
    CarriedOut,
    Missed(MissedReason),
}

/// One end of a slot. After a restart use [`SlotEnd::restarted`].
#[derive(Clone, Debug)]
pub struct SlotEnd {
    times: SlotTimes,
    guard: Guard,
    is_notified: bool,
    state: SlotState,
}

impl SlotEnd {
    /// Before the slot.
    pub const fn new(times: SlotTimes, guard: Guard) -> Self {
        Self {
            times,
            guard,
            is_notified: false,
            state: SlotState::Waiting,
        }
    }

    /// After a restart: what it was doing is lost, and is not begun once more.
    pub const fn restarted(times: SlotTimes, guard: Guard) -> Self {
        Self {
            times,
            guard,
            is_notified: false,
            state: SlotState::Missed(MissedReason::Restarted),
        }
    }

    /// It hears that the slot begins.
    pub const fn notify(&mut self) {
        self.is_notified = true;
    }

    /// What it can report before the slot; `offset` is the common clock minus its own.
    pub const fn readiness(&self, offset: Option<ClockOffset>) -> PartyReport {
        match (self.state, offset) {
            (SlotState::Missed(reason), _) => PartyReport::Refused(reason),
            (SlotState::CarriedOut, _) => PartyReport::CarriedOut,
            (SlotState::Running, _) => PartyReport::Busy,
            (SlotState::Waiting, None) => PartyReport::Refused(MissedReason::ClockTooWide(None)),
            (SlotState::Waiting, Some(offset)) => PartyReport::Ready(offset.bound()),
        }
    }

    /// What it does at `now` of its own clock; `offset` is the common clock minus its own.
    pub fn step(&mut self, now: Wall, offset: Option<ClockOffset>) -> SlotStep {
        let usable_offset = offset.filter(|offset| offset.bound() <= self.guard.bound);
        let Some(usable_offset) = usable_offset else {
            return self.step_without_clock(now, offset);
        };
        let local_time = |at: Wall| at + -usable_offset.value();
        let (start, end) = (local_time(self.times.start), local_time(self.times.end));
        match self.state {
            SlotState::Waiting if now < start => SlotStep::Wait(start),
            SlotState::Waiting => {
                let lateness = now.unix_nanos().saturating_sub(start.unix_nanos());
                let lateness = Span::from_nanos(lateness);
                if !self.is_notified {
                    return self.miss(MissedReason::NotNotified);
                }
                if lateness > MAX_LATENESS || now >= end {
                    return self.miss(MissedReason::Overslept(lateness));
                }
                self.state = SlotState::Running;
                SlotStep::Begin(end)
            }
            SlotState::Running if now < end => SlotStep::Run(end),
            SlotState::Running => {
                self.state = SlotState::CarriedOut;
                SlotStep::Over(PartyReport::CarriedOut)
            }
            SlotState::CarriedOut => SlotStep::Over(PartyReport::CarriedOut),
            SlotState::Missed(reason) => SlotStep::Over(PartyReport::Refused(reason)),
        }
    }

    /// It does not know what time it is: it does not begin, and stops what it does.
    fn step_without_clock(&mut self, now: Wall, offset: Option<ClockOffset>) -> SlotStep {
        let value = offset.map_or(Span::ZERO, ClockOffset::value);
        let start = self.times.start + -value;
        match self.state {
            // The offset may be known better until then.
            SlotState::Waiting if now < start => SlotStep::Wait(start),
            SlotState::Waiting | SlotState::Running => {
                self.miss(MissedReason::ClockTooWide(offset.map(ClockOffset::bound)))
            }
            SlotState::CarriedOut => SlotStep::Over(PartyReport::CarriedOut),
            SlotState::Missed(reason) => SlotStep::Over(PartyReport::Refused(reason)),
        }
    }

    const fn miss(&mut self, reason: MissedReason) -> SlotStep {
        self.state = SlotState::Missed(reason);
        SlotStep::Over(PartyReport::Refused(reason))
    }
}
