//! What holds for all flows together: counted from where each of them was.

use neph_flows::{
    Class, ClassMoves, Curve, CurvePoint, Direction, FlowHistory, FlowLatencyBin, FlowTally,
    Inflation, Latency, PairView, PathChange, Share, ShareBin, Spectrum, SpectrumBin,
};
use neph_model::{Fleet, Instant, Local, Span};
use neph_stats::proportion;

use super::{FleetModel, Path, paths, seconds};

const SPECTRUM_ROW: Span = Span::from_micros(100);
const BIN_WIDTH: Span = Span::from_secs(20);

#[derive(Default)]
pub(super) struct ExpectedView {
    pub(super) classes: Vec<Vec<Class>>,
    pub(super) latency_bins: Vec<Vec<FlowLatencyBin>>,
    pub(super) spectra: Vec<Spectrum>,
    pub(super) pairs: Vec<PairView>,
}

impl ExpectedView {
    pub(super) fn of(
        fleet_model: &FleetModel,
        fleet: &Fleet,
        flows: &[FlowHistory],
        changes: &[PathChange],
    ) -> Self {
        let mut view = Self::default();
        for endpoint in 0..fleet_model.pairs {
            let flows_of_endpoint: Vec<&FlowHistory> = flows
                .iter()
                .filter(|flow| flow.slot.0 % fleet_model.pairs == endpoint)
                .collect();
            let moves: Vec<&PathChange> = changes
                .iter()
                .filter(|change| change.slot.0 % fleet_model.pairs == endpoint)
                .collect();
            let paths = paths(endpoint);
            let classes = classes(&paths, &flows_of_endpoint);
            let shares = shares(fleet_model, &paths, &flows_of_endpoint);
            view.latency_bins
                .push(latency_bins(fleet_model, &paths, &shares, &moves));
            view.spectra
                .push(spectrum(fleet_model, &paths, &flows_of_endpoint));
            let mut pair = pair(fleet_model, &classes, &flows_of_endpoint);
            pair.endpoint
                .clone_from(&fleet.endpoints[endpoint as usize].name);
            pair.changes = moves.len() as u64;
            pair.persistence_forward =
                persistence_curve(fleet_model, &flows_of_endpoint, &moves, Direction::Forward);
            pair.persistence_reverse =
                persistence_curve(fleet_model, &flows_of_endpoint, &moves, Direction::Reverse);
            pair.shares = shares;
            view.pairs.push(pair);
            view.classes.push(classes);
        }
        view
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds of days")]
fn classes(paths: &[Path], flows: &[&FlowHistory]) -> Vec<Class> {
    let mut time = vec![0_i64; paths.len()];
    let (mut left, mut joined) = (vec![0; paths.len()], vec![0; paths.len()]);
    let mut current_flows = vec![0_u32; paths.len()];
    for flow in flows {
        for segment in &flow.segments {
            time[class(segment.class)] += (segment.until - segment.from).nanos();
        }
        for pair in flow.segments.windows(2) {
            left[class(pair[0].class)] += 1;
            joined[class(pair[1].class)] += 1;
        }
        if let Some(end) = flow.segments.last() {
            current_flows[class(end.class)] += 1;
        }
    }
    let total: i64 = time.iter().sum();
    let margin = Span::from_micros(150);
    let classes = paths.iter().enumerate().map(|(index, path)| Class {
        base: path.base,
        range: (path.base - margin, path.base + margin),
        share: time[index] as f64 / total as f64,
        left: left[index],
        joined: joined[index],
        flows: current_flows[index],
        sent: 0,
        lost: 0,
    });
    classes.collect()
}

fn class(class: Option<u16>) -> usize {
    usize::from(class.unwrap())
}

/// Moments from the start on, that far apart, and the index of each flow's segment then.
fn visit_segments(
    fleet_model: &FleetModel,
    step: Span,
    flow: &FlowHistory,
    mut on_segment: impl FnMut(usize, usize),
) {
    let (mut at, mut column, mut segment_index) = (seconds(step.secs_f64() / 2.0), 0, 0);
    while at < fleet_model.end() {
        while segment_index < flow.segments.len() && flow.segments[segment_index].until <= at {
            segment_index += 1;
        }
        if flow
            .segments
            .get(segment_index)
            .is_some_and(|segment| segment.from <= at)
        {
            on_segment(column, segment_index);
        }
        at = at + step;
        column += 1;
    }
}

fn shares(fleet_model: &FleetModel, paths: &[Path], flows: &[&FlowHistory]) -> Vec<ShareBin> {
    let bins = (fleet_model.seconds + 19) / 20;
    let mut share_bins: Vec<ShareBin> = (0..bins)
        .map(|bin| ShareBin {
            from: seconds(0.0) + BIN_WIDTH.times(bin),
            flows: vec![0; paths.len()],
        })
        .collect();
    for flow in flows {
        visit_segments(fleet_model, BIN_WIDTH, flow, |bin, segment_index| {
            share_bins[bin].flows[class(flow.segments[segment_index].class)] += 1;
        });
    }
    share_bins
}

fn latency_bins(
    fleet_model: &FleetModel,
    paths: &[Path],
    shares: &[ShareBin],
    changes: &[&PathChange],
) -> Vec<FlowLatencyBin> {
    let mut random = fleet_model.random();
    let bins = shares.iter().map(|bin| {
        let flows: u32 = bin.flows.iter().sum();
        let mut jitter = || Span::from_nanos(i64::try_from(random.below(120_000)).unwrap());
        let queue = queue(fleet_model, bin.from);
        let base = [0.0, 0.5, 0.95, 0.99, 1.0].map(|p| {
            let mut remaining = p * f64::from(flows);
            let mut base = paths[0].base;
            for (path, count) in paths.iter().zip(&bin.flows) {
                if *count > 0 && remaining > 0.0 {
                    base = path.base;
                }
                remaining -= f64::from(*count);
            }
            base
        });
        let changes_in_bin = changes
            .iter()
            .filter(|change| change.at >= bin.from && change.at < bin.from + BIN_WIDTH);
        FlowLatencyBin {
            from: bin.from,
            flows,
            lost: 0,
            latency: base.map(|delay| Latency::Took(delay + jitter() + queue)),
            changes: Some(u32::try_from(changes_in_bin.count()).unwrap()),
            base: (flows > 0).then_some(base),
        }
    });
    bins.collect()
}

/// Of four milliseconds, in the third fifth of the time, for a fortieth of it.
fn queue(fleet_model: &FleetModel, at: Instant<Local>) -> Span {
    if congested(fleet_model).0 <= at && at < congested(fleet_model).1 {
        Span::from_millis(4)
    } else {
        Span::from_nanos(0)
    }
}

fn congested(fleet_model: &FleetModel) -> (Instant<Local>, Instant<Local>) {
    let start = fleet_model.seconds * 2 / 5;
    let after_start = |second: i64| seconds(0.0) + Span::from_secs(second);
    (
        after_start(start),
        after_start(start + fleet_model.seconds / 40),
    )
}

fn spectrum(fleet_model: &FleetModel, paths: &[Path], flows: &[&FlowHistory]) -> Spectrum {
    let step = Span::from_millis((fleet_model.seconds * 1000 / 600).max(1000));
    let lowest = paths[0].base - Span::from_millis(1);
    let mut cells = std::collections::BTreeMap::new();
    for flow in flows {
        visit_segments(fleet_model, step, flow, |column, segment_index| {
            let row = (flow.segments[segment_index].base - lowest).nanos() / SPECTRUM_ROW.nanos();
            *cells.entry((column, row)).or_insert(0) += 1;
        });
    }
    let bins = cells.into_iter().map(|((column, row), flows)| SpectrumBin {
        column: u32::try_from(column).unwrap(),
        row: u32::try_from(row).unwrap(),
        flows,
    });
    Spectrum {
        from: seconds(0.0),
        step,
        lowest,
        row: SPECTRUM_ROW,
        bins: bins.collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn pair(fleet_model: &FleetModel, classes: &[Class], flows: &[&FlowHistory]) -> PairView {
    let stays = |flow: &&&FlowHistory| {
        let mut stays: Vec<(Span, bool)> = flow
            .segments
            .iter()
            .skip(1)
            .map(|segment| {
                (
                    segment.until - segment.from,
                    segment.until < fleet_model.end(),
                )
            })
            .collect();
        stays.sort_unstable();
        stays
    };
    let all_stays: Vec<(Span, bool)> = flows.iter().flat_map(|flow| stays(&flow)).collect();
    let short_stays = all_stays
        .iter()
        .filter(|(time, ended)| *ended && *time <= Span::from_secs(10));
    let short_stays = share(short_stays.count(), all_stays.len());
    let left: u64 = classes.iter().map(|class| class.left).sum();
    let hours = flows.len() as f64 * fleet_model.seconds as f64 / 3600.0;
    let moved = classes.iter().enumerate().map(|(index, class)| ClassMoves {
        class: u16::try_from(index).unwrap(),
        share: class.share,
        moved: share(
            usize::try_from(class.left).unwrap(),
            usize::try_from(left).unwrap(),
        ),
        per_flow_hour: class.left as f64 / (hours * class.share),
    });
    let (lowest, highest) = (classes[0].base, classes[classes.len() - 1].base);
    let survival_curve = survival_curve(all_stays);
    let mut tally = FlowTally::default();
    for flow in flows {
        tally.add(&flow.tally);
    }
    PairView {
        tally,
        flows: flows.len() as u64,
        watched: Span::from_secs(fleet_model.seconds).times(i64::try_from(flows.len()).unwrap()),
        inflation: Some(Inflation {
            lowest,
            highest,
            ratio: highest.millis_f64() / lowest.millis_f64(),
            flows: flows.len() as u64,
        }),
        between: survival_curve.clone(),
        persistence: survival_curve,
        leave_share: short_stays,
        moved: moved.collect(),
        congested: vec![congested(fleet_model)],
        ..PairView::default()
    }
}

fn share(hits: usize, n: usize) -> Option<Share> {
    let proportion = proportion(hits, n).ok()?;
    Some(Share {
        hits: hits as u64,
        n: n as u64,
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        cases: n as f64,
        share: proportion.share(),
        low: proportion.interval().low,
        high: proportion.interval().high,
    })
}

/// From one change in a direction to the flow's next one in it.
fn persistence_curve(
    fleet_model: &FleetModel,
    flows: &[&FlowHistory],
    changes: &[&PathChange],
    direction: Direction,
) -> Option<Curve> {
    let mut change_times_by_slot = std::collections::BTreeMap::<_, Vec<Instant<Local>>>::new();
    for change in changes {
        if change.evidence.direction == Some(direction) {
            change_times_by_slot
                .entry(change.slot)
                .or_default()
                .push(change.at);
        }
    }
    let mut stays = Vec::new();
    for flow in flows {
        let mut change_times = change_times_by_slot.remove(&flow.slot).unwrap_or_default();
        change_times.push(fleet_model.end());
        let gaps = change_times.windows(2);
        stays.extend(gaps.map(|pair| (pair[1] - pair[0], pair[1] < fleet_model.end())));
    }
    survival_curve(stays)
}

/// Kaplan and Meier's product, with Greenwood's variance.
#[expect(clippy::cast_precision_loss, reason = "counts")]
fn survival_curve(mut stays: Vec<(Span, bool)>) -> Option<Curve> {
    stays.sort_unstable();
    let ended = stays.iter().filter(|(_, ended)| *ended).count();
    if ended == 0 {
        return None;
    }
    let (mut surviving, mut variance) = (1.0, 0.0);
    let mut points = Vec::new();
    for (index, (at, ended)) in stays.iter().enumerate() {
        let at_risk = (stays.len() - index) as f64;
        if *ended {
            surviving *= 1.0 - 1.0 / at_risk;
            variance += 1.0 / (at_risk * (at_risk - 1.0)).max(1.0);
        }
        let margin = 1.96 * surviving * f64::sqrt(variance);
        points.push(CurvePoint {
            at: *at,
            surviving,
            low: (surviving - margin).max(0.0),
            high: (surviving + margin).min(1.0),
            at_risk: (stays.len() - index) as u64,
        });
    }
    let step = points.len().div_ceil(400);
    let last = points.len() - 1;
    let thinned_points = points.into_iter().enumerate();
    let thinned_points = thinned_points.filter(|(index, _)| index % step == 0 || *index == last);
    Some(Curve {
        n: stays.len() as u64,
        ended: ended as u64,
        points: thinned_points.map(|(_, point)| point).collect(),
    })
}
