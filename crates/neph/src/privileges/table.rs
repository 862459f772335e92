//! The table of capabilities that each command keeps, with reasons.

use neph_sys::restrict::Capability::{
    self, CAP_BPF, CAP_IPC_LOCK, CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_ADMIN,
    CAP_SYS_NICE,
};

/// Files that are read for name resolution, clocks and kernel settings, and to enter namespaces.
const USUAL: &[&str] = &[
    "/etc",
    "/proc",
    "/sys",
    "/usr",
    "/lib",
    "/lib64",
    "/run",
    "/nix/store",
    "/dev/null",
    "/dev/urandom",
    "/dev/cpu_dma_latency",
];
/// Files that threads and allocators of the C library read.
const OWN: &[&str] = &["/proc", "/sys/devices/system/cpu"];

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    /// The command.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the documentation's table has it")
    )]
    name: &'static str,
    capabilities: &'static [KeptCapability],
    /// Folders from which it may read what its user may read.
    pub(super) reads: &'static [&'static str],
}

/// A capability that is kept.
#[derive(Debug)]
struct KeptCapability {
    capability: Capability,
    /// The option that needs it; empty for always.
    with: &'static str,
    /// The reason to keep it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the documentation's table has it")
    )]
    why: &'static str,
}

const fn capability_row(
    capability: Capability,
    with: &'static str,
    why: &'static str,
) -> KeptCapability {
    KeptCapability {
        capability,
        with,
        why,
    }
}

const FIFO: KeptCapability =
    capability_row(CAP_SYS_NICE, "", "real-time priority of the sending thread");
const IDLE: KeptCapability = capability_row(
    CAP_SYS_NICE,
    "",
    "return from idle priority when packets wait",
);
const LOCKED: KeptCapability = capability_row(CAP_IPC_LOCK, "", "receive ring in locked memory");
const ICMP: KeptCapability = capability_row(CAP_NET_RAW, "", "ICMP echo, SYN probes, traceroute");
const BUFFERS: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "",
    "socket buffers above net.core.rmem_max and wmem_max, any congestion control",
);
const OTHER_BUFFERS: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "--throughput",
    "socket buffers above net.core.rmem_max and wmem_max",
);
const FAST: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "an interval below 1 ms",
    "receive buffer above net.core.rmem_max",
);

impl Row {
    pub(crate) const REFLECT: Self = row("reflect", &[OTHER_BUFFERS], OWN);
    pub(crate) const HEALTH: Self = row("health", &[], USUAL);
    pub(crate) const PING: Self = row(
        "ping",
        &[
            ICMP,
            FIFO,
            FAST,
            capability_row(
                CAP_NET_ADMIN,
                "--congestion",
                "load and use a congestion control that is not allowed to everybody",
            ),
            capability_row(
                CAP_NET_BIND_SERVICE,
                "--source-port below 1024",
                "bind the port at each connection",
            ),
        ],
        USUAL,
    );
    pub(crate) const FLOWS: Self = row(
        "flows",
        &[
            capability_row(
                CAP_NET_RAW,
                "",
                "one raw socket for all flows, SYN probes, --trace",
            ),
            capability_row(
                CAP_NET_ADMIN,
                "",
                "receive buffer above net.core.rmem_max, steering of replies (sk_lookup)",
            ),
            capability_row(CAP_BPF, "", "steering of replies (sk_lookup)"),
            FIFO,
        ],
        USUAL,
    );
    pub(crate) const TRACE: Self = row(
        "trace",
        &[capability_row(CAP_NET_RAW, "", "probes and ICMP errors")],
        USUAL,
    );
    pub(crate) const CLOCK: Self = row("clock", &[FIFO, FAST], USUAL);
    pub(crate) const CLOCK_CAPTURES: Self = row("clock --captures", &[], OWN);
    pub(crate) const WATCH: Self = row(
        "watch",
        &[
            capability_row(CAP_NET_RAW, "", "packet socket"),
            capability_row(
                CAP_NET_ADMIN,
                "",
                "attach the BPF program that copies packets",
            ),
            capability_row(CAP_BPF, "", "BPF program that copies packets"),
            IDLE,
            LOCKED,
            capability_row(
                CAP_NET_BIND_SERVICE,
                "--prometheus below 1024",
                "bind the port",
            ),
            SITE,
        ],
        USUAL,
    );
    pub(crate) const HOPS: Self = row("hops of files", &[IDLE], USUAL);
    pub(crate) const HOPS_LIVE: Self = row(
        "hops of live points",
        &[
            capability_row(CAP_NET_RAW, "", "packet sockets"),
            IDLE,
            LOCKED,
            capability_row(
                CAP_SYS_ADMIN,
                "iface:NAME@SITE",
                "enter the namespaces of sites",
            ),
        ],
        USUAL,
    );
    pub(crate) const STRESS: Self = row("stress", &[], USUAL);
    pub(crate) const AGENT: Self = row(
        "agent",
        &[
            capability_row(
                CAP_NET_RAW,
                "icmp, syn, fleet, traceroute or capture in its policy",
                "ICMP echo, SYN probes, routes, one raw socket for all flows, packet sockets",
            ),
            capability_row(
                CAP_SYS_NICE,
                "a probe or capture in its policy",
                "real-time priority of the sending thread, return from idle priority when packets wait",
            ),
            capability_row(
                CAP_IPC_LOCK,
                "capture in its policy",
                "receive ring in locked memory",
            ),
            capability_row(
                CAP_NET_ADMIN,
                "fleet in its policy",
                "receive buffer above net.core.rmem_max, steering of replies (sk_lookup)",
            ),
            capability_row(
                CAP_BPF,
                "fleet in its policy",
                "steering of replies (sk_lookup)",
            ),
            capability_row(
                CAP_NET_BIND_SERVICE,
                "listen below 1024 in its policy",
                "reflectors at these ports",
            ),
        ],
        USUAL,
    );
    pub(crate) const THROUGHPUT: Self = row("throughput", &[BUFFERS], USUAL);
    pub(crate) const RR: Self = row("rr", &[], USUAL);
    pub(crate) const THROUGHPUT_SERVE: Self = row("throughput serve", &[BUFFERS], OWN);
    pub(crate) const MEDIA: Self = row(
        "media",
        &[capability_row(
            CAP_NET_ADMIN,
            "",
            "receive buffers above net.core.rmem_max",
        )],
        USUAL,
    );
    pub(crate) const MEDIA_SERVE: Self = row("media serve", &[], OWN);
}

const SITE: KeptCapability = capability_row(
    CAP_SYS_ADMIN,
    "--site",
    "open the packet socket in the namespace of a site",
);

const fn row(
    name: &'static str,
    capabilities: &'static [KeptCapability],
    reads: &'static [&'static str],
) -> Row {
    Row {
        name,
        capabilities,
        reads,
    }
}

impl Row {
    /// Capabilities that are always kept.
    pub(super) fn always(&self) -> impl Iterator<Item = Capability> {
        let always = self
            .capabilities
            .iter()
            .filter(|kept_capability| kept_capability.with.is_empty());
        always.map(|kept_capability| kept_capability.capability)
    }

    /// Whether the capability is kept with some options.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.capabilities
            .iter()
            .any(|kept_capability| kept_capability.capability == capability)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ALL: [Row; 17] = [
        Row::REFLECT,
        Row::HEALTH,
        Row::PING,
        Row::FLOWS,
        Row::TRACE,
        Row::CLOCK,
        Row::CLOCK_CAPTURES,
        Row::WATCH,
        Row::HOPS,
        Row::HOPS_LIVE,
        Row::STRESS,
        Row::AGENT,
        Row::THROUGHPUT,
        Row::THROUGHPUT_SERVE,
        Row::RR,
        Row::MEDIA,
        Row::MEDIA_SERVE,
    ];

    /// The table in Markdown.
    fn rendered() -> String {
        let mut text = "| command | capability | with | for |\n|---|---|---|---|\n".to_owned();
        for row in ALL {
            if row.capabilities.is_empty() {
                text.push_str(&format!("| `{}` | none | | |\n", row.name));
            }
            for kept_capability in row.capabilities {
                let (name, why) = (kept_capability.capability, kept_capability.why);
                let with = if kept_capability.with.is_empty() {
                    "always"
                } else {
                    kept_capability.with
                };
                text.push_str(&format!("| `{}` | {name} | {with} | {why} |\n", row.name));
            }
        }
        text
    }

    #[test]
    fn the_documentation_shows_this_table() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        let read = |name: &str| fs::read_to_string(format!("{docs}{name}"));
        let page = read("security-privileges.md").expect("a page about privileges");
        assert!(
            page.contains(&rendered()),
            "write into docs:\n{}",
            rendered()
        );
    }
}
