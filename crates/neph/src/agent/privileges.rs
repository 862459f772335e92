//! The privileges that an agent keeps: those that its policy needs.

use std::path::Path;

use neph_agent::policy::{Kind, Policy};
use neph_model::ProbeKind;
use neph_sys::restrict::Capability;

use crate::exit::Failure;
use crate::output;
use crate::privileges::{Needs, Row, UserChoice, sentence};

/// Ports that need a privilege to bind.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Drops all other privileges. An agent that may start iperf3 keeps all: an external program needs
/// those of its user.
pub(super) fn drop_privileges(policy: &Policy, folder: &Path) -> Result<(), Failure> {
    if policy.kinds.contains(&Kind::Iperf3) {
        output::say("neph agent: privileges: all are kept, since its policy allows iperf3");
        return Ok(());
    }
    let restrictions = required_privileges(policy, folder).restrict(&UserChoice::default())?;
    output::say(&format!("neph agent: {}", sentence(&restrictions)));
    Ok(())
}

fn required_privileges(policy: &Policy, folder: &Path) -> Needs {
    let allows_any = |kinds: &[Kind]| kinds.iter().any(|kind| policy.kinds.contains(kind));
    let has_probes = policy
        .kinds
        .iter()
        .any(|kind| matches!(kind, Kind::Probe(_)));
    let raw_socket_kinds = [
        Kind::Probe(ProbeKind::Icmp),
        Kind::Probe(ProbeKind::Syn),
        Kind::Fleet,
        Kind::Traceroute,
        Kind::Capture,
    ];
    let has_fleets = allows_any(&[Kind::Fleet]);
    let has_reserved_port = policy
        .listen
        .iter()
        .any(|ports| *ports.start() < FIRST_UNPRIVILEGED_PORT);
    let mut needs = Needs::of(&Row::AGENT)
        .creates_files_in(Some(folder))
        .capability(Capability::CAP_NET_RAW, allows_any(&raw_socket_kinds))
        .capability(
            Capability::CAP_SYS_NICE,
            has_probes || allows_any(&[Kind::Capture]),
        )
        .capability(Capability::CAP_IPC_LOCK, allows_any(&[Kind::Capture]))
        .capability(Capability::CAP_NET_ADMIN, has_fleets)
        .capability(Capability::CAP_BPF, has_fleets)
        .capability(Capability::CAP_NET_BIND_SERVICE, has_reserved_port);
    for file in &policy.files {
        needs = needs.reads(Some(Path::new(file)));
    }
    if has_fleets { needs.bpf() } else { needs }
}
