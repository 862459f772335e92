//! A plan's fleet over a diamond of routers: the paths that its `[trace]` finds are those that there
//! are, and its flows take as long as their paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;

use neph_lab::{Recording, Topology, TruthFile, UpOptions, flows_of};
use neph_model::{ExperimentId, FlowRoute, FlowTrace, ReflectorSpec, Span};
use neph_probe::Reflector;
use neph_store::{Access, SentWithin, Store, open};
use neph_sys::process;
use neph_text::Source;

use crate::stage::{self, fixed_diamond, neph, privileged, ran};

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
fn written(folder: &Path) {
    fs::write(folder.join("diamond.toml"), fixed_diamond()).expect("written");
    fs::write(folder.join("p.toml"), PLAN).expect("written");
}

fn run_in(folder: &Path, arguments: &[&str]) {
    let mut command = neph(&folder.join("kept"), arguments);
    command.current_dir(folder);
    ran(command);
}

/// What was kept: the store, its only experiment, and the only trace of that.
fn kept_in(folder: &Path) -> (Box<dyn Store>, ExperimentId, FlowTrace) {
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
    if !privileged("a plan's trace over a diamond") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    written(folder);
    run_in(folder, &["run", "p.toml", "--no-report"]);
    run_in(folder, &["report", "--output", "report"]);

    let (store, experiment, trace) = kept_in(folder);
    let spans = round_trips(store.as_ref(), experiment);
    held_to_the_truth(&trace, &spans);
    assert_eq!(spans.len(), 40);

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

fn held_to_the_truth(trace: &FlowTrace, spans: &BTreeMap<u16, Span>) {
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
        let (router, forward) = WAYS
            .into_iter()
            .find(|(router, _)| addresses.get(1) == Some(&Some(at(*router))))
            .expect("one of the four");
        let expected_route = [at(3), at(router), at(8), at(2)].map(Some);
        assert_eq!(addresses, expected_route);
        *counts.entry(router).or_insert(0) += 1;
        // The shortest way back takes 3 ms.
        let minimum = Span::from_millis(forward + 3);
        let measured = spans[source_port];
        assert!(
            measured >= minimum,
            "port {source_port}: {measured} by .{router}"
        );
    }
    assert_eq!(counts.len(), 4, "{counts:?}");
}

/// Measures the plan within a lab of the test's own, whose links write down who came by; the plan has
/// no lab then.
fn measured_on_record(folder: &Path) {
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
    let lab = stage::lab(&topology, &options);
    let server = lab.place("server").expect("the site is there");
    let reflector = Reflector::start_in(&ReflectorSpec::at(([0, 0, 0, 0], 8080).into()), &server);
    let (plan, _) = PLAN.split_once("[lab]").expect("its lab");
    fs::write(folder.join("p.toml"), plan).expect("written");
    let mut inside = process::command("nsenter");
    inside.arg(format!("--net=/run/netns/neph-{name}-client"));
    inside.args([env!("CARGO_BIN_EXE_neph"), "run", "p.toml", "--no-report"]);
    inside.current_dir(folder);
    inside.env("NEPH_WORKSPACE", folder.join("kept"));
    ran(inside);
    drop(reflector.expect("the reflector starts"));
    lab.down().expect("the lab goes down");
}

/// Which middle routers the requests of each source port came by, as the links to them wrote down.
fn on_record(folder: &Path) -> BTreeMap<u16, BTreeSet<u8>> {
    let mut by_port: BTreeMap<u16, BTreeSet<u8>> = BTreeMap::new();
    for (number, (router, _)) in (1..).zip(WAYS) {
        let record = folder.join(format!("r0-m{number}.truth"));
        let file = TruthFile::open(&record).expect("the link's record");
        for key in flows_of(file.map(|record| record.expect("a whole record"))).keys() {
            if (key.direction, key.protocol, key.destination_port) == (0, 17, 8080) {
                by_port.entry(key.source_port).or_default().insert(router);
            }
        }
    }
    by_port
}

#[test]
fn each_traced_flow_came_by_the_routers_that_the_links_recorded() {
    if !privileged("a plan's trace against the links' record") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    written(folder);
    measured_on_record(folder);
    let truth = on_record(folder);
    assert_eq!(truth.len(), 40, "as many as the plan has flows");
    let (_, _, trace) = kept_in(folder);
    assert_eq!(trace.routes.len(), 32);
    for route in &trace.routes {
        let middle = route.hops.get(1).and_then(|hop| hop.address);
        let recorded: Vec<_> = truth[&route.source_port]
            .iter()
            .map(|last| at(*last))
            .collect();
        assert_eq!(recorded, Vec::from_iter(middle), "{}", route.source_port);
    }
}
