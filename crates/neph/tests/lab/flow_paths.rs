//! A plan's fleet over a diamond of routers: the paths that its `[trace]` finds are those that there
//! are, and its flows take as long as their paths.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::process::Command;

use neph_model::{ExperimentId, FlowRoute, FlowTrace, Span};
use neph_store::{Access, SentWithin, Store, open};

use crate::stage::privileged;

const DIAMOND: &str = include_str!("../../../neph-lab/topologies/diamond.toml");
const PLAN: &str = r#"
version = 1
name = "diamond"
seed = 1
interval = "100ms"
messages = 15
flows = 40
[companion]
enabled = false
[[endpoint]]
name = "server"
url = "udp://10.87.0.2:8080"
[trace]
queries = 1
[lab]
topology = "diamond.toml"
prober = "client"
[[lab.reflector]]
site = "server"
"#;
/// Each middle router's last byte, and how long the way there over it takes, in milliseconds: its
/// two links, and half a millisecond at each end.
const WAYS: [(u8, i64); 4] = [(4, 3), (5, 5), (6, 7), (7, 10)];

fn at(last: u8) -> IpAddr {
    IpAddr::from([10, 87, 0, last])
}

/// The topology without its changes of routes, and the plan.
fn written(folder: &std::path::Path) {
    let (fixed, _) = DIAMOND
        .split_once("# The way there is drawn anew")
        .expect("its comment");
    fs::write(folder.join("diamond.toml"), fixed).expect("written");
    fs::write(folder.join("p.toml"), PLAN).expect("written");
}

fn neph(folder: &std::path::Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_neph"))
        .current_dir(folder)
        .env("NEPH_WORKSPACE", folder.join("kept"))
        .args(arguments)
        .output()
        .expect("neph runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

fn store_in(folder: &std::path::Path) -> Box<dyn Store> {
    open(&folder.join("kept").to_string_lossy(), Access::Read).expect("a workspace")
}

/// The shortest round trip of each flow, by source port.
fn round_trips(store: &dyn Store, experiment: ExperimentId) -> BTreeMap<u16, Span> {
    let mut found: BTreeMap<u16, Span> = BTreeMap::new();
    let mut visit = |batch: &[neph_model::FleetMessage]| {
        for message in batch {
            if let Some(reply) = message.reply() {
                let trip = reply.network();
                let least = found.entry(message.source_port).or_insert(trip);
                *least = (*least).min(trip);
            }
        }
        Ok(())
    };
    store
        .visit_fleet(experiment, SentWithin::ALL, &mut visit)
        .expect("its messages");
    found
}

#[test]
fn the_report_of_a_traced_fleet_draws_all_four_paths_of_a_diamond() {
    if !privileged("a plan's trace over a diamond") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    written(folder);
    neph(folder, &["run", "p.toml", "--no-report"]);
    neph(folder, &["report", "--output", "report"]);

    let store = store_in(folder);
    let campaign = &store.campaigns().expect("campaigns")[0];
    let experiment = store.experiments(campaign.id).expect("one")[0].id;
    let traces = store.flow_traces(experiment).expect("one trace");
    let trips = round_trips(store.as_ref(), experiment);
    held_to_the_truth(&traces[0], &trips);
    assert_eq!((traces.len(), trips.len()), (1, 40));

    let drawn = fs::read_to_string(folder.join("report/figures/flow-paths.svg"));
    let drawn = drawn.expect("the figure");
    for (router, _) in WAYS {
        assert!(drawn.contains(&at(router).to_string()), "{router}");
    }
    assert!(
        drawn.contains("32 traced flows to 10.87.0.2 over 4 paths"),
        "{drawn}"
    );
}

fn held_to_the_truth(trace: &FlowTrace, trips: &BTreeMap<u16, Span>) {
    assert_eq!(
        trace.routes.len(),
        32,
        "as many as a plan traces by default"
    );
    let mut found = BTreeMap::new();
    for FlowRoute {
        source_port, hops, ..
    } in &trace.routes
    {
        let addresses: Vec<Option<IpAddr>> = hops.iter().map(|hop| hop.address).collect();
        let (router, there) = WAYS
            .into_iter()
            .find(|(router, _)| addresses.get(1) == Some(&Some(at(*router))))
            .expect("one of the four");
        let whole = [at(3), at(router), at(8), at(2)].map(Some);
        assert_eq!(addresses, whole);
        *found.entry(router).or_insert(0) += 1;
        // The shortest way back takes 3 ms.
        let least = Span::from_millis(there + 3);
        let measured = trips[source_port];
        assert!(
            measured >= least,
            "port {source_port}: {measured} by .{router}"
        );
    }
    assert_eq!(found.len(), 4, "{found:?}");
}
