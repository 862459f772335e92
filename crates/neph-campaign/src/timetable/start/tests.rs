//! The agreement about a start: what each side does with what it hears.

mod simulation;

use neph_model::{ClockOffset, Span, Wall};

use super::*;

const SECOND: Span = Span::from_secs(1);
const BOUND: Span = Span::from_millis(20);

fn at(seconds: i64) -> Wall {
    Wall::from_unix_nanos(0) + SECOND.times(seconds)
}

fn guard() -> Guard {
    guard_of(
        &[BOUND, BOUND, Span::from_millis(5)],
        Span::from_millis(100),
        SECOND.times(2),
    )
}

const TIMES: fn() -> SlotTimes = || SlotTimes {
    start: at(100),
    end: at(220),
};

fn offset_within(bound: Span) -> ClockOffset {
    ClockOffset::new(Span::ZERO, bound)
}

fn agreement() -> StartAgreement {
    StartAgreement::new(TIMES(), guard(), ["ams".to_owned(), "lju".to_owned()])
}

fn reasons(agreement: &StartAgreement) -> Vec<String> {
    match agreement.outcome() {
        SlotOutcome::CarriedOut => Vec::new(),
        SlotOutcome::Missed(parties) => {
            let parties = parties.iter();
            parties
                .map(|not_ready| format!("{} {}", not_ready.party, not_ready.reason))
                .collect()
        }
    }
}

#[test]
fn a_guard_is_the_sum_of_the_two_largest_clock_bounds() {
    let guard = guard();
    assert_eq!(guard.bound, BOUND);
    assert_eq!(guard.between, Span::from_millis(140));
    assert_eq!(guard_of(&[], SECOND, SECOND).between, SECOND);
}

#[test]
fn a_slot_begins_when_both_ends_are_ready_before_its_start() {
    let mut slot = agreement();
    slot.record_report("ams", &PartyReport::Ready(BOUND), at(90));
    assert_eq!(slot.decide(at(91)), StartDecision::Wait(at(98)));
    slot.record_report("lju", &PartyReport::Ready(BOUND), at(97));
    assert_eq!(slot.decide(at(97)), StartDecision::Begin);
    for party in ["ams", "lju"] {
        assert_ne!(slot.outcome(), SlotOutcome::CarriedOut);
        slot.record_report(party, &PartyReport::CarriedOut, at(220));
    }
    assert_eq!(slot.outcome(), SlotOutcome::CarriedOut);
}

#[test]
fn a_missed_slot_has_the_reason_and_the_party() {
    let mut late_slot = agreement();
    late_slot.record_report("ams", &PartyReport::Ready(BOUND), at(90));
    assert_eq!(late_slot.decide(at(98)), StartDecision::Miss);
    late_slot.record_report("lju", &PartyReport::Ready(BOUND), at(101));
    late_slot.record_report(
        "ams",
        &PartyReport::Refused(MissedReason::NotNotified),
        at(102),
    );
    assert_eq!(reasons(&late_slot), ["lju was ready 3.000 s too late"]);
    assert_eq!(late_slot.decide(at(103)), StartDecision::Miss);

    let mut wide_slot = agreement();
    wide_slot.record_report("ams", &PartyReport::Ready(BOUND.times(2)), at(90));
    wide_slot.record_report("lju", &PartyReport::Busy, at(90));
    assert_eq!(wide_slot.decide(at(98)), StartDecision::Miss);
    assert_eq!(
        reasons(&wide_slot),
        [
            "ams knows the offset of its clock only to within 40.00 ms",
            "lju was busy with the slot before"
        ]
    );

    let mut offline_slot = agreement();
    offline_slot.record_report("ams", &PartyReport::Ready(BOUND), at(90));
    offline_slot.record_disconnect("ams");
    assert_eq!(offline_slot.decide(at(98)), StartDecision::Miss);
    assert_eq!(
        reasons(&offline_slot),
        ["ams was not connected", "lju did not report"]
    );

    let mut overslept_slot = agreement();
    overslept_slot.record_report("ams", &PartyReport::Ready(BOUND), at(90));
    overslept_slot.record_report("lju", &PartyReport::Ready(BOUND), at(90));
    assert_eq!(overslept_slot.decide(at(100)), StartDecision::Miss);
    assert_eq!(reasons(&overslept_slot).len(), 2);
}

#[test]
fn a_party_begins_and_stops_by_its_own_clock() {
    // The common clock is 7 s ahead of its own.
    let offset = Some(ClockOffset::new(SECOND.times(7), BOUND));
    let mut party = SlotEnd::new(TIMES(), guard());
    assert_eq!(party.readiness(offset), PartyReport::Ready(BOUND));
    assert_eq!(party.step(at(50), offset), SlotStep::Wait(at(93)));
    party.notify();
    assert_eq!(party.step(at(93), offset), SlotStep::Begin(at(213)));
    assert_eq!(party.readiness(offset), PartyReport::Busy);
    assert_eq!(party.step(at(150), offset), SlotStep::Run(at(213)));
    assert_eq!(
        party.step(at(213), offset),
        SlotStep::Over(PartyReport::CarriedOut)
    );
}

#[test]
fn a_party_without_notification_wakeup_or_clock_does_not_begin() {
    let miss_reason = |mut party: SlotEnd, now, offset| match party.step(now, offset) {
        SlotStep::Over(PartyReport::Refused(reason)) => reason,
        step => panic!("{step:?}"),
    };
    let new_party = || SlotEnd::new(TIMES(), guard());
    let notified_party = || {
        let mut party = new_party();
        party.notify();
        party
    };
    assert_eq!(
        miss_reason(new_party(), at(100), Some(offset_within(BOUND))),
        MissedReason::NotNotified
    );
    let overslept = miss_reason(notified_party(), at(103), Some(offset_within(BOUND)));
    assert_eq!(overslept, MissedReason::Overslept(SECOND.times(3)));
    let wide_bound = BOUND.times(3);
    assert_eq!(
        miss_reason(notified_party(), at(100), Some(offset_within(wide_bound))),
        MissedReason::ClockTooWide(Some(wide_bound))
    );
    assert_eq!(
        miss_reason(notified_party(), at(100), None),
        MissedReason::ClockTooWide(None)
    );
    let restarted = SlotEnd::restarted(TIMES(), guard());
    assert_eq!(
        miss_reason(restarted, at(100), Some(offset_within(BOUND))),
        MissedReason::Restarted
    );
    // One that runs stops when it does not know any more what time it is.
    let mut running = notified_party();
    running.step(at(100), Some(offset_within(BOUND)));
    assert_eq!(
        miss_reason(running, at(120), None),
        MissedReason::ClockTooWide(None)
    );
}
