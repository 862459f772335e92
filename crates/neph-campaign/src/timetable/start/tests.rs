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

fn known(bound: Span) -> ClockOffset {
    ClockOffset::new(Span::ZERO, bound)
}

fn agreement() -> Agreement {
    Agreement::new(TIMES(), guard(), ["ams".to_owned(), "lju".to_owned()])
}

fn reasons(agreement: &Agreement) -> Vec<String> {
    match agreement.outcome() {
        Outcome::CarriedOut => Vec::new(),
        Outcome::Missed(parties) => {
            let parties = parties.iter();
            parties
                .map(|not_ready| format!("{} {}", not_ready.party, not_ready.why))
                .collect()
        }
    }
}

#[test]
fn a_guard_is_made_of_the_two_widest_clocks() {
    let guard = guard();
    assert_eq!(guard.bound, BOUND);
    assert_eq!(guard.between, Span::from_millis(140));
    assert_eq!(guard_of(&[], SECOND, SECOND).between, SECOND);
}

#[test]
fn a_slot_begins_when_both_ends_are_ready_before_its_start() {
    let mut slot = agreement();
    slot.hear("ams", &Report::Ready(BOUND), at(90));
    assert_eq!(slot.decide(at(91)), Decision::Wait(at(98)));
    slot.hear("lju", &Report::Ready(BOUND), at(97));
    assert_eq!(slot.decide(at(97)), Decision::Begin);
    for party in ["ams", "lju"] {
        assert_ne!(slot.outcome(), Outcome::CarriedOut);
        slot.hear(party, &Report::CarriedOut, at(220));
    }
    assert_eq!(slot.outcome(), Outcome::CarriedOut);
}

#[test]
fn a_slot_that_does_not_begin_has_the_reason_and_the_party() {
    let mut late = agreement();
    late.hear("ams", &Report::Ready(BOUND), at(90));
    assert_eq!(late.decide(at(98)), Decision::Miss);
    late.hear("lju", &Report::Ready(BOUND), at(101));
    late.hear("ams", &Report::Refused(Missed::NotNotified), at(102));
    assert_eq!(reasons(&late), ["lju was ready 3.000 s too late"]);
    assert_eq!(late.decide(at(103)), Decision::Miss);

    let mut wide = agreement();
    wide.hear("ams", &Report::Ready(BOUND.times(2)), at(90));
    wide.hear("lju", &Report::Busy, at(90));
    assert_eq!(wide.decide(at(98)), Decision::Miss);
    assert_eq!(
        reasons(&wide),
        [
            "ams knows the offset of its clock only to within 40.00 ms",
            "lju was busy with the slot before"
        ]
    );

    let mut offline = agreement();
    offline.hear("ams", &Report::Ready(BOUND), at(90));
    offline.disconnected("ams");
    assert_eq!(offline.decide(at(98)), Decision::Miss);
    assert_eq!(
        reasons(&offline),
        ["ams was not connected", "lju did not report"]
    );

    let mut decider_slept = agreement();
    decider_slept.hear("ams", &Report::Ready(BOUND), at(90));
    decider_slept.hear("lju", &Report::Ready(BOUND), at(90));
    assert_eq!(decider_slept.decide(at(100)), Decision::Miss);
    assert_eq!(reasons(&decider_slept).len(), 2);
}

#[test]
fn a_party_begins_and_stops_by_its_own_clock() {
    // The common clock is 7 s ahead of its own.
    let offset = Some(ClockOffset::new(SECOND.times(7), BOUND));
    let mut party = SlotEnd::new(TIMES(), guard());
    assert_eq!(party.readiness(offset), Report::Ready(BOUND));
    assert_eq!(party.step(at(50), offset), Step::Wait(at(93)));
    party.notify();
    assert_eq!(party.step(at(93), offset), Step::Begin(at(213)));
    assert_eq!(party.readiness(offset), Report::Busy);
    assert_eq!(party.step(at(150), offset), Step::Run(at(213)));
    assert_eq!(party.step(at(213), offset), Step::Over(Report::CarriedOut));
}

#[test]
fn a_party_that_was_not_notified_overslept_or_lost_its_clock_does_not_begin() {
    let missed = |mut party: SlotEnd, now, offset| match party.step(now, offset) {
        Step::Over(Report::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let fresh = || SlotEnd::new(TIMES(), guard());
    let notified = || {
        let mut party = fresh();
        party.notify();
        party
    };
    assert_eq!(
        missed(fresh(), at(100), Some(known(BOUND))),
        Missed::NotNotified
    );
    let slept = missed(notified(), at(103), Some(known(BOUND)));
    assert_eq!(slept, Missed::Overslept(SECOND.times(3)));
    let wide = BOUND.times(3);
    assert_eq!(
        missed(notified(), at(100), Some(known(wide))),
        Missed::ClockTooWide(Some(wide))
    );
    assert_eq!(
        missed(notified(), at(100), None),
        Missed::ClockTooWide(None)
    );
    let restarted = SlotEnd::restarted(TIMES(), guard());
    assert_eq!(
        missed(restarted, at(100), Some(known(BOUND))),
        Missed::Restarted
    );
    // One that runs stops when it does not know any more what time it is.
    let mut running = notified();
    running.step(at(100), Some(known(BOUND)));
    assert_eq!(missed(running, at(120), None), Missed::ClockTooWide(None));
}
