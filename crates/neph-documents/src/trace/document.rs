//! A trace as JSON, as a document per line, and as CSV. Times are integers of nanoseconds.

use std::io::{self, Write};
use std::net::IpAddr;

use neph_model::{Diamond, FlowHop, FlowRoute, FlowTrace, ReadBy, Span, TraceKind, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::replies::three;
use crate::rows::{csv_line, keys};
use crate::version::Version;

/// One document with everything.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TraceDocument<'t> {
    /// What was traced.
    #[serde(flatten)]
    pub head: TraceHead,
    /// The route of each flow.
    pub flows: &'t [FlowRoute],
    /// All routes as one drawing.
    pub diamond: &'t Diamond,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TraceLine<'t> {
    /// The route of one flow.
    Flow {
        /// The route.
        flow: &'t FlowRoute,
    },
    /// The last line: what was traced, and all routes as one drawing.
    Diamond {
        /// What was traced.
        #[serde(flatten)]
        head: TraceHead,
        /// The drawing.
        diamond: &'t Diamond,
    },
}

/// What was traced.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TraceHead {
    /// The version of these keys.
    pub schema: Version,
    /// The address that was looked for.
    pub destination: IpAddr,
    /// Its port; 0 for ICMP.
    pub port: u16,
    /// The packets that were sent.
    pub kind: TraceKind,
    /// When it began, Unix time in nanoseconds.
    pub started_unix_ns: Wall,
    /// Whether enough flows were traced to rule out a further next hop behind each router; null
    /// where the flows were given.
    pub enough_flows: Option<bool>,
}

impl TraceHead {
    const fn of(trace: &FlowTrace) -> Self {
        Self {
            schema: Version,
            destination: trace.destination.ip(),
            port: trace.destination.port(),
            kind: trace.kind,
            started_unix_ns: trace.started,
            enough_flows: trace.enough,
        }
    }
}

impl<'t> TraceDocument<'t> {
    /// Of a trace and its drawing.
    pub fn of(trace: &'t FlowTrace, diamond: &'t Diamond) -> Self {
        Self {
            head: TraceHead::of(trace),
            flows: &trace.routes,
            diamond,
        }
    }

    /// The same as lines: each flow, the drawing last.
    pub fn lines(&self) -> impl Iterator<Item = TraceLine<'t>> {
        let flows = self.flows.iter().map(|flow| TraceLine::Flow { flow });
        flows.chain([TraceLine::Diamond {
            head: self.head,
            diamond: self.diamond,
        }])
    }
}

crate::rows! {
    /// One hop of one flow: a line of CSV.
    pub struct HopRow {
        /// The flow's source port; for ICMP its identifier.
        source_port: u16,
        /// The fingerprint of its path.
        path: String,
        /// The distance, from 1.
        ttl: u8,
        /// The address that replied most often.
        address: Option<IpAddr>,
        /// Other addresses that replied, separated by spaces.
        others: String,
        /// How many probes were sent.
        asked: u32,
        /// How many replies there were.
        replies: usize,
        /// The shortest round trip in nanoseconds.
        best_ns: Option<Span>,
        /// The median round trip in nanoseconds.
        median_ns: Option<Span>,
        /// The longest round trip in nanoseconds.
        worst_ns: Option<Span>,
        /// Whether the kernel or the program read the clock.
        read_by: ReadBy,
        /// MPLS labels, outermost first, separated by spaces.
        labels: String,
    }
}

impl HopRow {
    fn of(route: &FlowRoute, hop: &FlowHop) -> Self {
        let others: Vec<String> = hop.others.iter().map(ToString::to_string).collect();
        let labels: Vec<String> = hop.labels.iter().map(|one| one.label.to_string()).collect();
        let [best_ns, median_ns, worst_ns] = three(&hop.round_trips);
        Self {
            source_port: route.source_port,
            path: route.hash.to_string(),
            ttl: hop.ttl,
            address: hop.address,
            others: others.join(" "),
            asked: hop.asked,
            replies: hop.round_trips.len(),
            best_ns,
            median_ns,
            worst_ns,
            read_by: hop.read_by,
            labels: labels.join(" "),
        }
    }
}

/// Writes CSV: a line for each hop of each flow.
///
/// # Errors
/// It cannot be written.
pub fn write_csv(trace: &FlowTrace, out: &mut dyn Write) -> io::Result<()> {
    let keys = keys::<HopRow>();
    writeln!(out, "{}", keys.join(","))?;
    for route in &trace.routes {
        for hop in &route.hops {
            writeln!(out, "{}", csv_line(&keys, &HopRow::of(route, hop)))?;
        }
    }
    Ok(())
}
