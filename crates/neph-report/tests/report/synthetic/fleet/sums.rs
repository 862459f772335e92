//! What holds for all flows together: counted from where each of them was.

use neph_flows::{
    Class, ClassMoves, Curve, CurvePoint, Direction, FlowHistory, FlowLatencyBin, FlowTally,
    Inflation, Latency, PairView, PathChange, Share, ShareBin, Spectrum, SpectrumBin,
};
use neph_model::{Fleet, Instant, Local, Span};
use neph_stats::proportion;

use super::{Path, World, paths, seconds};

const ROW: Span = Span::from_micros(100);
const BIN: Span = Span::from_secs(20);

#[derive(Default)]
pub(super) struct ExpectedView {
    pub(super) classes: Vec<Vec<Class>>,
    pub(super) latency_bins: Vec<Vec<FlowLatencyBin>>,
    pub(super) spectra: Vec<Spectrum>,
    pub(super) pairs: Vec<PairView>,
}

impl ExpectedView {
    pub(super) fn of(
        world: &World,
        fleet: &Fleet,
        flows: &[FlowHistory],
        changes: &[PathChange],
    ) -> Self {
        let mut view = Self::default();
        for endpoint in 0..world.pairs {
            let flows_of_endpoint: Vec<&FlowHistory> = flows
                .iter()
                .filter(|flow| flow.slot.0 % world.pairs == endpoint)
                .collect();
            let moves: Vec<&PathChange> = changes
                .iter()
                .filter(|change| change.slot.0 % world.pairs == endpoint)
                .collect();
            let paths = paths(endpoint);
            let classes = classes(&paths, &flows_of_endpoint);
            let shares = shares(world, &paths, &flows_of_endpoint);
            view.latency_bins
                .push(latency_bins(world, &paths, &shares, &moves));
            view.spectra
                .push(spectrum(world, &paths, &flows_of_endpoint));
            let mut pair = pair(world, &classes, &flows_of_endpoint);
            pair.endpoint
                .clone_from(&fleet.endpoints[endpoint as usize].name);
            pair.changes = moves.len() as u64;
            pair.persistence_forward =
                directed(world, &flows_of_endpoint, &moves, Direction::Forward);
            pair.persistence_reverse =
                directed(world, &flows_of_endpoint, &moves, Direction::Reverse);
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
    let reach = Span::from_micros(150);
    let classes = paths.iter().enumerate().map(|(index, path)| Class {
        base: path.base,
        range: (path.base - reach, path.base + reach),
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
fn visit(world: &World, step: Span, flow: &FlowHistory, mut see: impl FnMut(usize, usize)) {
    let (mut at, mut column, mut path_index) = (seconds(step.secs_f64() / 2.0), 0, 0);
    while at < world.end() {
        while path_index < flow.segments.len() && flow.segments[path_index].until <= at {
            path_index += 1;
        }
        if flow
            .segments
            .get(path_index)
            .is_some_and(|segment| segment.from <= at)
        {
            see(column, path_index);
        }
        at = at + step;
        column += 1;
    }
}

fn shares(world: &World, paths: &[Path], flows: &[&FlowHistory]) -> Vec<ShareBin> {
    let bins = (world.seconds + 19) / 20;
    let mut share_bins: Vec<ShareBin> = (0..bins)
        .map(|bin| ShareBin {
            from: seconds(0.0) + BIN.times(bin),
            flows: vec![0; paths.len()],
        })
        .collect();
    for flow in flows {
        visit(world, BIN, flow, |bin, path_index| {
            share_bins[bin].flows[class(flow.segments[path_index].class)] += 1;
        });
    }
    share_bins
}

fn latency_bins(
    world: &World,
    paths: &[Path],
    shares: &[ShareBin],
    changes: &[&PathChange],
) -> Vec<FlowLatencyBin> {
    let mut random = world.random();
    let bins = shares.iter().map(|bin| {
        let flows: u32 = bin.flows.iter().sum();
        let mut jitter = || Span::from_nanos(i64::try_from(random.below(120_000)).unwrap());
        let queue = queue(world, bin.from);
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
        let within = changes
            .iter()
            .filter(|change| change.at >= bin.from && change.at < bin.from + BIN);
        FlowLatencyBin {
            from: bin.from,
            flows,
            lost: 0,
            latency: base.map(|delay| Latency::Took(delay + jitter() + queue)),
            changes: Some(u32::try_from(within.count()).unwrap()),
            base: (flows > 0).then_some(base),
        }
    });
    bins.collect()
}

/// Of four milliseconds, in the third fifth of the time, for a fortieth of it.
fn queue(world: &World, at: Instant<Local>) -> Span {
    if congested(world).0 <= at && at < congested(world).1 {
        Span::from_millis(4)
    } else {
        Span::from_nanos(0)
    }
}

fn congested(world: &World) -> (Instant<Local>, Instant<Local>) {
    let start = world.seconds * 2 / 5;
    let after_start = |second: i64| seconds(0.0) + Span::from_secs(second);
    (after_start(start), after_start(start + world.seconds / 40))
}

fn spectrum(world: &World, paths: &[Path], flows: &[&FlowHistory]) -> Spectrum {
    let step = Span::from_millis((world.seconds * 1000 / 600).max(1000));
    let lowest = paths[0].base - Span::from_millis(1);
    let mut cells = std::collections::BTreeMap::new();
    for flow in flows {
        visit(world, step, flow, |column, path_index| {
            let row = (flow.segments[path_index].base - lowest).nanos() / ROW.nanos();
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
        row: ROW,
        bins: bins.collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn pair(world: &World, classes: &[Class], flows: &[&FlowHistory]) -> PairView {
    let stays = |flow: &&&FlowHistory| {
        let mut stays: Vec<(Span, bool)> = flow
            .segments
            .iter()
            .skip(1)
            .map(|segment| (segment.until - segment.from, segment.until < world.end()))
            .collect();
        stays.sort_unstable();
        stays
    };
    let all_stays: Vec<(Span, bool)> = flows.iter().flat_map(|flow| stays(&flow)).collect();
    let soon = all_stays
        .iter()
        .filter(|(time, ended)| *ended && *time <= Span::from_secs(10));
    let soon = share(soon.count(), all_stays.len());
    let left: u64 = classes.iter().map(|class| class.left).sum();
    let hours = flows.len() as f64 * world.seconds as f64 / 3600.0;
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
    let curve = curve(all_stays);
    let mut tally = FlowTally::default();
    for flow in flows {
        tally.add(&flow.tally);
    }
    PairView {
        tally,
        flows: flows.len() as u64,
        watched: Span::from_secs(world.seconds).times(i64::try_from(flows.len()).unwrap()),
        inflation: Some(Inflation {
            lowest,
            highest,
            ratio: highest.millis_f64() / lowest.millis_f64(),
            flows: flows.len() as u64,
        }),
        between: curve.clone(),
        persistence: curve,
        leave_share: soon,
        moved: moved.collect(),
        congested: vec![congested(world)],
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
fn directed(
    world: &World,
    flows: &[&FlowHistory],
    changes: &[&PathChange],
    direction: Direction,
) -> Option<Curve> {
    let mut moments = std::collections::BTreeMap::<_, Vec<Instant<Local>>>::new();
    for change in changes {
        if change.evidence.direction == Some(direction) {
            moments.entry(change.slot).or_default().push(change.at);
        }
    }
    let mut stays = Vec::new();
    for flow in flows {
        let mut flows_of_endpoint = moments.remove(&flow.slot).unwrap_or_default();
        flows_of_endpoint.push(world.end());
        let gaps = flows_of_endpoint.windows(2);
        stays.extend(gaps.map(|pair| (pair[1] - pair[0], pair[1] < world.end())));
    }
    curve(stays)
}

/// Kaplan and Meier's product, with Greenwood's variance.
#[expect(clippy::cast_precision_loss, reason = "counts")]
fn curve(mut stays: Vec<(Span, bool)>) -> Option<Curve> {
    stays.sort_unstable();
    let ended = stays.iter().filter(|(_, ended)| *ended).count();
    if ended == 0 {
        return None;
    }
    let (mut surviving, mut variance) = (1.0, 0.0);
    let mut points = Vec::new();
    for (index, (at, ended)) in stays.iter().enumerate() {
        let risk = (stays.len() - index) as f64;
        if *ended {
            surviving *= 1.0 - 1.0 / risk;
            variance += 1.0 / (risk * (risk - 1.0)).max(1.0);
        }
        let reach = 1.96 * surviving * f64::sqrt(variance);
        points.push(CurvePoint {
            at: *at,
            surviving,
            low: (surviving - reach).max(0.0),
            high: (surviving + reach).min(1.0),
            at_risk: (stays.len() - index) as u64,
        });
    }
    let every = points.len().div_ceil(400);
    let last = points.len() - 1;
    let thinned_points = points.into_iter().enumerate();
    let thinned_points = thinned_points.filter(|(index, _)| index % every == 0 || *index == last);
    Some(Curve {
        n: stays.len() as u64,
        ended: ended as u64,
        points: thinned_points.map(|(_, point)| point).collect(),
    })
}
