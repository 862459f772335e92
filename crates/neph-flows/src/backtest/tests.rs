use neph_model::Slot;

use super::*;
use crate::world::World;

fn instant(seconds: i64) -> Instant<Local> {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// Flows with these segments: from, until, milliseconds, class.
fn view(until: i64, flows: &[&[(i64, i64, i64, u16)]]) -> FleetView {
    let (digest, _) = World {
        seconds: 1,
        ..World::default()
    }
    .digest();
    let mut view = digest.view();
    (view.from, view.until) = (instant(0), instant(until));
    let flow = |(slot, segments): (u32, &&[(i64, i64, i64, u16)])| FlowHistory {
        slot: Slot(slot),
        source_port: crate::world::port(slot),
        segments: segments
            .iter()
            .map(|&(from, until, base, class)| Segment {
                from: instant(from),
                until: instant(until),
                base: Span::from_millis(base),
                class: Some(class),
            })
            .collect(),
        tally: crate::FlowTally::default(),
        last: crate::LastMessages::default(),
    };
    view.flows = (0..).zip(flows).map(flow).collect();
    let changes = view.flows.iter().flat_map(|flow| {
        let later = flow.segments.windows(2);
        later.map(|pair| PathChange {
            slot: flow.slot,
            source_port: flow.source_port,
            at: pair[1].from,
            reported: pair[1].from,
            before: pair[0].base,
            after: pair[1].base,
            evidence: crate::Evidence::default(),
        })
    });
    view.changes = changes.collect();
    view
}

fn run_backtest(view: &FleetView) -> Vec<Horizon> {
    let flows: Vec<&FlowHistory> = view.flows.iter().collect();
    backtest(view, &flows)
}

#[test]
fn a_change_counts_from_its_report_time() {
    // Two flows change places at 100 s, which was told at once, or half a minute later.
    let improved_flow: &[_] = &[(0, 100, 70, 0), (100, 200, 80, 1)];
    let worsened_flow: &[_] = &[(0, 100, 80, 1), (100, 200, 70, 0)];
    let mut view = view(200, &[improved_flow, worsened_flow]);
    let hit_share = |view: &FleetView| run_backtest(view)[0].on_low.share;
    let immediate_share = hit_share(&view);
    view.changes
        .iter_mut()
        .for_each(|change| change.reported = instant(130));
    let late_share = hit_share(&view);
    // Moments are 5 s apart over 190 s: for 30 s more the port that has left is taken.
    assert!(immediate_share > 0.9, "{immediate_share}");
    assert!(
        (immediate_share - late_share - 6.0 / 38.0).abs() < 0.03,
        "{immediate_share} {late_share}"
    );
}

#[test]
fn a_silent_port_does_not_count_as_low_latency() {
    let silent: &[_] = &[(0, 100, 70, 0)];
    let low: &[_] = &[(20, 200, 70, 0)];
    let high: &[_] = &[(0, 200, 80, 1)];
    let comparisons = run_backtest(&view(200, &[silent, low, high]));
    // The silent one was there first: taken from 95 s on it is gone ten seconds later, until
    // its silence is noticed, a bin later.
    assert!(comparisons[0].on_low.share < 0.93, "{:?}", comparisons[0]);
    assert!(comparisons[0].on_low.share > 0.8, "{:?}", comparisons[0]);
}

#[test]
fn one_late_flow_does_not_delay_the_others() {
    let low: &[_] = &[(0, 200, 70, 0)];
    let high: &[_] = &[(0, 200, 80, 1)];
    let mut flows = vec![low, high, low, high, low, high, low, high, low];
    let horizons_without_late_flow = run_backtest(&view(200, &flows));
    let late: &[_] = &[(199, 200, 70, 0)];
    flows.push(late);
    let horizons_with_late_flow = run_backtest(&view(200, &flows));
    assert_eq!(
        horizons_without_late_flow.len(),
        3,
        "10 s, 30 s and a minute"
    );
    assert_eq!(horizons_with_late_flow.len(), 3);
    assert_eq!(
        horizons_with_late_flow[0].on_low.n,
        horizons_without_late_flow[0].on_low.n
    );
}

#[test]
fn backtest_quantiles_need_enough_times() {
    let low: &[_] = &[(0, 4000, 70, 0)];
    let high: &[_] = &[(0, 4000, 80, 1)];
    let short_backtest = run_backtest(&view(300, &[low, high]));
    assert_eq!(
        (short_backtest[0].on_low.n, short_backtest[0].p99),
        (29, None)
    );
    let gain = short_backtest[0].p50.expect("29 times").gain();
    assert_eq!(gain, Span::ZERO, "half of two flows are low");
    // Five minutes have not room for six minutes one after the other.
    assert_eq!(short_backtest.last().map(|last| last.p50), Some(None));
    let long_backtest = run_backtest(&view(4000, &[low, high]));
    assert_eq!(long_backtest[0].on_low.n, 399);
    let gain = long_backtest[0].p99.expect("399 times").gain();
    assert_eq!(gain, Span::from_millis(10));
}

/// Chance right in a quarter: two times suffice, 2 / (2 + 3.84) is 0.34. In half: four do.
#[test]
fn the_minimum_test_duration_grows_with_the_success_rate_of_chance() {
    let minute = Span::from_secs(60);
    assert_eq!(min_duration(minute, 0.25), Some(minute.times(3)));
    assert_eq!(min_duration(minute, 0.5), Some(minute.times(5)));
    assert_eq!(min_duration(minute, 1.0), None);
}
