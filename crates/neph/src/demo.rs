//! `neph demo`: a lab, a campaign over it and its report, in about 90 seconds.
//!
//! neph writes the plan and the topology into the workspace, where the user can read and change
//! them. Changed files are kept. Without root there is no lab: the same plan runs over loopback,
//! and neph reports what is missing.

use std::fs;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_lab::Topology;
use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use neph_text::Source;
use neph_text::{Existing, write_whole};

use crate::approval::Approval;
use crate::campaign::{self, Settings};
use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::operator::ControllerArgs;
use crate::output;
use crate::shipped::write_unless_changed;
use crate::workspace::Workspace;

const PLAN: &str = include_str!("../../../plans/demo.toml");
const TOPOLOGY: &str = include_str!("../../neph-lab/topologies/demo.toml");
/// Where the shipped plan finds its topology in the source tree.
const SOURCE_TOPOLOGY_PATH: &str = "../crates/neph-lab/topologies/demo.toml";
const PLAN_FILE: &str = "plan.toml";
const TOPOLOGY_FILE: &str = "demo.lab.toml";
/// The plan without its lab. Its ports are valid for one run, so each run writes it.
const LOOPBACK_FILE: &str = "plan.loopback.toml";
/// The endpoints' addresses in the lab.
const ADDRESSES: [&str; 3] = ["10.77.0.11:8080", "10.77.0.12:8080", "10.77.0.13:8080"];

/// Options of `neph demo`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Folder to which the demo writes its plan, measurements and report
    #[arg(default_value = "neph-demo")]
    folder: PathBuf,
    /// Do not print the progress of the measurement
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    approval: Approval,
}

/// Runs the demo.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let to_failure = |error: std::io::Error| {
        Failure::refused(format!(
            "write the demo into {}: {error}",
            args.folder.display()
        ))
    };
    fs::create_dir_all(&args.folder).map_err(to_failure)?;
    let settings = Settings {
        controller: ControllerArgs::default(),
        workspace: Workspace {
            location: args.folder.display().to_string(),
        },
        quiet: args.quiet,
        no_report: false,
        is_silent: false,
        acknowledge: None,
        webhook: None,
        metrics: MetricsArgs::default(),
        approval: args.approval.clone(),
    };
    match check_lab_permission() {
        Ok(()) => {
            let plan = demo_plan();
            let topology = write_unless_changed(&args.folder.join(TOPOLOGY_FILE), TOPOLOGY)
                .map_err(to_failure)?;
            // A changed topology with a mistake is reported with the plan.
            if let (false, Ok(topology)) = (args.quiet, Topology::parse(&topology)) {
                output::say(&endpoints_line(&topology));
            }
            let plan =
                write_unless_changed(&args.folder.join(PLAN_FILE), &plan).map_err(to_failure)?;
            campaign::carry_out(&campaign::parse_plan(plan)?, None, None, &settings)
        }
        Err(reason) => {
            output::say(&format!(
                "neph: no lab: {reason}. Measuring over loopback instead: the round trips are \
                 microseconds, and metro, continent and home do not differ"
            ));
            run_over_loopback(args, &settings)
        }
    }
}

/// The emulated endpoints, each with its RTT and upload rate.
fn endpoints_line(topology: &Topology) -> String {
    let endpoints = topology.links.iter().map(|link| {
        let round_trip = link.a_to_b.wire.delay + link.b_to_a.wire.delay;
        let rate = link.a_to_b.rate;
        let upload = rate.map_or_else(String::new, |rate| format!(", upload {rate}"));
        let name = &topology.sites[link.b].name;
        format!("{name} (RTT {}{upload})", round_trip.exact())
    });
    let endpoints: Vec<String> = endpoints.collect();
    format!("emulated endpoints: {}", endpoints.join(", "))
}

/// The shipped plan, which finds its topology in the same folder.
fn demo_plan() -> String {
    let path_from_root = SOURCE_TOPOLOGY_PATH.trim_start_matches("../");
    PLAN.replace(SOURCE_TOPOLOGY_PATH, TOPOLOGY_FILE)
        .replace(path_from_root, TOPOLOGY_FILE)
}

/// A lab needs network namespaces, which need root.
pub(crate) fn check_lab_permission() -> Result<(), String> {
    let name = format!("neph-try-{}", std::process::id());
    neph_sys::netns::NetNs::create(&name).map_err(|error| error.to_string())?;
    neph_sys::netns::remove(&name).map_err(|error| error.to_string())
}

/// One reflector on loopback for each endpoint, and the plan without its lab.
fn run_over_loopback(args: &Args, settings: &Settings) -> Result<Outcome, Failure> {
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    let mut reflectors = Vec::new();
    let mut text = PLAN.split("[lab]").next().unwrap_or_default().to_owned();
    for address in ADDRESSES {
        let reflector = Reflector::start(&spec).map_err(Failure::refused)?;
        text = text.replace(address, &reflector.address().to_string());
        reflectors.push(reflector);
    }
    let path = args.folder.join(LOOPBACK_FILE);
    write_whole(&path, text.as_bytes(), Existing::Replace).map_err(|error| {
        Failure::refused(format!(
            "write the demo into {}: {error}",
            args.folder.display()
        ))
    })?;
    let plan = Source::new(path.display().to_string(), text);
    campaign::carry_out(&campaign::parse_plan(plan)?, None, None, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulated_endpoints_are_those_of_the_topology() {
        let source = Source::new("demo", TOPOLOGY);
        let topology = Topology::parse(&source).expect("no mistakes");
        assert_eq!(
            endpoints_line(&topology),
            "emulated endpoints: metro (RTT 4 ms, upload 1 Gbit/s), continent (RTT 40 ms, upload 1 Gbit/s), \
             home (RTT 12 ms, upload 3 Mbit/s)"
        );
    }

    #[test]
    fn the_demo_plan_names_its_topology_and_no_source_file() {
        let plan = demo_plan();
        assert_eq!(plan.matches(TOPOLOGY_FILE).count(), 2, "{plan}");
        assert!(!plan.contains("crates/"), "{plan}");
    }
}
