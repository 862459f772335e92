//! The paths of flows, as rows.

use std::collections::BTreeSet;
use std::net::IpAddr;

use neph_model::{Diamond, Span};

use super::replies::{min_median_max, share_text};

/// Maximum number of ports of a path that are listed; the others are counted.
const MAX_PORTS: usize = 6;

crate::rows! {
    /// A path and its flows.
    pub struct PathRow {
        /// Hash of its addresses.
        path: String => left "PATH",
        /// Number of flows on it.
        flows: u32 => right "FLOWS" by |row| share_text(row.flows, row.all_flows),
        /// Number of hops.
        hops: usize => right "HOPS",
        /// Minimum round trip to the destination; null without a reply.
        best_ns: Option<Span> => right "BEST",
        /// Median round trip to the destination; null without a reply.
        median_ns: Option<Span> => right "MEDIAN",
        /// Addresses at the distances where paths differ; null if nothing replied.
        via: Vec<Option<IpAddr>> => left "VIA" by |row| via_text(&row.via),
        /// Source ports of its flows.
        ports: Vec<u16> => left "PORTS" by |row| ports_text(&row.ports),
        ; shown
        /// Number of flows on all paths.
        all_flows: u32,
    }
}

impl PathRow {
    /// The paths of a trace, those with most flows first.
    pub fn all(diamond: &Diamond) -> Vec<Self> {
        let differing_ttls = diamond.hops.iter().filter(|hop| hop.nodes.len() > 1);
        let differing_ttls: BTreeSet<u8> = differing_ttls.map(|hop| hop.ttl).collect();
        let rows = diamond.paths.iter().map(|path| {
            let [best_ns, median_ns, _] = min_median_max(&path.round_trips);
            let addresses = path.addresses.iter().zip(1u8..);
            let via = addresses.filter(|(_, ttl)| differing_ttls.contains(ttl));
            Self {
                path: path.hash.to_string(),
                flows: u32::try_from(path.source_ports.len()).unwrap_or(u32::MAX),
                hops: path.addresses.len(),
                best_ns,
                median_ns,
                via: via.map(|(address, _)| *address).collect(),
                ports: path.source_ports.clone(),
                all_flows: diamond.flows,
            }
        });
        rows.collect()
    }
}

/// `192.0.2.1 > * > 192.0.2.7`
fn via_text(addresses: &[Option<IpAddr>]) -> String {
    let addresses = addresses.iter();
    let texts =
        addresses.map(|hop| hop.map_or_else(|| "*".to_owned(), |address| address.to_string()));
    texts.collect::<Vec<_>>().join(" > ")
}

fn ports_text(ports: &[u16]) -> String {
    let listed: Vec<String> = ports
        .iter()
        .take(MAX_PORTS)
        .map(ToString::to_string)
        .collect();
    let mut text = listed.join(" ");
    if ports.len() > MAX_PORTS {
        text.push_str(&format!(" and {} more", ports.len() - MAX_PORTS));
    }
    text
}
