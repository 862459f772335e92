//! A traceroute: the routers towards a destination that answered.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Span, Wall};

/// One hop: all its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Its distance, from 1.
    pub ttl: u8,
    /// Who answered; empty if nobody did.
    pub addresses: Vec<IpAddr>,
    /// Round-trip times of the answers. Routers answer late: these are upper bounds.
    pub round_trips: Vec<Span>,
}

/// The routers towards a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
