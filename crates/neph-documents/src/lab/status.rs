//! Labs of this host, their sites, and the status of their services and links.

use neph_lab::{
    DirectionStatus, LabListing, LabStatus, RerouteStatus, ServiceStatus, Step, TrafficStatus,
};
use neph_model::{ByteSize, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rows;
use crate::version::Version;

crate::rows! {
    /// A lab of this host.
    pub struct LabRow {
        /// Name of the lab.
        name: String => left "NAME",
        /// Whether the process that owns it is alive.
        owner_alive: bool => left "STATE" by |row| match (row.owner_alive, row.is_whole) {
            (true, true) => "up",
            (true, false) => "coming up",
            (false, _) => "left behind",
        }.to_owned(),
        /// Id of that process; null if not known.
        owner: Option<u32> => right "PROCESS",
        /// Network namespaces of its sites.
        namespaces: Vec<String> => left "NAMESPACES" by |row| row.namespaces.join(" "),
        ; shown
        /// Whether the lab is completely up.
        is_whole: bool,
    }
}

impl From<LabListing> for LabRow {
    fn from(lab: LabListing) -> Self {
        Self {
            owner_alive: lab.is_owner_alive,
            owner: lab.owner,
            is_whole: lab.is_complete,
            name: lab.name,
            namespaces: lab.namespaces,
        }
    }
}

crate::rows! {
    /// A site of a lab.
    pub struct SiteRow {
        /// Name of the site.
        site: String => left "SITE",
        /// Addresses of the site.
        addresses: String => left "ADDRESSES",
        /// Command that enters the site.
        enter: String => left "ENTER BY",
    }
}

crate::rows! {
    /// A step that brings a lab up.
    pub struct StepRow {
        /// Network namespace of the step.
        namespace: String => left "NAMESPACE",
        /// Command of the step.
        step: String => left "STEP",
    }
}

impl From<&Step> for StepRow {
    fn from(step: &Step) -> Self {
        Self {
            namespace: step.namespace.clone(),
            step: step.line.clone(),
        }
    }
}

crate::rows! {
    /// The calculated latency of a protocol over the emulated delays.
    pub struct PredictionRow {
        /// Site that sends requests.
        from: String => left "FROM",
        /// Site that replies.
        to: String => left "TO",
        /// Name of the protocol.
        protocol: &'static str => left "PROTOCOL",
        /// Round trips until the first reply to a small message.
        round_trips: u64 => right "ROUND TRIPS",
        /// Time until the first reply to a small message.
        small_ns: Span => right "SMALL MESSAGE",
        /// Time until the first reply to a large message.
        large_ns: Span => right "LARGE MESSAGE",
        /// Size of the large message.
        large_bytes: ByteSize => right "LARGE SIZE",
    }
}

/// The status of a lab.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LabStatusDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Name of the lab.
    pub lab: String,
    /// Id of the process that owns it; null if not known.
    pub process: Option<u32>,
    /// Services of the lab.
    pub services: Vec<ServiceRow>,
    /// Background traffic of the lab.
    pub traffic: Vec<TrafficRow>,
    /// Route changes.
    pub reroutes: Vec<RerouteRow>,
    /// Links of the lab, one entry per direction.
    pub links: Vec<LinkRow>,
}

crate::rows! {
    /// A service of a lab.
    pub struct ServiceRow {
        /// Name of the service.
        service: String => left "SERVICE",
        /// Site of the service.
        site: String => left "SITE",
        /// State: `up`, `ready` or `ended`.
        state: String => left "STATE",
        /// Exit status; null while it runs, and after a signal.
        exit_status: Option<i32> => right "STATUS",
    }
}

crate::rows! {
    /// Background traffic of a lab.
    pub struct TrafficRow {
        /// Name of the traffic.
        traffic: String => left "TRAFFIC",
        /// Whether the traffic is on now.
        on: bool => left "NOW" by |row| if row.on { "on" } else { "off" }.to_owned(),
        /// Bytes received since the lab came up.
        received_bytes: ByteSize => right "RECEIVED",
    }
}

crate::rows! {
    /// A route change; entries count from 0, as in the topology.
    pub struct RerouteRow {
        /// Index in the topology.
        entry: u64 => right "REROUTE",
        /// Site of the router.
        site: String => left "SITE",
        /// Name of the link; null if the flows are reshuffled instead.
        link: Option<String> => left "LINK",
        /// Whether the route change is active now.
        active: bool => left "NOW" by |row| if row.active { "active" } else { "inactive" }.to_owned(),
        /// Number of times that the route change began.
        activations: u64 => right "COUNT",
        /// When the route change was last applied, since the start of the schedule; null if it was
        /// never applied.
        last_ns: Option<Span> => right "LAST, SINCE CUE",
        /// Number of times that the kernel refused the route change.
        refused: u64 => right "REFUSED",
    }
}

crate::rows! {
    /// One direction of a link since the lab came up. Numbers are null if the kernel emulates the
    /// link.
    pub struct LinkRow {
        /// Name of the link.
        link: String => left "LINK",
        /// Site that sends.
        from: String => left "FROM",
        /// Site that receives.
        to: String => left "TO",
        /// Packets delivered.
        delivered: Option<u64> => right "DELIVERED",
        /// Packets dropped as configured.
        lost: Option<u64> => right "LOST",
        /// Packets dropped because the queue was full.
        queue_full: Option<u64> => right "QUEUE FULL",
        /// Packets lost although not configured.
        lost_by_emulation: Option<u64> => right "LOST BY LAB",
        /// Packets delivered late.
        late: Option<u64> => right "LATE",
        /// Largest lateness.
        worst_lateness_ns: Option<Span> => right "MAX LATE",
        /// Scheduling of the link's thread: `real-time`, `real-time, memory not locked` or
        /// `ordinary priority`.
        scheduling: Option<&'static str> => left "SCHEDULING",
    }
}

impl LabStatusDocument {
    /// The document of a lab's status.
    pub fn of(lab: &LabListing, status: &LabStatus) -> Self {
        Self {
            schema: Version,
            lab: lab.name.clone(),
            process: lab.owner,
            services: status.services.iter().map(service_row).collect(),
            traffic: status.traffic.iter().map(traffic_row).collect(),
            reroutes: (0..)
                .zip(&status.reroutes)
                .map(|(entry, status)| reroute_row(entry, status))
                .collect(),
            links: status.links.iter().map(link_row).collect(),
        }
    }

    /// The text form: a table of each kind that the lab has.
    pub fn text(&self) -> String {
        let tables = [
            rows::table(&self.services),
            rows::table(&self.traffic),
            rows::table(&self.reroutes),
        ];
        let tables = tables.iter().filter(|table| !table.is_empty());
        let mut text: String = tables.map(|table| table.text() + "\n").collect();
        text.push_str(&rows::text(&self.links));
        text
    }
}

fn service_row(service: &ServiceStatus) -> ServiceRow {
    ServiceRow {
        service: service.name.clone(),
        site: service.site.clone(),
        state: service.state.clone(),
        exit_status: service.exit_status,
    }
}

fn traffic_row(traffic: &TrafficStatus) -> TrafficRow {
    TrafficRow {
        traffic: traffic.name.clone(),
        on: traffic.on,
        received_bytes: ByteSize(traffic.received),
    }
}

fn reroute_row(entry: u64, reroute: &RerouteStatus) -> RerouteRow {
    RerouteRow {
        entry,
        site: reroute.site.clone(),
        link: reroute.link.clone().filter(|link| !link.is_empty()),
        active: reroute.holds,
        activations: reroute.times,
        last_ns: reroute.last_ns.map(Span::from_nanos),
        refused: reroute.refused,
    }
}

fn link_row(status: &DirectionStatus) -> LinkRow {
    // Without numbers, the kernel emulates the link and counts for itself.
    let counts = status.counts.as_ref();
    let scheduling = counts.map(|counts| match (counts.real_time, counts.locked) {
        (true, true) => "real-time",
        (true, false) => "real-time, memory not locked",
        (false, _) => "ordinary priority",
    });
    LinkRow {
        link: status.link.clone(),
        from: status.from.clone(),
        to: status.to.clone(),
        delivered: counts.map(|counts| counts.delivered),
        lost: counts.map(|counts| counts.lost),
        queue_full: counts.map(|counts| counts.queue_full),
        lost_by_emulation: counts.map(|counts| counts.broken),
        late: counts.map(|counts| counts.late),
        worst_lateness_ns: counts.map(|counts| Span::from_nanos(counts.worst_lateness_ns)),
        scheduling,
    }
}
