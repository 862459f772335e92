use super::*;

const MS: i64 = 1_000_000;
const S: i64 = 1000 * MS;

/// One flow, 5 samples a second, at these levels for these many seconds.
fn alone(levels: &[(i64, i64)]) -> Vec<LevelDetection> {
    let mut fleet = FleetBase::new(FleetDetectionSettings::default());
    let mut at = 0;
    for &(level, seconds) in levels {
        for _ in 0..seconds * 5 {
            fleet.push(0, at, level * MS + at / 200 % 7);
            at += S / 5;
        }
    }
    fleet.finish();
    std::iter::from_fn(|| fleet.next_detection().map(|t| t.detection)).collect()
}

#[test]
fn a_single_quiet_flow_reports_its_changes_after_few_samples() {
    let detections = alone(&[(80, 60), (90, 60), (80, 60)]);
    let findings: Vec<_> = detections.iter().map(|t| (t.finding, t.at / S)).collect();
    let wanted = [
        (Finding::First, 0),
        (Finding::Change, 60),
        (Finding::Change, 120),
    ];
    assert_eq!(findings, wanted);
    let samples = |detection: &LevelDetection| (detection.certain - detection.at) / (S / 5);
    assert!(
        (4..12).contains(&samples(&detections[1])),
        "{:?}",
        detections[1]
    );
    assert!(
        samples(&detections[2]) < 4,
        "it was there before: {:?}",
        detections[2]
    );
}

/// 20 ms more within 4 s, for 20 s.
#[test]
fn a_growing_queue_of_one_flow_is_no_change() {
    let steps = |from: i64, step: i64| (1..20).map(move |i| (from + step * i, 1));
    let mut levels = vec![(80, 60)];
    levels.extend(steps(80, 5).take(4));
    levels.push((100, 20));
    levels.extend(steps(100, -5).take(3));
    levels.push((80, 60));
    assert_eq!(alone(&levels).len(), 1, "{:?}", alone(&levels));
}

#[test]
fn a_replaced_flow_in_a_slot_is_a_new_flow() {
    let mut fleet = FleetBase::new(FleetDetectionSettings::default());
    for i in 0..50 {
        fleet.push(0, i * S / 5, 80 * MS);
    }
    fleet.restart(0, 10 * S);
    for i in 50..100 {
        fleet.push(0, i * S / 5, 95 * MS);
    }
    fleet.finish();
    let detections: Vec<_> = std::iter::from_fn(|| fleet.next_detection()).collect();
    let firsts = detections
        .iter()
        .map(|t| (t.nth, t.detection.finding, t.detection.after));
    let wanted = [(0, Finding::First, 80 * MS), (1, Finding::First, 95 * MS)];
    assert!(firsts.eq(wanted), "{detections:?}");
    assert_eq!((fleet.nth(0), fleet.base(0)), (1, Some(95 * MS)));
    assert_eq!(fleet.base(7), None);
}

/// 8 ms more for everybody, from 40 s to 48 s.
#[test]
fn a_queue_shared_by_all_flows_is_reported_with_its_time() {
    let mut fleet = FleetBase::new(FleetDetectionSettings::default());
    for i in 0..400_i64 {
        for flow in 0..64_u32 {
            let queue = if (200..240).contains(&i) { 8 } else { 0 };
            let at = i * S / 5 + i64::from(flow) * MS;
            fleet.push(flow, at, (80 + queue) * MS);
        }
    }
    fleet.finish();
    let changes = std::iter::from_fn(|| fleet.next_detection())
        .filter(|t| t.detection.finding == Finding::Change);
    assert_eq!(changes.count(), 0);
    let [(from, until)] = fleet.queued() else {
        panic!("one queue: {:?}", fleet.queued());
    };
    assert!((from - 40 * S).abs() < S / 2, "{from}");
    assert!((until - 48 * S).abs() < S / 2, "{until}");
}

/// All flows of a pair with one path move to another: no queue stands for half a minute.
#[test]
fn a_permanent_shift_of_all_flows_is_reported_as_changes() {
    let mut fleet = FleetBase::new(FleetDetectionSettings::default());
    for i in 0..600_i64 {
        for flow in 0..64_u32 {
            let level = if i < 200 { 80 } else { 84 };
            let at = i * S / 5 + i64::from(flow) * MS;
            fleet.push(flow, at, level * MS);
        }
    }
    fleet.finish();
    let detections: Vec<_> = std::iter::from_fn(|| fleet.next_detection()).collect();
    let changes: Vec<_> = detections
        .iter()
        .filter(|t| t.detection.finding == Finding::Change)
        .collect();
    assert_eq!(fleet.queued(), [], "it was no queue");
    assert_eq!(changes.len(), 64);
    assert!(
        changes.iter().all(|c| (c.detection.at - 40 * S).abs() < S),
        "dated well"
    );
    assert!((0..64).all(|flow| fleet.base(flow) == Some(84 * MS)));
}
