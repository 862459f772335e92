//! A traceroute: the routers that answered on the path to a destination.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Span, Wall};

/// One hop with all its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// Distance in hops, from 1.
    pub ttl: u8,
    /// Addresses that answered; empty if none did.
    pub addresses: Vec<IpAddr>,
    /// Round trips of the answers, nanoseconds. Routers answer with low priority: these are upper
    /// bounds.
    pub round_trips: Vec<Span>,
}

/// The routers on the path to a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traceroute {
    /// The block, from 0.
    pub block: u32,
    /// Name of the endpoint, or the requested address.
    pub endpoint: String,
    /// Site that sent the probes; null for the host itself.
    pub site: Option<String>,
    /// Address of the destination.
    pub destination: IpAddr,
    /// Start time, Unix nanoseconds.
    pub started: Wall,
    /// The hops, by distance.
    pub hops: Vec<Hop>,
    /// Whether the destination answered.
    pub reached: bool,
    /// Why the traceroute failed; null otherwise.
    pub failure: Option<String>,
}

/// The distance of a destination in hops, as a range; both limits are equal if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteLength {
    /// Lower limit: one hop beyond the farthest router that answered.
    pub least: u8,
    /// Upper limit: the first hop at which the destination answered.
    pub most: u8,
}

impl Traceroute {
    /// The distance of the destination, if it was reached. Hosts limit how often they answer: if
    /// the hops before the last are silent, one of them may be the destination already.
    pub fn length(&self) -> Option<RouteLength> {
        let last = self.hops.last().filter(|_| self.reached)?;
        let mut before = self.hops.iter().rev().skip(1);
        let farthest = before.find(|hop| !hop.addresses.is_empty());
        Some(RouteLength {
            least: farthest.map_or(0, |hop| hop.ttl).saturating_add(1),
            most: last.ttl,
        })
    }
}

impl RouteLength {
    /// Whether the exact distance is known.
    pub fn is_sure(self) -> bool {
        self.least == self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends at the first of `answers` that is the destination's; `.` is a silent hop.
    fn length(answers: &str) -> Option<RouteLength> {
        let hops = answers.bytes().zip(1..).map(|(answer, ttl)| Hop {
            ttl,
            addresses: (answer != b'.')
                .then(|| IpAddr::from([10, 0, 0, answer]))
                .into_iter()
                .collect(),
            round_trips: Vec::new(),
        });
        let route = Traceroute {
            block: 0,
            endpoint: "e".to_owned(),
            site: None,
            destination: IpAddr::from([10, 0, 0, b'D']),
            started: Wall::from_unix_nanos(0),
            hops: hops.collect(),
            reached: answers.ends_with('D'),
            failure: None,
        };
        route.length()
    }

    #[test]
    fn a_path_length_is_certain_only_after_a_router_that_answered() {
        let of = |least, most| Some(RouteLength { least, most });
        assert_eq!(length("D"), of(1, 1));
        assert_eq!(length("rD"), of(2, 2));
        assert_eq!(length("r.rD"), of(4, 4));
        assert_eq!(length("r.......D"), of(2, 9));
        assert_eq!(length(".D"), of(1, 2));
        assert_eq!(length("r.r"), None);
        assert!(of(2, 2).is_some_and(RouteLength::is_sure));
        assert!(!of(2, 9).is_some_and(RouteLength::is_sure));
    }
}
