//! Results of neph over emulated links, compared with what the links recorded.
//!
//! Needs root (network namespaces); prints SKIP without it.

#[path = "lab/circuits.rs"]
mod circuits;
#[path = "lab/clocks.rs"]
mod clocks;
#[path = "lab/flow_paths.rs"]
mod flow_paths;
#[path = "lab/flows.rs"]
mod flows;
#[path = "lab/gallery.rs"]
mod gallery;
#[path = "lab/hops.rs"]
mod hops;
#[path = "lab/hops_offload.rs"]
mod hops_offload;
#[path = "lab/hops_order.rs"]
mod hops_order;
#[path = "lab/kills.rs"]
mod kills;
#[path = "lab/live_hops.rs"]
mod live_hops;
#[path = "lab/network_stage.rs"]
mod network_stage;
#[path = "lab/points.rs"]
mod points;
#[path = "lab/resumed.rs"]
mod resumed;
#[path = "lab/setup.rs"]
mod setup;
#[path = "lab/syn.rs"]
mod syn;
#[path = "lab/traced_flows.rs"]
mod traced_flows;
#[path = "lab/transfers.rs"]
mod transfers;
#[path = "../../neph-lab/tests/lab/undisturbed.rs"]
mod undisturbed;
