//! Events that end a running order: end of its lease, the hours, the budget, a revocation.

use std::time::Duration;

use neph_model::{ByteSize, CaptureOrder, Ending, OrderResult, ReflectorOrder, ReflectorSpec};
use neph_sys::clock::RawNanos;
use neph_sys::deadline::{Stopwatch, wait_until};

use super::*;
use crate::LocalExecutor;
use crate::remote::admission::{Admission, Moment};
use crate::remote::{AgentClockOffset, FromAgent, OrderState, Worker};

const POLICY: &str = r#"
version = 1
kinds = ["udp", "reflector", "capture"]
hours = ["08:00-18:00"]
listen = ["9000-9010"]
[targets]
allow = ["127.0.0.0/8"]
[budget]
bytes_per_day = 1000
"#;

const DAY: i64 = 86_400;

/// So many seconds into a day.
fn at(second: i64) -> Moment {
    let nanos = (20_000 * DAY + second) * 1_000_000_000;
    Moment {
        wall: Wall::from_unix_nanos(nanos),
        raw: RawNanos(second * 1_000_000_000),
    }
}

fn reflector(seconds: i64) -> Order {
    Order::Reflector(ReflectorOrder {
        spec: ReflectorSpec::at(([127, 0, 0, 1], 9000).into()),
        duration: Span::from_secs(seconds),
    })
}

const NOON: i64 = 12 * 3600;

/// Admits an order at noon whose lease is so long by the controller's clock, which is at `controller_time`.
fn admit_reflector(
    control: &mut AdmissionControl,
    key: &SigningKey,
    controller_time: Wall,
    lease: Span,
) -> OrderId {
    let grant = Granted {
        agent: name("ams"),
        id: OrderId::new(),
        until: controller_time + lease,
        order: reflector(600),
    };
    let admission = control.admit(grant.id, &key.grant(&grant), at(NOON));
    assert!(matches!(admission, Admission::Granted(..)), "{admission:?}");
    grant.id
}

#[test]
fn a_lease_ends_by_the_controller_clock_despite_the_local_offset() {
    let key = SigningKey::new();
    for seconds in [0, 7 * 3600, -7 * 3600] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut control = open_admission(folder.path(), &key, POLICY);
        let offset = Span::from_secs(seconds);
        let bound = Span::from_millis(1);
        control.set_clock_offset(AgentClockOffset { offset, bound }, at(NOON));
        let controller_time = at(NOON).wall + -offset;
        let id = admit_reflector(&mut control, &key, controller_time, Span::from_secs(300));
        assert_eq!(control.remove_lapsed(at(NOON + 299)), []);
        assert_eq!(
            control.remove_lapsed(at(NOON + 300)),
            [(id, "its lease is over")]
        );
        assert_eq!(
            control.remove_lapsed(at(NOON + 301)),
            [],
            "it is reported once"
        );
        assert_eq!(control.refusals()["lapsed"], 1);
    }
}

#[test]
fn no_order_begins_before_the_clock_offset_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let policy = Policy::parse(&Source::new("agent.toml", POLICY)).expect("a policy");
    let control =
        AdmissionControl::open(folder.path(), name("ams"), &key.certificate, policy, now());
    let mut control = control.expect("admission control");
    let grant = granted(reflector(600), Span::from_secs(300));
    let admission = control.admit(grant.id, &key.grant(&grant), at(NOON));
    assert!(matches!(admission, Admission::Ignored(_)), "{admission:?}");
    assert!(control.refusals().is_empty(), "it comes a second time");
}

#[test]
fn a_lease_is_no_longer_than_the_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let mut control = open_admission(folder.path(), &key, POLICY);
    let id = admit_reflector(
        &mut control,
        &key,
        at(NOON).wall,
        Span::from_secs(100 * DAY),
    );
    assert_eq!(control.remove_lapsed(at(NOON + 600)), []);
    assert_eq!(
        control.remove_lapsed(at(NOON + 800)),
        [(id, "its lease is over")]
    );
}

fn capture() -> Order {
    Order::Capture(CaptureOrder {
        duration: Some(Span::from_secs(1)),
        limit: Some(ByteSize(1 << 20)),
        ..CaptureOrder::of("lo".to_owned(), 96, ByteSize(2 << 20))
    })
}

#[test]
fn a_stepped_clock_is_detected_in_the_next_reading_and_a_slewed_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let mut control = open_admission(folder.path(), &key, POLICY);
    let (offset, bound) = (Span::from_millis(7), Span::from_millis(1));
    control.set_clock_offset(AgentClockOffset { offset, bound }, at(NOON));
    let four_seconds_later = |clock_change: Span| Moment {
        wall: at(NOON + 4).wall + clock_change,
        raw: at(NOON + 4).raw,
    };
    let reading_after = |clock_change| {
        control
            .clock_reading(four_seconds_later(clock_change))
            .expect("it is known")
    };
    for slewed in [
        Span::from_micros(-2_900),
        Span::ZERO,
        Span::from_micros(2_900),
    ] {
        assert_eq!(reading_after(slewed).offset, offset);
    }
    for set in [Span::from_millis(-40), Span::from_millis(200)] {
        assert_eq!(reading_after(set).offset, offset + set);
    }
    assert_eq!(
        reading_after(Span::ZERO).bound,
        bound + Span::from_micros(400)
    );
}

#[test]
fn a_ninth_simultaneous_capture_is_refused_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let mut control = open_admission(folder.path(), &key, POLICY);
    let admit = |control: &mut AdmissionControl| {
        let grant = Granted {
            until: at(NOON).wall + Span::from_secs(60),
            ..granted(capture(), Span::ZERO)
        };
        (
            grant.id,
            control.admit(grant.id, &key.grant(&grant), at(NOON)),
        )
    };
    let running: Vec<OrderId> = (0..8)
        .map(|_| {
            let (id, admission) = admit(&mut control);
            assert!(matches!(admission, Admission::Granted(..)), "{admission:?}");
            id
        })
        .collect();
    let (_, ninth) = admit(&mut control);
    assert!(matches!(ninth, Admission::Ignored(_)), "{ninth:?}");
    assert_eq!(control.refusals()["captures"], 1);
    control.remove_lease(running[0]);
    let (_, second_admission) = admit(&mut control);
    assert!(
        matches!(second_admission, Admission::Granted(..)),
        "{second_admission:?}"
    );
}

#[test]
fn running_orders_end_with_the_policy_hours_and_the_byte_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let mut control = open_admission(folder.path(), &key, POLICY);
    let id = admit_reflector(&mut control, &key, at(NOON).wall, Span::from_secs(600));
    let evening = at(18 * 3600);
    let evening = Moment {
        raw: at(NOON + 1).raw,
        ..evening
    };
    assert_eq!(
        control.remove_lapsed(evening),
        [(id, "the hours of its policy are over")]
    );
    let id = admit_reflector(&mut control, &key, at(NOON).wall, Span::from_secs(600));
    assert_eq!(control.remove_lapsed(at(NOON + 1)), []);
    assert!(control.permit().message(1_000, 0));
    let spent = "the bytes of its policy for today are spent";
    assert_eq!(control.remove_lapsed(at(NOON + 2)), [(id, spent)]);
}

#[test]
fn the_daily_byte_usage_survives_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let open = |moment: Moment| {
        let policy = Policy::parse(&Source::new("agent.toml", POLICY)).expect("a policy");
        let certificate = &key.certificate;
        AdmissionControl::open(folder.path(), name("ams"), certificate, policy, moment.wall)
            .expect("admission control")
    };
    let mut control = open(at(NOON));
    control.permit().spend(700, 0);
    control.save(at(NOON)).expect("writable");
    let mut control = open(at(NOON + 60));
    assert_eq!(control.permit().spent_today(), 700);
    control.save(at(NOON + DAY)).expect("writable");
    assert_eq!(control.permit().spent_today(), 0, "a new day");
    assert_eq!(open(at(NOON + DAY)).permit().spent_today(), 0);
    std::fs::write(folder.path().join("spent"), "what").expect("writable");
    assert!(
        open(at(NOON)).permit().is_spent(),
        "what cannot be read allows nothing"
    );
}

#[test]
fn an_order_ends_within_ten_seconds_of_losing_its_lease() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let policy = POLICY.replace("hours = [\"08:00-18:00\"]\n", "");
    let control = open_admission(folder.path(), &key, &policy);
    let executor = LocalExecutor::new().with_permit(control.permit().clone());
    let mut worker = Worker::new(folder.path(), executor, "1", control).expect("writable");
    let mut spec = ReflectorSpec::at(([127, 0, 0, 1], 9000).into());
    spec.address.set_port(9001);
    let duration = Span::from_secs(3_000);
    let order = Order::Reflector(ReflectorOrder { spec, duration });
    let grant = granted(order, Span::from_secs(1));
    worker.take(begin(&key, &grant)).expect("writable");
    assert_eq!(worker.running(), 1);
    let began = Stopwatch::start();
    let ended = wait_until(Duration::from_secs(11), || {
        worker.work(Span::ZERO).expect("writable");
        worker.running() == 0
    });
    assert!(ended, "{:?}", began.elapsed());
    let answer = worker
        .take(ToAgent::Ask { id: grant.id })
        .expect("writable");
    let Some(FromAgent::State {
        state: OrderState::Ended(ended),
        ..
    }) = answer
    else {
        panic!("{answer:?}")
    };
    assert_eq!(ended.result, Ok(OrderResult::Reflector));
}

#[test]
fn a_revoked_agent_interrupts_its_running_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let policy = POLICY.replace("hours = [\"08:00-18:00\"]\n", "");
    let policy = policy.replace("bytes_per_day = 1000\n", "");
    let control = open_admission(folder.path(), &key, &policy);
    let executor = LocalExecutor::new().with_permit(control.permit().clone());
    let mut worker = Worker::new(folder.path(), executor, "1", control).expect("writable");
    let local_reflector = crate::executor::tests::reflector();
    let mut order = crate::executor::tests::order(&format!("udp://{}", local_reflector.address()));
    (order.scenario.messages, order.scenario.interval) = (600, Span::from_secs(1));
    let grant = granted(Order::Experiments(vec![order]), Span::from_secs(600));
    worker.take(begin(&key, &grant)).expect("writable");
    assert!(worker.is_busy());
    worker.revoked();
    let ended = wait_until(Duration::from_secs(10), || {
        worker.work(Span::ZERO).expect("writable");
        !worker.is_busy()
    });
    assert!(ended, "it goes on");
    let answer = worker
        .take(ToAgent::Ask { id: grant.id })
        .expect("writable");
    let text = format!("{answer:?}");
    assert!(
        text.contains(&format!("{:?}", Ending::Interrupted)),
        "{text}"
    );
}
