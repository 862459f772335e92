//! A plan's fleet over a diamond of routers: the paths that its `[trace]` finds are those that there
//! are, and its flows take as long as their paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;

use neph_lab::{Recording, Topology, TruthFile, UpOptions, evaluate_flows};
use neph_model::{ExperimentId, FlowRoute, FlowTrace, ReflectorSpec, Span};
use neph_probe::Reflector;
use neph_store::{Access, SentWithin, Store, open};
use neph_sys::process;
use neph_text::Source;

use crate::setup::{self, fixed_diamond, is_privileged, neph, run_successfully};

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
/// The last byte of each middle router, and the delay of the forward path over it in milliseconds: its
/// two links, and half a millisecond at each end.
const PATHS: [(u8, i64); 4] = [(4, 3), (5, 5), (6, 7), (7, 10)];

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 87, 0, last])
}

/// The topology without its changes of routes, and the plan.
fn write_plan_and_topology(folder: &Path) {
    fs::write(folder.join("diamond.toml"), fixed_diamond()).expect("written");
    fs::write(folder.join("p.toml"), PLAN).expect("written");
}

fn run_in(folder: &Path, arguments: &[&str]) {
    let mut command = neph(&folder.join("kept"), arguments);
    command.current_dir(folder);
    run_successfully(command);
}

/// The store, its only experiment, and the only trace of it.
fn stored_results(folder: &Path) -> (Box<dyn Store>, ExperimentId, FlowTrace) {
    let store = open(&folder.join("kept").to_string_lossy(), Access::Read).expect("a workspace");
    let campaign = &store.campaigns().expect("campaigns")[0];
    let experiment = store.experiments(campaign.id).expect("one")[0].id;
    let mut traces = store.flow_traces(experiment).expect("readable");
    let trace = traces.pop().expect("one trace");
    assert!(traces.is_empty(), "{traces:?}");
    (store, experiment, trace)
}

/// The shortest round trip of each flow, by source port.
fn round_trips(store: &dyn Store, experiment: ExperimentId) -> BTreeMap<u16, Span> {
    let mut round_trips: BTreeMap<u16, Span> = BTreeMap::new();
    let mut visit = |batch: &[neph_model::FleetMessage]| {
        for message in batch {
            if let Some(reply) = message.reply() {
                let span = reply.network();
                let min_rtt = round_trips.entry(message.source_port).or_insert(span);
                *min_rtt = (*min_rtt).min(span);
            }
        }
        Ok(())
    };
    store
        .visit_fleet(experiment, SentWithin::ALL, &mut visit)
        .expect("its messages");
    round_trips
}

#[test]
fn the_report_of_a_traced_fleet_draws_all_four_paths_of_a_diamond() {
    if !is_privileged("a plan's trace over a diamond") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_plan_and_topology(folder);
    run_in(folder, &["run", "p.toml", "--no-report"]);
    run_in(folder, &["report", "--output", "report"]);

    let (store, experiment, trace) = stored_results(folder);
    let spans = round_trips(store.as_ref(), experiment);
    assert_routes_match_the_topology(&trace, &spans);
    assert_eq!(spans.len(), 40);

    let svg = fs::read_to_string(folder.join("report/figures/flow-paths.svg"));
    let svg = svg.expect("the figure");
    for (router, _) in PATHS {
        assert!(svg.contains(&address(router).to_string()), "{router}");
    }
    assert!(
        svg.contains("32 traced flows to 10.87.0.2 over 4 paths"),
        "{svg}"
    );
}

fn assert_routes_match_the_topology(trace: &FlowTrace, spans: &BTreeMap<u16, Span>) {
    assert_eq!(
        trace.routes.len(),
        32,
        "as many as a plan traces by default"
    );
    let mut counts = BTreeMap::new();
    for FlowRoute {
        source_port, hops, ..
    } in &trace.routes
    {
        let addresses: Vec<Option<IpAddr>> = hops.iter().map(|hop| hop.address).collect();
        let (router, forward) = PATHS
            .into_iter()
            .find(|(router, _)| addresses.get(1) == Some(&Some(address(*router))))
            .expect("one of the four");
        let expected_route = [address(3), address(router), address(8), address(2)].map(Some);
        assert_eq!(addresses, expected_route);
        *counts.entry(router).or_insert(0) += 1;
        // The shortest reverse path takes 3 ms.
        let minimum = Span::from_millis(forward + 3);
        let measured = spans[source_port];
        assert!(
            measured >= minimum,
            "port {source_port}: {measured} by .{router}"
        );
    }
    assert_eq!(counts.len(), 4, "{counts:?}");
}

/// Measures the plan without its lab, in a lab of the test whose links record the packets.
fn measure_with_link_records(folder: &Path) {
    let text = fs::read_to_string(folder.join("diamond.toml")).expect("readable");
    let topology = Topology::parse(&Source::new("diamond", text)).expect("a good topology");
    let truth = Recording {
        folder: folder.to_owned(),
        every: NonZeroU32::MIN,
    };
    let name = format!("fp{}", std::process::id());
    let options = UpOptions {
        truth: Some(truth),
        ..UpOptions::with_name(&name)
    };
    let lab = setup::bring_up(&topology, &options);
    let server = lab.placement("server").expect("the site is there");
    let reflector = Reflector::start_in(&ReflectorSpec::at(([0, 0, 0, 0], 8080).into()), &server);
    let (plan, _) = PLAN.split_once("[lab]").expect("its lab");
    fs::write(folder.join("p.toml"), plan).expect("written");
    let mut command = process::command("nsenter");
    command.arg(format!("--net=/run/netns/neph-{name}-client"));
    command.args([env!("CARGO_BIN_EXE_neph"), "run", "p.toml", "--no-report"]);
    command.current_dir(folder);
    command.env("NEPH_WORKSPACE", folder.join("kept"));
    run_successfully(command);
    drop(reflector.expect("the reflector starts"));
    lab.down().expect("the lab goes down");
}

/// The middle routers of the requests of each source port, as the links to them recorded.
fn recorded_routers_by_port(folder: &Path) -> BTreeMap<u16, BTreeSet<u8>> {
    let mut by_port: BTreeMap<u16, BTreeSet<u8>> = BTreeMap::new();
    for (number, (router, _)) in (1..).zip(PATHS) {
        let record = folder.join(format!("r0-m{number}.truth"));
        let file = TruthFile::open(&record).expect("the link's record");
        for key in evaluate_flows(file.map(|record| record.expect("a whole record"))).keys() {
            if (key.direction, key.protocol, key.destination_port) == (0, 17, 8080) {
                by_port.entry(key.source_port).or_default().insert(router);
            }
        }
    }
    by_port
}

#[test]
fn each_traced_route_has_the_routers_that_the_links_recorded() {
    if !is_privileged("a plan's trace against the links' record") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_plan_and_topology(folder);
    measure_with_link_records(folder);
    let truth = recorded_routers_by_port(folder);
    assert_eq!(truth.len(), 40, "as many as the plan has flows");
    let (_, _, trace) = stored_results(folder);
    assert_eq!(trace.routes.len(), 32);
    for route in &trace.routes {
        let middle = route.hops.get(1).and_then(|hop| hop.address);
        let recorded: Vec<_> = truth[&route.source_port]
            .iter()
            .map(|last| address(*last))
            .collect();
        assert_eq!(recorded, Vec::from_iter(middle), "{}", route.source_port);
    }
}
