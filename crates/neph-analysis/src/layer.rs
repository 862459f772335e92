//! The layers of a message's time that are compared with each other.

use neph_model::StageSet;

/// A layer of a message's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// From when the schedule said to the reply.
    Response,
    /// From the program's first act to the reply.
    Service,
    /// From the last byte's departure to its acknowledgement by the peer's TCP.
    Acknowledgement,
    /// Both directions of the network by kernel stamps.
    Network,
    /// The ICMP echo that ran beside.
    Icmp,
    /// The ICMP echo to a ping destination of that name.
    Ping(String),
    /// One entry of the ledger.
    Entry(StageSet),
}

impl Layer {
    /// Its name on screen and in files.
    pub fn name(&self) -> String {
        match self {
            Self::Response => "response time".to_owned(),
            Self::Service => "service time".to_owned(),
            Self::Acknowledgement => "TCP acknowledgement".to_owned(),
            Self::Network => "network round trip (kernel stamps)".to_owned(),
            Self::Icmp => "ICMP echo".to_owned(),
            Self::Ping(destination) => format!("ICMP echo to {destination}"),
            Self::Entry(set) => format!("stage: {set}"),
        }
    }
}
