//! Labs of this machine, their sites, and what their services and links do right now.

use neph_lab::{
    DirectionStatus, LabListing, LabStatus, RerouteStatus, ServiceStatus, Step, TrafficStatus,
};
use neph_model::{ByteSize, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rows;
use crate::version::Version;

crate::rows! {
    /// A lab of this machine.
    pub struct LabRow {
        /// Its name.
        name: String => left "NAME",
        /// Whether the process that keeps it is alive.
        owner_alive: bool => left "STATE" by |row| match (row.owner_alive, row.is_whole) {
            (true, true) => "up",
            (true, false) => "coming up",
            (false, _) => "left behind",
        }.to_owned(),
        /// That process.
        owner: Option<u32> => right "PROCESS",
        /// The network namespaces of its sites.
        namespaces: Vec<String> => left "NAMESPACES" by |row| row.namespaces.join(" "),
        ; shown
        /// Whether everything of it is up.
        is_whole: bool,
    }
}

impl From<LabListing> for LabRow {
    fn from(lab: LabListing) -> Self {
        Self {
            owner_alive: lab.owner_alive,
            owner: lab.owner,
            is_whole: lab.is_whole,
            name: lab.name,
            namespaces: lab.namespaces,
        }
    }
}

crate::rows! {
    /// A site of a lab, and how to enter it.
    pub struct SiteRow {
        /// Its name.
        site: String => left "SITE",
        /// Its addresses.
        addresses: String => left "ADDRESSES",
        /// The command that enters it.
        enter: String => left "ENTER BY",
    }
}

crate::rows! {
    /// A step of bringing a lab up.
    pub struct StepRow {
        /// The network namespace in which it is carried out.
        namespace: String => left "NAMESPACE",
        /// The command.
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
    /// What a protocol makes of a delay, by calculation.
    pub struct PredictionRow {
        /// The site that asks.
        from: String => left "FROM",
        /// The site that replies.
        to: String => left "TO",
        /// The protocol.
        protocol: &'static str => left "PROTOCOL",
        /// Round trips until the first reply to a small message.
        round_trips: u64 => right "ROUND TRIPS",
        /// The time until the reply to a small message, in nanoseconds.
        small_ns: Span => right "SMALL MESSAGE",
        /// The time until the reply to a large message, in nanoseconds.
        large_ns: Span => right "LARGE ONE",
        /// The size of the large message in bytes.
        large_bytes: ByteSize => right "OF",
    }
}

/// What a lab does right now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LabStatusDocument {
    /// The version of these keys.
    pub schema: Version,
    /// Its name.
    pub lab: String,
    /// The process that keeps it.
    pub process: Option<u32>,
    /// Its services.
    pub services: Vec<ServiceRow>,
    /// Its traffic.
    pub traffic: Vec<TrafficRow>,
    /// Changes of routes.
    pub reroutes: Vec<RerouteRow>,
    /// Its links, each direction.
    pub links: Vec<LinkRow>,
}

crate::rows! {
    /// A service of a lab.
    pub struct ServiceRow {
        /// Its name.
        service: String => left "SERVICE",
        /// Its site.
        site: String => left "SITE",
        /// Whether it runs.
        state: String => left "STATE",
        /// The exit status, where it has ended.
        exit_status: Option<i32> => right "STATUS",
    }
}

crate::rows! {
    /// Traffic of a lab.
    pub struct TrafficRow {
        /// Its name.
        traffic: String => left "TRAFFIC",
        /// Whether it flows now.
        on: bool => left "NOW" by |row| if row.on { "flows" } else { "rests" }.to_owned(),
        /// Bytes that were received.
        received_bytes: ByteSize => right "RECEIVED",
    }
}

crate::rows! {
    /// A change of routes; entries count from 0, as in the topology.
    pub struct RerouteRow {
        /// The entry in the topology.
        entry: u64 => right "REROUTE",
        /// The site.
        site: String => left "SITE",
        /// The link.
        link: Option<String> => left "LINK",
        /// Whether it is in force.
        holds: bool => left "NOW" by |row| if row.holds { "holds" } else { "rests" }.to_owned(),
        /// How often it came about.
        times: u64 => right "TIMES",
        /// The last time, in nanoseconds after the cue.
        last_ns: Option<Span> => right "LAST AFTER THE CUE",
        /// How often the kernel refused it.
        refused: u64 => right "REFUSED",
    }
}

crate::rows! {
    /// One direction of a link. Counts are null where the kernel carries it.
    pub struct LinkRow {
        /// The link.
        link: String => left "LINK",
        /// The site that sends.
        from: String => left "FROM",
        /// The site that receives.
        to: String => left "TO",
        /// Packets that were delivered.
        delivered: Option<u64> => right "DELIVERED",
        /// Packets that were dropped as the topology asks.
        lost: Option<u64> => right "LOST",
        /// Packets that found the queue full.
        queue_full: Option<u64> => right "QUEUE FULL",
        /// Packets that the link failed to carry.
        broken: Option<u64> => right "BROKEN",
        /// Packets that were delivered late.
        late: Option<u64> => right "LATE",
        /// The largest lateness in nanoseconds.
        worst_lateness_ns: Option<Span> => right "WORST",
        /// The scheduling of the link's thread.
        scheduling: Option<&'static str> => left "SCHEDULING",
    }
}

impl LabStatusDocument {
    /// Of a lab's status.
    pub fn of(lab: &LabListing, status: &LabStatus) -> Self {
        Self {
            schema: Version,
            lab: lab.name.clone(),
            process: lab.owner,
            services: status.services.iter().map(service).collect(),
            traffic: status.traffic.iter().map(traffic).collect(),
            reroutes: (0..)
                .zip(&status.reroutes)
                .map(|(entry, status)| reroute(entry, status))
                .collect(),
            links: status.links.iter().map(link).collect(),
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

fn service(service: &ServiceStatus) -> ServiceRow {
    ServiceRow {
        service: service.name.clone(),
        site: service.site.clone(),
        state: service.state.clone(),
        exit_status: service.exit_status,
    }
}

fn traffic(traffic: &TrafficStatus) -> TrafficRow {
    TrafficRow {
        traffic: traffic.name.clone(),
        on: traffic.on,
        received_bytes: ByteSize(traffic.received),
    }
}

fn reroute(entry: u64, reroute: &RerouteStatus) -> RerouteRow {
    RerouteRow {
        entry,
        site: reroute.site.clone(),
        link: reroute.link.clone().filter(|link| !link.is_empty()),
        holds: reroute.holds,
        times: reroute.times,
        last_ns: reroute.last_ns.map(Span::from_nanos),
        refused: reroute.refused,
    }
}

fn link(status: &DirectionStatus) -> LinkRow {
    // Where there are no counts, the kernel carries the link and counts for itself.
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
        broken: counts.map(|counts| counts.broken),
        late: counts.map(|counts| counts.late),
        worst_lateness_ns: counts.map(|counts| Span::from_nanos(counts.worst_lateness_ns)),
        scheduling,
    }
}
