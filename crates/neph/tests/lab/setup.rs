//! Helpers of the lab tests: a two-site lab with its record, a reflector, a flow; the diamond of
//! routers; neph as its users run it.

#![expect(
    clippy::print_stdout,
    reason = "a test tells what it measured and what it skipped"
)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Output};

use neph_lab::{
    FlowKey, FlowTruth, Lab, Record, Recording, Topology, TruthFile, UpOptions, Verdict,
    evaluate_flows,
};
use neph_model::{IpVersion, Message, ReflectorIdentity, ReflectorSpec, Span, Stop, Target};
use neph_probe::{Flow, FlowSpec, Placement, Reflector, Report, Resolve, Schedule, Trust};
use neph_sys::process;
use neph_text::Source;
use tempfile::TempDir;

/// Where the reflector listens.
pub(crate) const PORT: u16 = 8080;

/// Whether namespaces can be made; without root the test is skipped and prints that.
pub(crate) fn is_privileged(test: &str) -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|metadata| {
        use std::os::unix::fs::MetadataExt;
        metadata.uid() == 0
    });
    if !is_root {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{test} needs root"
        );
        println!("SKIP {test}: network namespaces need root");
    }
    is_root
}

/// The shipped diamond of four paths, without its changes of routes.
pub(crate) fn fixed_diamond() -> &'static str {
    let shipped = include_str!("../../../neph-lab/topologies/diamond.toml");
    let halves = shipped.split_once("# The way there is drawn anew");
    halves.expect("its comment").0
}

/// neph with this workspace.
pub(crate) fn neph(workspace: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_neph"));
    command.args(arguments).env("NEPH_WORKSPACE", workspace);
    command
}

/// Runs a command that must succeed.
pub(crate) fn run_successfully(mut command: Command) -> Output {
    let output = command.output().expect("neph runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    output
}

/// Brings up a lab. Removes what a killed run of these tests left of it before.
pub(crate) fn bring_up(topology: &Topology, options: &UpOptions) -> Lab {
    Lab::down_if_owner_ended(&options.name).expect("what is left goes down");
    Lab::up(topology, options).expect("the lab comes up")
}

/// Two sites and one link, gone when dropped.
pub(crate) struct TwoSites {
    lab: Lab,
    folder: TempDir,
}

impl TwoSites {
    /// Brings them up; `link` is the link's keys in TOML.
    pub(crate) fn up(name: &str, link: &str) -> Self {
        let text = format!(
            "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.79.0.1/24\"\n\
             [[site]]\nname = \"server\"\naddress = \"10.79.0.2/24\"\n\
             [[link]]\nname = \"path\"\na = \"client\"\nb = \"server\"\n{link}\n"
        );
        let topology = Topology::parse(&Source::new("two sites", text)).expect("a good topology");
        let folder = tempfile::tempdir().expect("a folder");
        let every = NonZeroU32::MIN;
        let options = UpOptions {
            truth: Some(Recording {
                folder: folder.path().to_owned(),
                every,
            }),
            ..UpOptions::with_name(name)
        };
        let lab = bring_up(&topology, &options);
        Self { lab, folder }
    }

    fn placement(&self, site: &str) -> Placement {
        self.lab.placement(site).expect("the site is there")
    }

    /// A reflector at the server, with TLS as well as plain text.
    pub(crate) fn reflector(&self, processing_time: Span) -> Reflector {
        let spec = ReflectorSpec {
            identity: Some(ReflectorIdentity::SelfSigned(vec!["10.79.0.2".to_owned()])),
            reply_delay: processing_time,
            ..ReflectorSpec::at(SocketAddr::from(([0, 0, 0, 0], PORT)))
        };
        Reflector::start_in(&spec, &self.placement("server")).expect("the reflector starts")
    }

    /// A flow from the client to the server.
    pub(crate) fn flow(&self, scheme: &str, interval: Span, count: u64) -> FlowSpec {
        let url = match scheme {
            "icmp" => "icmp://10.79.0.2".to_owned(),
            _ => format!("{scheme}://10.79.0.2:{PORT}"),
        };
        let target = Target::parse(&url).expect("a good target");
        let address = target.addresses(Some(IpVersion::V4)).expect("an address")[0];
        FlowSpec {
            schedule: Schedule {
                interval,
                count: Some(count),
                duration: None,
            },
            request_size: 64,
            response_size: 68,
            trust: Trust::AnyCertificate,
            spin: FlowSpec::SPIN,
            site: Some(self.placement("client")),
            reflector: scheme != "icmp",
            ..FlowSpec::plain(target, address)
        }
    }

    /// A flow from the server to itself: no link, only what the kernel's stamps and wake-ups take on
    /// this machine (5 us on a calm one, 20 us where another core is woken by the hypervisor).
    pub(crate) fn flow_without_link(&self, scheme: &str, interval: Span, count: u64) -> FlowSpec {
        FlowSpec {
            site: Some(self.placement("server")),
            ..self.flow(scheme, interval, count)
        }
    }

    /// The network namespace of a site, as `--site` takes it.
    pub(crate) fn namespace(&self, site: &str) -> String {
        format!("neph-{}-{site}", self.lab.name())
    }

    /// Schedules count from now.
    pub(crate) fn cue(&self) {
        self.lab.cue();
    }

    /// Takes the lab down and reads which flow was on which path when.
    pub(crate) fn flows(self) -> BTreeMap<FlowKey, FlowTruth> {
        self.lab.down().expect("the lab goes down");
        let file =
            TruthFile::open(&self.folder.path().join("path.truth")).expect("the link's record");
        evaluate_flows(file.map(|record| record.expect("a whole record")))
    }

    /// Takes the lab down and reads what its link did: each delivered packet's real delay in
    /// nanoseconds, of packets at least `minimum` bytes long, by direction.
    pub(crate) fn delays(self, minimum: u32) -> [Vec<i64>; 2] {
        let mut delays = [Vec::new(), Vec::new()];
        for record in self.records() {
            let Record::Packet {
                passage,
                verdict: Verdict::Delivered,
                left,
                ..
            } = record
            else {
                continue;
            };
            if passage.length >= minimum {
                delays[usize::from(passage.direction)].push(left - passage.arrival);
            }
        }
        delays
    }

    /// Takes the lab down and reads its link's record.
    pub(crate) fn records(self) -> Vec<Record> {
        self.lab.down().expect("the lab goes down");
        let file =
            TruthFile::open(&self.folder.path().join("path.truth")).expect("the link's record");
        file.map_while(Result::ok).collect()
    }
}

/// Runs a flow to its end.
pub(crate) fn measure(spec: FlowSpec) -> Vec<Message> {
    let flow = Flow::start(spec, Stop::new()).expect("a thread");
    let mut messages = Vec::new();
    for report in flow.reports() {
        match report {
            Report::Message(message) => messages.push(message),
            Report::Event { kind, text, .. } => println!("{kind:?}: {text}"),
            Report::Reply(_)
            | Report::Opened { .. }
            | Report::Tcp { .. }
            | Report::Anchor(_)
            | Report::Ended(_) => {}
        }
    }
    flow.join().expect("the flow ran");
    messages
}

/// The middle of some spans, in nanoseconds.
pub(crate) fn median(mut values: Vec<i64>) -> i64 {
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn two_sites_come_up_after_unrecorded_namesakes() {
    if !is_privileged("two_sites_come_up_after_unrecorded_namesakes") {
        return;
    }
    for _ in 0..2 {
        TwoSites::up("repeated", "delay = \"1ms\"");
    }
}
