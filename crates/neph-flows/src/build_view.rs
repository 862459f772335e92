//! The view of a fleet, made from the state of a digest.

use neph_model::{Fleet, Instant, Local, Span};
use neph_stats::{DipNull, Sorted};

use crate::classes::{class_at, class_moves, count_flows, count_lost, count_moves, find_classes};
use crate::compact_rtt::CompactRtt;
use crate::flow_tally::FlowTally;
use crate::known::{DigestState, KnownEndpointFlows};
use crate::latency::Latency;
use crate::latency_bins::{Bin, flow_quantiles};
use crate::loss_by_base::LossByBase;
use crate::observed_time::{ObservedTime, is_too_short};
use crate::pair::{Bimodality, Inflation, PairView, ShareBin};
use crate::persistence::{ChangeKind, stay_curve, stays};
use crate::settings::Settings;
use crate::spectrum::{TimeGrid, spectrum};
use crate::stay::Stay;
use crate::sweep::{Levels, Sweep};
use crate::view::{Class, FleetView, FlowHistory, FlowLatencyBin, PathChange, Spectrum};

/// Resolution of base latencies where flows are counted, as a part of the tolerance.
const CELLS_PER_TOLERANCE: i64 = 16;
/// Minimum number of flows for the test for groups.
const MIN_FLOWS_FOR_DIP_TEST: usize = 8;
/// Null distribution of the dip: number of samples, and maximum number of values in each. Beyond that it only
/// scales with the root of the number.
const DIP_SAMPLES: usize = 1000;
const MAX_DIP_SIZE: usize = 200;
const DIP_SEED: u64 = 1985;

/// The data of the flows to one endpoint.
struct Pair {
    classes: Vec<Class>,
    latency_bins: Vec<FlowLatencyBin>,
    spectrum: Spectrum,
    view: PairView,
}

pub(crate) fn build_view(state: DigestState) -> FleetView {
    let (from, until) = state.extent;
    let mut view = FleetView {
        fleet: state.fleet,
        from,
        until,
        flows: state.flows,
        changes: state.changes,
        classes: Vec::new(),
        latency_bins: Vec::new(),
        spectra: Vec::new(),
        settings: state.settings,
        tally: FlowTally::default(),
        pairs: Vec::new(),
        dissected: Vec::new(),
        advice: Vec::new(),
    };
    for (endpoint, endpoint_flows) in state.flows_by_endpoint.into_iter().enumerate() {
        let silence = endpoint_flows.lost.silence(&view.fleet);
        let mut pair = build_pair_view(&mut view, endpoint, endpoint_flows, state.complete_since);
        pair.view.silence = silence;
        view.tally.add(&pair.view.tally);
        view.classes.push(pair.classes);
        view.latency_bins.push(pair.latency_bins);
        view.spectra.push(pair.spectrum);
        view.pairs.push(pair.view);
    }
    view
}

fn build_pair_view(
    fleet_view: &mut FleetView,
    endpoint: usize,
    endpoint_flows: KnownEndpointFlows,
    complete_since: Option<Instant<Local>>,
) -> Pair {
    let (fleet, settings) = (&fleet_view.fleet, &fleet_view.settings);
    let (from, until, early_stay) = (fleet_view.from, fleet_view.until, fleet_view.soon());
    let is_at_endpoint = |slot| fleet.endpoint_of(slot) == endpoint;
    let changes = changes_of_endpoint(&fleet_view.changes, fleet, endpoint);
    let mut flows: Vec<&mut FlowHistory> = fleet_view
        .flows
        .iter_mut()
        .filter(|flow| is_at_endpoint(flow.slot) && !flow.segments.is_empty())
        .collect();
    let mostly_lost = endpoint_flows.lost.exceeds_half_of(&endpoint_flows.tally);
    let loss_by_base = (!mostly_lost).then_some(&endpoint_flows.loss_by_base);
    let mut classes = classify(&mut flows, settings, loss_by_base);
    let flows: Vec<&FlowHistory> = flows.into_iter().map(|flow| &*flow).collect();
    let (bins, congested) = (&endpoint_flows.bins, &endpoint_flows.congested);
    let observed = ObservedTime::new(&flows, congested, fleet, settings, complete_since);
    let (observed_time, excluded_time) = observed.observed_time(&changes);
    count_moves(&mut classes, &changes);
    count_flows(&mut classes, &flows, until - settings.bin - fleet.interval);
    let sweep = Sweep::from_flows(flows.iter().copied(), sweep_cell(settings));
    let mut latency_bins = build_latency_bins(bins, &sweep, &changes, settings.bin, until);
    clear_incomplete_bins(&mut latency_bins, complete_since);
    let time_grid = TimeGrid {
        from,
        until,
        bin: settings.bin,
        interval: fleet.interval,
    };
    let observable = observed_time - excluded_time.total();
    let moved = class_moves(&classes, &changes, observable, &observed, time_grid);
    let mut view = PairView {
        endpoint: fleet.endpoints[endpoint].name.clone(),
        tally: endpoint_flows.tally,
        flows: flows.len() as u64,
        changes: changes.len() as u64,
        watched: observed_time,
        hidden: excluded_time,
        unexplained: endpoint_flows.unexplained,
        drift: endpoint_flows.drift,
        forgotten: complete_since,
        inflation: compute_inflation(&classes, &flows),
        bimodality: test_bimodality(&flows, (from, until)).filter(|_| !mostly_lost),
        mostly_lost,
        too_short: is_too_short(fleet, settings, until - from),
        moved,
        shares: count_flows_by_class(&classes, &sweep, time_grid),
        congested: endpoint_flows.congested,
        congestion_periods_merged: endpoint_flows.congestion_periods_merged,
        ..PairView::default()
    };
    drop(sweep);
    set_stay_curves(&mut view, &flows, &changes, time_grid, early_stay);
    Pair {
        latency_bins,
        spectrum: spectrum(&flows, time_grid),
        classes,
        view,
    }
}

/// The path changes of flows to one endpoint.
fn changes_of_endpoint<'a>(
    changes: &'a [PathChange],
    fleet: &Fleet,
    endpoint: usize,
) -> Vec<&'a PathChange> {
    let is_at_endpoint = |change: &&PathChange| fleet.endpoint_of(change.slot) == endpoint;
    changes.iter().filter(is_at_endpoint).collect()
}

/// The width of a cell of base latencies in a sweep.
fn sweep_cell(settings: &Settings) -> Span {
    let nanos = settings.detection.tolerance.nanos() / CELLS_PER_TOLERANCE;
    Span::from_nanos(nanos.max(1))
}

/// The classes of some flows with the loss in each; sets the class of each of their segments. `None` without
/// message outcomes, if flows lost most messages.
fn classify(
    flows: &mut [&mut FlowHistory],
    settings: &Settings,
    loss_by_base: Option<&LossByBase>,
) -> Vec<Class> {
    let Some(loss_by_base) = loss_by_base else {
        return Vec::new();
    };
    let mut classes = {
        let flow_refs: Vec<&FlowHistory> = flows.iter().map(|flow| &**flow).collect();
        find_classes(&flow_refs, settings)
    };
    for segment in flows.iter_mut().flat_map(|flow| &mut flow.segments) {
        segment.class = class_at(&classes, segment.base, settings);
    }
    count_lost(&mut classes, loss_by_base, settings);
    classes
}

/// How long flows stayed. Blocks of time are counted from the grid's begin. So live and stored messages give
/// the same result, although their clocks have different origins.
fn set_stay_curves(
    view: &mut PairView,
    flows: &[&FlowHistory],
    changes: &[&PathChange],
    time_grid: TimeGrid,
    stay_horizon: Span,
) {
    // By flow: each slot and port with its changes in order of time.
    let mut by_flow = changes.to_vec();
    by_flow.sort_by_key(|change| (change.slot, change.source_port, change.at));
    let collect_stays = |kind: ChangeKind| -> Vec<Stay> {
        let stays_of_flow =
            |flow: &&FlowHistory| stays(flow, changes_of_flow(&by_flow, flow), kind);
        let mut stays: Vec<Stay> = flows.iter().flat_map(stays_of_flow).collect();
        for stay in &mut stays {
            stay.from = Instant::from_nanos((stay.from - time_grid.from).nanos());
        }
        stays
    };
    let curve_of =
        |kind: ChangeKind| stay_curve(&collect_stays(kind), (time_grid.bin, stay_horizon));
    let points_of = |kind: ChangeKind| curve_of(kind).map(|stay_curve| stay_curve.curve);
    view.between = points_of(ChangeKind::Each);
    let class_curve = curve_of(ChangeKind::ClassChange);
    view.leave_share = class_curve
        .as_ref()
        .and_then(|stay_curve| stay_curve.leave_share);
    view.persistence = class_curve.map(|stay_curve| stay_curve.curve);
    view.persistence_forward = points_of(ChangeKind::Forward);
    view.persistence_reverse = points_of(ChangeKind::Reverse);
}

/// The changes of one flow, from all changes, sorted by slot, port and time.
fn changes_of_flow<'a, 'b>(
    sorted: &'b [&'a PathChange],
    flow: &FlowHistory,
) -> &'b [&'a PathChange] {
    let Some(first) = flow.segments.first() else {
        return &[];
    };
    let flow_key = |at: Instant<Local>| (flow.slot, flow.source_port, at);
    let change_key = |change: &&PathChange| (change.slot, change.source_port, change.at);
    let until = flow.segments.last().map_or(first.until, |last| last.until);
    let begin = sorted.partition_point(|change| change_key(change) <= flow_key(first.from));
    let end = sorted.partition_point(|change| change_key(change) <= flow_key(until));
    &sorted[begin..end.max(begin)]
}

/// The ratio of the highest class to the lowest.
fn compute_inflation(classes: &[Class], flows: &[&FlowHistory]) -> Option<Inflation> {
    let (lowest, highest) = (classes.first()?.base, classes.last()?.base);
    Some(Inflation {
        lowest,
        highest,
        ratio: highest.secs_f64() / lowest.secs_f64().max(1e-9),
        flows: flows.len() as u64,
    })
}

/// Whether the flows' base latencies in the middle of the time could be one group. Uses full precision:
/// rounded values form clusters, which the test takes for groups.
fn test_bimodality(
    flows: &[&FlowHistory],
    (from, until): (Instant<Local>, Instant<Local>),
) -> Option<Bimodality> {
    let middle = from + Span::from_nanos((until - from).nanos() / 2);
    let bases = flows.iter().filter_map(|flow| flow.at(middle));
    let bases = bases.map(|segment| segment.base);
    let (lowest, highest) = (bases.clone().min()?, bases.clone().max()?);
    #[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
    let nanos = bases.map(|base| base.nanos() as f64);
    let mut values: Vec<f64> = nanos.collect();
    let n = values.len();
    if n < MIN_FLOWS_FOR_DIP_TEST {
        return None;
    }
    let dip = neph_stats::dip(Sorted::sort(&mut values).ok()?).ok()?;
    let null_distribution = DipNull::new(n.min(MAX_DIP_SIZE), DIP_SAMPLES, DIP_SEED).ok()?;
    Some(Bimodality {
        dip,
        p: null_distribution.p(dip, n),
        n: n as u64,
        spread: highest - lowest,
    })
}

/// Bins with the base latencies in their middle and their changes.
fn build_latency_bins(
    bins: &[Bin],
    sweep: &Sweep,
    changes: &[&PathChange],
    width: Span,
    until: Instant<Local>,
) -> Vec<FlowLatencyBin> {
    let middle = |bin: &Bin| {
        let length = width.nanos().min((until - bin.from).nanos());
        bin.from + Span::from_nanos(length / 2)
    };
    let bases = sweep.evaluate_at(bins.iter().map(middle), |levels| {
        base_quantiles(levels, sweep)
    });
    let view_bins = bins.iter().zip(bases).map(|(bin, base)| {
        let begin = changes.partition_point(|change| change.at < bin.from);
        let end = changes.partition_point(|change| change.at < bin.from + width);
        FlowLatencyBin {
            from: bin.from,
            flows: bin.flows,
            lost: bin.lost,
            latency: bin.latency.map(|latency| latency.map(CompactRtt::span)),
            changes: Some(u32::try_from(end - begin).unwrap_or(u32::MAX)),
            base,
        }
    });
    view_bins.collect()
}

/// Bins that begin before `complete_since` have an unknown number of changes.
fn clear_incomplete_bins(bins: &mut [FlowLatencyBin], complete_since: Option<Instant<Local>>) {
    for bin in bins
        .iter_mut()
        .filter(|bin| Some(bin.from) <= complete_since)
    {
        (bin.changes, bin.base) = (None, None);
    }
}

fn base_quantiles(levels: &Levels, sweep: &Sweep) -> Option<[Span; 5]> {
    let [low, p50, p95, p99, high] =
        flow_quantiles(&mut base_per_flow(levels, sweep), 0)?.map(Latency::took);
    Some([low?, p50?, p95?, p99?, high?])
}

/// The base latency of each flow, in nanoseconds, ascending.
fn base_per_flow(levels: &Levels, sweep: &Sweep) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    let bases_in_cell = |(cell, flows): (&i64, &u32)| {
        std::iter::repeat_n(sweep.middle(*cell).nanos() as f64, *flows as usize)
    };
    levels.iter().flat_map(bases_in_cell).collect()
}

/// Number of flows in each class, step by step.
fn count_flows_by_class(classes: &[Class], sweep: &Sweep, time_grid: TimeGrid) -> Vec<ShareBin> {
    let (step, columns) = time_grid.columns();
    let middles = time_grid.middles(step, columns);
    let counts = sweep.evaluate_at(middles, |levels| {
        let mut flows = vec![0; classes.len()];
        for (cell, count) in levels {
            let class = crate::classes::nearest_class(classes, sweep.middle(*cell));
            if let Some(flows) = class.and_then(|class| flows.get_mut(class)) {
                *flows += count;
            }
        }
        flows
    });
    let bins = (0..).zip(counts).map(|(column, flows)| ShareBin {
        from: time_grid.from + step.times(column),
        flows,
    });
    bins.collect()
}
