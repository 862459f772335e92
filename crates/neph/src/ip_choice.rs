//! `-4` and `-6`, for every command that contacts a peer.

use clap::Args as ClapArgs;
use neph_model::IpVersion;

/// Which IP version is demanded.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct IpChoice {
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

impl IpChoice {
    /// What was demanded; any where nothing was.
    pub(crate) const fn version(self) -> Option<IpVersion> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        }
    }
}
