//! The table of capabilities that each command keeps, with reasons.

use neph_sys::restrict::Capability::{
    self, CAP_BPF, CAP_IPC_LOCK, CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_ADMIN,
    CAP_SYS_NICE,
};

/// Files that are read for name resolution, clocks and kernel settings, and to enter namespaces.
const DEFAULT_PATHS: &[&str] = &[
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
const LIBRARY_PATHS: &[&str] = &["/proc", "/sys/devices/system/cpu"];

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
    option: &'static str,
    /// The reason to keep it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the documentation's table has it")
    )]
    reason: &'static str,
}

const fn capability_row(
    capability: Capability,
    option: &'static str,
    reason: &'static str,
) -> KeptCapability {
    KeptCapability {
        capability,
        option,
        reason,
    }
}

const REAL_TIME_PRIORITY: KeptCapability =
    capability_row(CAP_SYS_NICE, "", "real-time priority of the sending thread");
const IDLE_PRIORITY_END: KeptCapability = capability_row(
    CAP_SYS_NICE,
    "",
    "return from idle to normal priority when packets wait",
);
const LOCKED_MEMORY: KeptCapability = capability_row(
    CAP_IPC_LOCK,
    "",
    "receive buffer in locked memory, which is never swapped out",
);
const ICMP: KeptCapability = capability_row(CAP_NET_RAW, "", "ICMP echo, SYN probes, traceroute");
const BUFFERS: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "",
    "socket buffers above net.core.rmem_max and wmem_max, any congestion control",
);
const THROUGHPUT_BUFFERS: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "--throughput",
    "socket buffers above net.core.rmem_max and wmem_max",
);
const FAST_INTERVALS: KeptCapability = capability_row(
    CAP_NET_ADMIN,
    "an interval below 1 ms",
    "receive buffer above net.core.rmem_max",
);

impl Row {
    pub(crate) const REFLECT: Self = row("reflect", &[THROUGHPUT_BUFFERS], LIBRARY_PATHS);
    pub(crate) const HEALTH: Self = row("health", &[], DEFAULT_PATHS);
    pub(crate) const PING: Self = row(
        "ping",
        &[
            ICMP,
            REAL_TIME_PRIORITY,
            FAST_INTERVALS,
            capability_row(
                CAP_NET_ADMIN,
                "--congestion",
                "use a congestion control that only root may load or use",
            ),
            capability_row(
                CAP_NET_BIND_SERVICE,
                "--source-port below 1024",
                "bind the port at each connection",
            ),
        ],
        DEFAULT_PATHS,
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
                "receive buffer above net.core.rmem_max, delivery of all replies to one socket (sk_lookup)",
            ),
            capability_row(
                CAP_BPF,
                "",
                "delivery of all replies to one socket (sk_lookup)",
            ),
            REAL_TIME_PRIORITY,
        ],
        DEFAULT_PATHS,
    );
    pub(crate) const TRACE: Self = row(
        "trace",
        &[capability_row(CAP_NET_RAW, "", "probes and ICMP errors")],
        DEFAULT_PATHS,
    );
    pub(crate) const CLOCK: Self = row(
        "clock",
        &[REAL_TIME_PRIORITY, FAST_INTERVALS],
        DEFAULT_PATHS,
    );
    pub(crate) const CLOCK_CAPTURES: Self = row("clock --captures", &[], LIBRARY_PATHS);
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
            IDLE_PRIORITY_END,
            LOCKED_MEMORY,
            capability_row(
                CAP_NET_BIND_SERVICE,
                "--prometheus below 1024",
                "bind the port",
            ),
            SITE,
        ],
        DEFAULT_PATHS,
    );
    pub(crate) const HOPS: Self = row("hops of files", &[IDLE_PRIORITY_END], DEFAULT_PATHS);
    pub(crate) const HOPS_LIVE: Self = row(
        "hops of live points",
        &[
            capability_row(CAP_NET_RAW, "", "packet sockets"),
            IDLE_PRIORITY_END,
            LOCKED_MEMORY,
            capability_row(
                CAP_SYS_ADMIN,
                "iface:NAME@SITE",
                "enter the namespaces of sites",
            ),
        ],
        DEFAULT_PATHS,
    );
    pub(crate) const STRESS: Self = row("stress", &[], DEFAULT_PATHS);
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
                "real-time priority of the sending thread, return from idle to normal priority when packets wait",
            ),
            capability_row(
                CAP_IPC_LOCK,
                "capture in its policy",
                "receive buffer in locked memory, which is never swapped out",
            ),
            capability_row(
                CAP_NET_ADMIN,
                "fleet in its policy",
                "receive buffer above net.core.rmem_max, delivery of all replies to one socket (sk_lookup)",
            ),
            capability_row(
                CAP_BPF,
                "fleet in its policy",
                "delivery of all replies to one socket (sk_lookup)",
            ),
            capability_row(
                CAP_NET_BIND_SERVICE,
                "listen below 1024 in its policy",
                "reflectors at these ports",
            ),
        ],
        DEFAULT_PATHS,
    );
    pub(crate) const THROUGHPUT: Self = row("throughput", &[BUFFERS], DEFAULT_PATHS);
    pub(crate) const RR: Self = row("rr", &[], DEFAULT_PATHS);
    pub(crate) const LOAD: Self = row("load", &[], DEFAULT_PATHS);
    pub(crate) const THROUGHPUT_SERVE: Self = row("throughput serve", &[BUFFERS], LIBRARY_PATHS);
    pub(crate) const MEDIA: Self = row(
        "media",
        &[capability_row(
            CAP_NET_ADMIN,
            "",
            "receive buffers above net.core.rmem_max",
        )],
        DEFAULT_PATHS,
    );
    pub(crate) const MEDIA_SERVE: Self = row("media serve", &[], LIBRARY_PATHS);
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
    pub(super) fn always_kept(&self) -> impl Iterator<Item = Capability> {
        let kept = self
            .capabilities
            .iter()
            .filter(|kept_capability| kept_capability.option.is_empty());
        kept.map(|kept_capability| kept_capability.capability)
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

    const ALL: [Row; 18] = [
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
        Row::LOAD,
        Row::MEDIA,
        Row::MEDIA_SERVE,
    ];

    /// The table in Markdown.
    fn render_table() -> String {
        let mut text = "| command | capability | with | for |\n|---|---|---|---|\n".to_owned();
        for row in ALL {
            if row.capabilities.is_empty() {
                text.push_str(&format!("| `{}` | none | | |\n", row.name));
            }
            for kept_capability in row.capabilities {
                let (name, reason) = (kept_capability.capability, kept_capability.reason);
                let option = if kept_capability.option.is_empty() {
                    "always"
                } else {
                    kept_capability.option
                };
                text.push_str(&format!(
                    "| `{}` | {name} | {option} | {reason} |\n",
                    row.name
                ));
            }
        }
        text
    }

    #[test]
    fn the_documentation_shows_this_table() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        let read_page = |name: &str| fs::read_to_string(format!("{docs}{name}"));
        let page = read_page("security-privileges.md").expect("a page about privileges");
        assert!(
            page.contains(&render_table()),
            "write into docs:\n{}",
            render_table()
        );
    }
}
