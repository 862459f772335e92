//! A traceroute: the routers towards a destination that answered.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Span, Wall};

/// One hop: all its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// Its distance, from 1.
    pub ttl: u8,
    /// Who answered; empty if nobody did.
    pub addresses: Vec<IpAddr>,
    /// Round-trip times of the answers. Routers answer late: these are upper bounds.
    pub round_trips: Vec<Span>,
}

/// The routers towards a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traceroute {
    /// The block, from 0.
    pub block: u32,
    /// The endpoint's name, or the address asked for.
    pub endpoint: String,
    /// The site that asked; absent: the host as it is.
    pub site: Option<String>,
    /// The destination.
    pub destination: IpAddr,
    /// When it started.
    pub started: Wall,
    /// The hops, in order.
    pub hops: Vec<Hop>,
    /// Whether the destination itself answered.
    pub reached: bool,
    /// Why there is no route, if there is none.
    pub failure: Option<String>,
}

/// How many hops away a destination is: between the two, or just as many where they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteLength {
    /// One hop behind the farthest router that answered.
    pub least: u8,
    /// The first hop that the destination answered.
    pub most: u8,
}

impl Traceroute {
    /// How far the destination is, if it was reached. Hosts limit how often they answer: where
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
    /// Whether it is known to the hop.
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
    fn a_length_is_sure_only_behind_a_router_that_answered() {
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
