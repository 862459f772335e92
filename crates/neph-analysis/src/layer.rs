//! The layers of a message's time that are compared with each other.

use neph_model::StageSet;

/// A layer of a message's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// From the scheduled send time to the reply.
    Response,
    /// From the client application's first action to the reply.
    Service,
    /// From the departure of the last byte to its acknowledgement by the peer's TCP.
    Acknowledgement,
    /// Both directions of the network by kernel timestamps.
    Network,
    /// The ICMP echo that ran alongside.
    Icmp,
    /// The ICMP echo to the ping destination of that name.
    Ping(String),
    /// One entry of the ledger.
    Entry(StageSet),
}

impl Layer {
    /// The name on screen and in files.
    pub fn name(&self) -> String {
        match self {
            Self::Response => "response time".to_owned(),
            Self::Service => "service time".to_owned(),
            Self::Acknowledgement => "TCP acknowledgement".to_owned(),
            Self::Network => "network round trip (kernel timestamps)".to_owned(),
            Self::Icmp => "ICMP echo".to_owned(),
            Self::Ping(destination) => format!("ICMP echo to {destination}"),
            Self::Entry(set) => format!("stage: {set}"),
        }
    }

    /// The time that it covers; none for entries of the ledger, whose stages have a meaning each.
    pub const fn meaning(&self) -> Option<&'static str> {
        match self {
            Self::Response => Some("from the scheduled send time to the reply"),
            Self::Service => Some("from the actual send to the reply"),
            Self::Acknowledgement => Some(
                "from the departure of the request's last byte to its acknowledgement by the peer's TCP",
            ),
            Self::Network => Some("both directions of the network"),
            Self::Icmp => Some("round trip of ICMP echoes that were sent at the same time"),
            Self::Ping(_) => Some("round trip of ICMP echoes to this destination"),
            Self::Entry(_) => None,
        }
    }
}
