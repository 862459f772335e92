//! An end of a tunnel on a thread of this process, stopped when dropped.

use neph_sys::netns::NetNs;

use super::LabError;
use super::inside::{self, Inside};
use crate::tunnel::{Tunnel, TunnelConfig, TunnelError};

/// A running end.
#[derive(Debug)]
pub(super) struct Tunnelling {
    interface: String,
    /// Taken when it is dropped.
    tunnel: Option<Inside<Result<(), TunnelError>>>,
}

impl Tunnelling {
    /// Starts it inside `namespace`, and waits until it listens.
    pub(super) fn start(config: TunnelConfig, namespace: &NetNs) -> Result<Self, LabError> {
        let interface = config.interface.clone();
        let open = move || Ok(Tunnel::open(config)?);
        let run = |tunnel: Tunnel, stop: &_| tunnel.run(stop);
        let (tunnel, word) = inside::start(&interface, namespace, open, run)?;
        word.wait()?;
        Ok(Self {
            interface,
            tunnel: Some(tunnel),
        })
    }
}

impl Drop for Tunnelling {
    fn drop(&mut self) {
        let ended = self.tunnel.take().and_then(Inside::stop);
        if let Some(Err(error)) = ended {
            tracing::warn!("tunnel {}: {error}", self.interface);
        }
    }
}
