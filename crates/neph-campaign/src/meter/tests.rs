use neph_model::{Instant, Load, Marks, Measure, Seq, Warning};

use super::*;
use crate::plan::Limits;
use crate::warnings::{is_expected, warnings};

fn at(span: Span) -> Instant<neph_model::Local> {
    Instant::from_nanos(span.nanos())
}

/// Message `seq`, sent `late` after its time and replied to `rtt` after that.
fn reply(seq: u64, late: Span, rtt: Span) -> Message {
    let mut marks = Marks::intended_at(Instant::from_nanos(0));
    marks.app_send = Some(at(late));
    marks.nic_tx = marks.app_send;
    marks.peer.rx = Some(Instant::from_nanos(5));
    marks.nic_rx = Some(at(late + rtt));
    marks.app_recv = marks.nic_rx;
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message
}

fn meter_with_replies(late: impl Fn(u64) -> i64, count: u64) -> Meter {
    let mut meter = Meter::new(true);
    for seq in 0..count {
        meter.record_message(&reply(
            seq,
            Span::from_micros(late(seq)),
            Span::from_millis(4),
        ));
    }
    meter
}

const IDLE: Load = Load {
    busy_percent: 10.0,
    steal_percent: 0.5,
    load_average: 0.1,
};

#[test]
fn an_undisturbed_experiment_has_no_warning() {
    let meter = meter_with_replies(|_| 12, 100);
    assert_eq!(warnings(&meter, Some(IDLE), &Limits::default()), []);
    assert_eq!(
        meter.lateness(),
        Some((Span::from_micros(12), Span::from_micros(12)))
    );
    let figures = meter.figures();
    assert_eq!(figures.tally.replies, 100);
    let median = figures.median.expect("there are replies").nanos();
    assert!((4_012_000..4_020_000).contains(&median), "{median}");
    assert_eq!(figures.p99, None);
}

#[test]
fn lateness_is_evaluated_at_p99() {
    // One of a hundred is late: the 99th percentile is the 99th of 100 sorted values.
    let one_late = meter_with_replies(|seq| if seq == 7 { 5_000 } else { 10 }, 100);
    assert_eq!(warnings(&one_late, Some(IDLE), &Limits::default()), []);
    let two_late = meter_with_replies(|seq| if seq < 2 { 5_000 } else { 10 }, 100);
    let expected = Warning::SenderLate {
        p99: Span::from_millis(5),
        bound: Span::from_millis(1),
    };
    assert_eq!(
        warnings(&two_late, Some(IDLE), &Limits::default()),
        std::slice::from_ref(&expected)
    );
    // Below a hundred the greatest decides.
    let few_messages = meter_with_replies(|seq| if seq == 0 { 5_000 } else { 10 }, 20);
    assert_eq!(
        warnings(&few_messages, Some(IDLE), &Limits::default()),
        [expected]
    );
}

#[test]
fn a_busy_host_is_reported() {
    let meter = meter_with_replies(|_| 10, 10);
    let load = Load {
        busy_percent: 97.0,
        steal_percent: 8.0,
        load_average: 4.0,
    };
    let expected = [
        Warning::CpuStolen { percent: 8.0 },
        Warning::CpuSaturated { percent: 97.0 },
    ];
    assert_eq!(warnings(&meter, Some(load), &Limits::default()), expected);
}

#[test]
fn throughput_tests_may_use_all_cpu_time() {
    let busy = Warning::CpuSaturated { percent: 97.0 };
    let throughput: Measure = "tcp throughput".parse().expect("a measurement");
    assert!(is_expected(&busy, &throughput));
    assert!(!is_expected(&busy, &Measure::Messages));
    assert!(!is_expected(
        &Warning::CpuStolen { percent: 8.0 },
        &throughput
    ));
}

#[test]
fn missing_timestamps_lost_connections_and_few_replies_are_warnings() {
    let mut meter = Meter::new(true);
    let mut without_timestamp = reply(0, Span::ZERO, Span::from_millis(1));
    without_timestamp.marks.nic_tx = None;
    meter.record_message(&without_timestamp);
    meter.record_message(&reply(1, Span::ZERO, Span::from_millis(1)));
    let mut lost = reply(2, Span::ZERO, Span::ZERO);
    lost.outcome = Outcome::Lost;
    lost.marks.app_recv = None;
    meter.record_message(&lost);
    meter.record_event(&Event {
        flow: FlowIndex(0),
        at: 1,
        kind: EventKind::ConnectionLost,
        text: String::new(),
    });
    let expected = [
        Warning::TimestampsMissing { percent: 50.0 },
        Warning::Reconnected { times: 1 },
        Warning::FewMessages { replies: 2 },
    ];
    assert_eq!(warnings(&meter, Some(IDLE), &Limits::default()), expected);
    let tally = meter.tally();
    assert_eq!((tally.messages, tally.replies, tally.lost), (3, 2, 1));
}

#[test]
fn lost_messages_rank_slower_than_all_replies() {
    let has_figures = |lost| {
        let mut meter = meter_with_replies(|_| 0, 50);
        for seq in 0..lost {
            let mut message = reply(50 + seq, Span::ZERO, Span::ZERO);
            message.outcome = Outcome::Lost;
            message.marks.app_recv = None;
            meter.record_message(&message);
        }
        let figures = meter.figures();
        (figures.median.is_some(), figures.p99.is_some())
    };
    // Of 99 messages the 50th decides; of 100 the 51st too, which is lost.
    assert_eq!(has_figures(49), (true, false));
    assert_eq!(has_figures(50), (false, false));
}

#[test]
fn only_the_main_flow_is_counted() {
    let mut meter = Meter::new(false);
    let mut echo = reply(0, Span::from_millis(50), Span::from_millis(1));
    echo.flow = FlowIndex(1);
    meter.record_message(&echo);
    assert_eq!((meter.tally(), meter.lateness()), (Tally::default(), None));
}

#[test]
fn final_figures_are_exact_and_running_ones_are_not() {
    let mut meter = Meter::new(true);
    for (seq, nanos) in (0..).zip([76_549_001, 76_488_000, 76_609_000, 76_400_000]) {
        meter.record_message(&reply(seq, Span::ZERO, Span::from_nanos(nanos)));
    }
    let exact = Span::from_nanos(76_518_501);
    assert_eq!(meter.final_figures().median, Some(exact), "half rounds up");
    assert_ne!(meter.figures().median, Some(exact));
}

#[test]
fn quantiles_are_those_of_a_report() {
    let figures_of = |count: u64| {
        let mut meter = Meter::new(true);
        for seq in 0..count {
            let rtt = i64::try_from(seq + 1).expect("few");
            meter.record_message(&reply(seq, Span::ZERO, Span::from_millis(rtt)));
        }
        meter.figures()
    };
    // To three digits: type 7 lies between two messages.
    let assert_near = |span: Option<Span>, expected_millis: f64| {
        let millis = span.expect("there are enough").millis_f64();
        assert!(
            (millis / expected_millis - 1.0).abs() < 1e-3,
            "{millis} {expected_millis}"
        );
    };
    assert_near(figures_of(2).median, 1.5);
    assert_near(figures_of(4).median, 2.5);
    assert_near(figures_of(300).p99, 297.01);
    assert_eq!(figures_of(298).p99, None, "a report refuses it below 299");
    assert!(figures_of(299).p99.is_some());
    assert_eq!(figures_of(0), RunningFigures::default());
}

#[test]
fn unsent_messages_count_as_slower_than_every_reply() {
    let mut meter = meter_with_replies(|_| 0, 5);
    for seq in 5..10 {
        let mut message = reply(seq, Span::ZERO, Span::ZERO);
        message.outcome = Outcome::Failed;
        message.marks = Marks::intended_at(Instant::from_nanos(0));
        meter.record_message(&message);
    }
    assert_eq!(meter.figures().median, None);
}
