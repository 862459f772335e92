//! A trace as JSON, as a document per line, and as CSV. Times are integers of nanoseconds.

use std::io::{self, Write};
use std::net::IpAddr;

use neph_model::{Diamond, FlowHop, FlowRoute, FlowTrace, ReadBy, Span, TraceKind, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::replies::min_median_max;
use crate::rows::{csv_line, keys};
use crate::version::Version;

/// The JSON document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TraceDocument<'t> {
    /// Facts about the trace.
    #[serde(flatten)]
    pub head: TraceHead,
    /// The route of each flow.
    pub flows: &'t [FlowRoute],
    /// Union of all routes.
    pub diamond: &'t Diamond,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TraceLine<'t> {
    /// The route of one flow.
    Flow {
        /// The route.
        flow: &'t FlowRoute,
    },
    /// The last line: facts about the trace, and the union of all routes.
    Diamond {
        /// Facts about the trace.
        #[serde(flatten)]
        head: TraceHead,
        /// Union of all routes.
        diamond: &'t Diamond,
    },
}

/// Facts about a trace.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TraceHead {
    /// Version of this schema.
    pub schema: Version,
    /// Address of the destination.
    pub destination: IpAddr,
    /// Port of the destination; 0 for ICMP.
    pub port: u16,
    /// Kind of probe packets.
    pub kind: TraceKind,
    /// When it began.
    pub started_unix_ns: Wall,
    /// Whether enough flows were traced to rule out a further next hop behind each router; null if
    /// the user chose the flows.
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
    /// The document of a trace and of the union of its routes.
    pub fn of(trace: &'t FlowTrace, diamond: &'t Diamond) -> Self {
        Self {
            head: TraceHead::of(trace),
            flows: &trace.routes,
            diamond,
        }
    }

    /// The same as lines: each flow, then the union of all routes.
    pub fn lines(&self) -> impl Iterator<Item = TraceLine<'t>> {
        let flows = self.flows.iter().map(|flow| TraceLine::Flow { flow });
        flows.chain([TraceLine::Diamond {
            head: self.head,
            diamond: self.diamond,
        }])
    }
}

crate::rows! {
    /// One hop of one flow: a CSV line.
    pub struct HopRow {
        /// Local source port; for ICMP the identifier.
        source_port: u16,
        /// Hash of its path.
        path: String,
        /// Distance in hops, from 1.
        ttl: u8,
        /// Address that replied most often; empty if none did.
        address: Option<IpAddr>,
        /// Other addresses that replied, separated by spaces.
        other_addresses: String,
        /// Number of probes sent.
        probes: u32,
        /// Number of replies from `address`.
        replies: usize,
        /// Minimum round trip; empty without a reply.
        best_ns: Option<Span>,
        /// Median round trip; empty without a reply.
        median_ns: Option<Span>,
        /// Maximum round trip; empty without a reply.
        worst_ns: Option<Span>,
        /// Who read the clock: `kernel`, or `program` for neph.
        read_by: ReadBy,
        /// MPLS labels, outermost first, separated by spaces.
        labels: String,
    }
}

impl HopRow {
    fn of(route: &FlowRoute, hop: &FlowHop) -> Self {
        let other_addresses: Vec<String> = hop
            .other_addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        let labels: Vec<String> = hop
            .labels
            .iter()
            .map(|label| label.label.to_string())
            .collect();
        let [best_ns, median_ns, worst_ns] = min_median_max(&hop.round_trips);
        Self {
            source_port: route.source_port,
            path: route.hash.to_string(),
            ttl: hop.ttl,
            address: hop.address,
            other_addresses: other_addresses.join(" "),
            probes: hop.probes,
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
    let columns = keys::<HopRow>();
    writeln!(out, "{}", columns.join(","))?;
    for route in &trace.routes {
        for hop in &route.hops {
            writeln!(out, "{}", csv_line(&columns, &HopRow::of(route, hop)))?;
        }
    }
    Ok(())
}
