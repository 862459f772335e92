//! The privileges that an agent keeps: those that its policy needs.

use std::path::Path;

use neph_agent::policy::{Kind, Policy};
use neph_model::ProbeKind;
use neph_sys::restrict::Capability;

use crate::exit::Failure;
use crate::output;
use crate::privileges::{Needs, Row, UserChoice, sentence};

/// Ports that need a privilege to bind.
const RESERVED: u16 = 1024;

/// Drops all other privileges. An agent that may start iperf3 keeps all: an external program needs
/// those of its user.
pub(super) fn give_up(policy: &Policy, folder: &Path) -> Result<(), Failure> {
    if policy.kinds.contains(&Kind::Iperf3) {
        output::say("neph agent: privileges: all are kept, since its policy allows iperf3");
        return Ok(());
    }
    let force = needs(policy, folder).restrict(&UserChoice::default())?;
    output::say(&format!("neph agent: {}", sentence(&force)));
    Ok(())
}

fn needs(policy: &Policy, folder: &Path) -> Needs {
    let has = |kinds: &[Kind]| kinds.iter().any(|kind| policy.kinds.contains(kind));
    let probes = policy
        .kinds
        .iter()
        .any(|kind| matches!(kind, Kind::Probe(_)));
    let raw = [
        Kind::Probe(ProbeKind::Icmp),
        Kind::Probe(ProbeKind::Syn),
        Kind::Fleet,
        Kind::Traceroute,
        Kind::Capture,
    ];
    let fleets = has(&[Kind::Fleet]);
    let reserved = policy.listen.iter().any(|ports| *ports.start() < RESERVED);
    let mut needs = Needs::of(&Row::AGENT)
        .fills(Some(folder))
        .capability(Capability::CAP_NET_RAW, has(&raw))
        .capability(Capability::CAP_SYS_NICE, probes || has(&[Kind::Capture]))
        .capability(Capability::CAP_IPC_LOCK, has(&[Kind::Capture]))
        .capability(Capability::CAP_NET_ADMIN, fleets)
        .capability(Capability::CAP_BPF, fleets)
        .capability(Capability::CAP_NET_BIND_SERVICE, reserved);
    for file in &policy.files {
        needs = needs.reads(Some(Path::new(file)));
    }
    if fleets { needs.bpf() } else { needs }
}
