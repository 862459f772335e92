//! `-4` and `-6`, for every command that contacts a peer.

use clap::Args as ClapArgs;
use neph_model::IpVersion;

/// The required IP version.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct IpChoice {
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

impl IpChoice {
    /// The required version; `None` for any.
    pub(crate) const fn version(self) -> Option<IpVersion> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        }
    }
}
