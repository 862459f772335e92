//! Figures of fleets: thousands of flows, their base latencies, path changes, and which flow got which.
//!
//! Every figure is drawn from a [`FleetView`](neph_flows::FleetView), which already holds the
//! results; only the last one is drawn from routes. Where a pair was measured in several blocks, curves are
//! the median over blocks with a band; panels over time show each block.

mod cells;
mod change_counts;
mod changes;
mod clock;
mod colours;
mod curves;
mod dissected;
mod flow_latency;
mod inflation;
mod labels;
mod moves;
mod pair_groups;
mod paths;
mod percent_axis;
mod periods;
mod persistence;
mod sankey;
mod scale_bar;
mod selected_pairs;
mod shares;
mod spectra;
mod spectrum;
mod titles;

pub(super) use change_counts::draw as change_counts;
pub(super) use changes::draw as changes;
pub(super) use dissected::draw as dissected;
pub(super) use flow_latency::draw as flow_latency;
pub(super) use inflation::draw as inflation;
pub(super) use moves::draw as moves;
pub(super) use paths::draw as paths;
pub(super) use persistence::draw as persistence;
pub(super) use spectra::draw as spectra;
pub(super) use spectrum::draw as spectrum;
