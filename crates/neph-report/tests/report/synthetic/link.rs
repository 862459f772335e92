//! Links: what lies between the client and an endpoint.

/// A link to an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) round_trip_ms: f64,
    pub(crate) up_mbit: f64,
    pub(crate) loss: f64,
    pub(crate) reflector: bool,
    /// How long the server works on each message.
    pub(crate) work_ms: f64,
}

pub(crate) const METRO: Link = Link {
    name: "metro",
    round_trip_ms: 4.0,
    up_mbit: 1000.0,
    loss: 0.0,
    reflector: true,
    work_ms: 0.0,
};
pub(crate) const CONTINENT: Link = Link {
    name: "continent",
    round_trip_ms: 40.0,
    up_mbit: 200.0,
    loss: 0.001,
    reflector: true,
    work_ms: 0.0,
};
pub(crate) const HOME: Link = Link {
    name: "home",
    round_trip_ms: 12.0,
    up_mbit: 3.0,
    loss: 0.002,
    reflector: true,
    work_ms: 0.0,
};
pub(crate) const PROXIED: Link = Link {
    name: "through-an-L7-proxy",
    round_trip_ms: 22.0,
    up_mbit: 100.0,
    loss: 0.0,
    reflector: false,
    work_ms: 0.0,
};
pub(crate) const FAR: Link = Link {
    name: "us-west-2.example.net",
    round_trip_ms: 152.0,
    up_mbit: 50.0,
    loss: 0.004,
    reflector: true,
    work_ms: 0.0,
};
/// Somebody else's server: near, slow, and without marks of its own.
pub(crate) const FOREIGN: Link = Link {
    name: "foreign",
    round_trip_ms: 10.0,
    up_mbit: 1000.0,
    loss: 0.0,
    reflector: false,
    work_ms: 90.0,
};
