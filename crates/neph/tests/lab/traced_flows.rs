//! `neph flows --save --trace` over a diamond of routers whose kernels choose anew: the routes are
//! kept as they are found, each with the change that it was traced for, also after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use neph_lab::{Lab, Topology, UpOptions};
use neph_model::{Experiment, PathHash, ReflectorSpec, Slot, TracedRoute};
use neph_probe::Reflector;
use neph_store::{Access, Store, open};
use neph_sys::deadline::poll;
use neph_text::Source;
use serde_json::Value;

use crate::setup::{self, PORT, fixed_diamond, is_privileged, neph, run_successfully};

/// Four paths: all flows are on one of them once in 4 million.
const FLOWS: u16 = 12;
/// Until first routes and those of a change are there; they take seconds.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Of the hops from distance 1 on.
type Addresses = Vec<Option<IpAddr>>;

/// The forward paths of all flows change every ten seconds.
const RESHUFFLE: &str =
    "[[reroute]]\nsite = \"r0\"\nat = \"10s\"\nevery = \"10s\"\nreshuffle = true\n";

/// The diamond with a reflector.
struct Diamond {
    lab: Lab,
    _reflector: Reflector,
}

impl Diamond {
    fn up(name: &str, schedule: &str) -> Self {
        let text = format!("{}{schedule}", fixed_diamond());
        let topology = Topology::parse(&Source::new("diamond", text)).expect("a good topology");
        let lab = setup::bring_up(&topology, &UpOptions::with_name(name));
        let spec = ReflectorSpec::at(SocketAddr::from(([0, 0, 0, 0], PORT)));
        let server = lab.placement("server").expect("the site is there");
        let reflector = Reflector::start_in(&spec, &server).expect("the reflector starts");
        lab.cue();
        Self {
            lab,
            _reflector: reflector,
        }
    }

    /// neph at the client, with this workspace.
    fn neph(&self, workspace: &Path, arguments: &[&str]) -> Command {
        let mut command = neph(workspace, arguments);
        command.args(["--site", &format!("neph-{}-client", self.lab.name())]);
        command
    }

    fn flows(
        &self,
        workspace: &Path,
        (target, name): (&str, &str),
        extra_options: &[&str],
    ) -> Command {
        let flows = FLOWS.to_string();
        let fixed = ["flows", target, "-n", &flows, "-i", "100ms", "--save", name];
        let arguments = [
            &fixed[..],
            &["--timeout", "300ms", "--trace"],
            extra_options,
        ]
        .concat();
        self.neph(workspace, &arguments)
    }

    fn down(self) {
        self.lab.down().expect("the lab goes down");
    }
}

fn open_workspace(workspace: &Path) -> Option<Box<dyn Store>> {
    open(&workspace.to_string_lossy(), Access::Read).ok()
}

/// The only experiment of the campaign of that name, and its routes by time.
fn stored_routes(workspace: &Path, name: &str) -> Option<(Experiment, Vec<TracedRoute>)> {
    let store = open_workspace(workspace)?;
    let campaigns = store.campaigns().expect("campaigns");
    let campaign = campaigns
        .into_iter()
        .find(|campaign| campaign.name == name)?;
    let experiment = store.experiments(campaign.id).expect("readable").pop()?;
    let mut routes = Vec::new();
    let mut add_routes = |batch: &[TracedRoute]| {
        routes.extend_from_slice(batch);
        Ok(())
    };
    let visited = store.visit_traced_routes(experiment.id, &mut add_routes);
    visited.expect("routes");
    Some((experiment, routes))
}

/// How many changes the kept routes confirm.
fn count_confirmed(routes: &[TracedRoute]) -> usize {
    let is_confirmed =
        |route: &&TracedRoute| route.change.and_then(|change| change.other_routers) == Some(true);
    routes.iter().filter(is_confirmed).count()
}

/// Waits until first routes of all flows and some of changes are kept, then kills.
fn kill_after_first_changes(mut running: Child, workspace: &Path) {
    let mut routes = Vec::new();
    let is_kept = poll(Duration::from_millis(100), TIMEOUT, || {
        routes = stored_routes(workspace, "night").map_or_else(Vec::new, |(_, routes)| routes);
        let slots: BTreeSet<Slot> = routes.iter().map(|route| route.slot).collect();
        let is_running = running.try_wait().expect("told").is_none();
        let is_kept = slots.len() == usize::from(FLOWS) && count_confirmed(&routes) > 2;
        assert!(is_running || is_kept, "{routes:?}");
        is_kept
    });
    assert!(is_kept, "{routes:?}");
    running.kill().expect("SIGKILL can be sent");
    running.wait().expect("it ends");
}

/// The addresses that neph trace finds on the paths of these flows, by port.
fn traced_addresses(diamond: &Diamond, workspace: &Path, target: &str) -> BTreeMap<u16, Addresses> {
    let args = ["trace", target, "--source-port", "41000-41011"];
    let args = [&args[..], &["--format", "json"]].concat();
    let stdout = run_successfully(diamond.neph(workspace, &args)).stdout;
    let document: Value = serde_json::from_slice(&stdout).expect("JSON");
    let flows = document["flows"].as_array().expect("flows").iter();
    let port_and_addresses = |flow: &Value| {
        let port = flow["source_port"].as_u64().expect("a port");
        let hops = flow["hops"].as_array().expect("hops").iter();
        let address = |hop: &Value| hop["address"].as_str()?.parse().ok();
        let addresses: Addresses = hops.map(address).collect();
        let hash = PathHash::of(&addresses).to_string();
        assert_eq!(flow["hash"], hash, "{flow}");
        (u16::try_from(port).expect("16 bits"), addresses)
    };
    flows.map(port_and_addresses).collect()
}

/// Each change's row tells what its trace said, and other routers make another fingerprint; the same
/// ones may have another too, where a router that did not answer is left out of the verdict. Tells
/// how many changes other routers confirm.
fn count_confirmed_changes(workspace: &Path, at_most: usize) -> usize {
    let args = ["export", "night", "--everything", "--changes", "guard"];
    let args = [&args[..], &["--format", "jsonl", "--output", "-"]].concat();
    let rows = run_successfully(neph(workspace, &args)).stdout;
    let rows = String::from_utf8_lossy(&rows);
    let mut confirmed_count = 0;
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        if let Some(verdict) = row["other_routers"].as_bool() {
            let is_another = row["path_before"] != row["path_after"];
            assert!(is_another || !verdict, "{row}");
            confirmed_count += usize::from(verdict);
        }
    }
    // A change that was withdrawn after its trace is no change any more.
    assert!(
        (1..=at_most).contains(&confirmed_count),
        "{confirmed_count} of {at_most}: {rows}"
    );
    confirmed_count
}

fn report_table(workspace: &Path, name: &str) -> String {
    let folder = workspace.join("report");
    let out = folder.display().to_string();
    run_successfully(neph(
        workspace,
        &["report", "night", "--everything", "-o", &out],
    ));
    let figure = folder.join("figures/flow-paths.svg");
    let drawn = std::fs::read_to_string(figure).expect("the paths are drawn");
    assert!(!drawn.contains("not reached"), "replies came: {drawn}");
    let path = folder.join("tables").join(format!("{name}.csv"));
    std::fs::read_to_string(path).expect("the table")
}

/// What the first row of a table says in the column of that name.
fn cell<'a>(table: &'a str, column: &str) -> Option<&'a str> {
    let mut lines = table.lines();
    let index = lines.next()?.split(',').position(|name| name == column)?;
    lines.next()?.split(',').nth(index)
}

#[test]
fn routes_of_flows_survive_a_kill_with_the_changes_that_they_confirm() {
    if !is_privileged("routes of flows survive a kill") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path();
    let diamond = Diamond::up("keepkill", RESHUFFLE);
    let target = format!("udp://10.87.0.2:{PORT}");
    let mut command = diamond.flows(workspace, (&target, "night"), &[]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    kill_after_first_changes(command.spawn().expect("neph runs"), workspace);
    let (_, before) = stored_routes(workspace, "night").expect("kept");
    // The next who writes ends what was cut off, and takes no route away.
    run_successfully(diamond.flows(workspace, (&target, "day"), &["-c", "3"]));
    let (experiment, after) = stored_routes(workspace, "night").expect("kept");
    assert_eq!(before, after);
    assert_eq!(experiment.status.name(), "interrupted");
    let shown = run_successfully(neph(workspace, &["show", "night"])).stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("interrupted"), "{shown}");

    let args = ["show", &experiment.id.to_string(), "--format", "json"];
    let shown: Value =
        serde_json::from_slice(&run_successfully(neph(workspace, &args)).stdout).expect("JSON");
    assert_eq!(shown["traced"]["routes"], after.len());
    assert_eq!(shown["traced"]["other_routers"], count_confirmed(&after));
    let paths = shown["paths"].as_array().expect("paths");
    let is_timed = |path: &Value| path["best_ns"].is_i64() && path["median_ns"].is_i64();
    assert!(paths.iter().all(is_timed), "{paths:?}");
    let confirmed_count = count_confirmed_changes(workspace, count_confirmed(&after));
    let rows = report_table(workspace, "flow-traced");
    let confirmed = confirmed_count.to_string();
    assert_eq!(cell(&rows, "other_routers"), Some(&*confirmed), "{rows}");
    diamond.down();
}

#[test]
fn the_stored_fingerprint_equals_that_of_neph_trace_for_the_flow() {
    if !is_privileged("the kept fingerprint is that of neph trace") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path();
    let diamond = Diamond::up("keephash", "");
    for (scheme, name) in [("udp", "night"), ("syn", "day")] {
        let target = format!("{scheme}://10.87.0.2:{PORT}");
        let extra_options = ["-w", "8s", "--first-port", "41000"];
        run_successfully(diamond.flows(workspace, (&target, name), &extra_options));
        let (_, routes) = stored_routes(workspace, name).expect("kept");
        assert!(routes.len() > 6, "{routes:?}");
        let addresses_by_port = traced_addresses(&diamond, workspace, &target);
        for TracedRoute { route, .. } in &routes {
            // The far end is asked nothing that it would answer: the last router ends the way.
            let addresses = &addresses_by_port[&route.source_port];
            assert_eq!((addresses.len(), route.hops.len()), (4, 3), "{route:?}");
            assert_eq!(route.hash, PathHash::of(&addresses[..3]), "{route:?}");
        }
        let paths: BTreeSet<PathHash> = routes.iter().map(|route| route.route.hash).collect();
        assert!(paths.len() > 1, "{routes:?}");
    }
    diamond.down();
}
