//! An end of a tunnel on a thread of this process, stopped when dropped.

use neph_sys::netns::NetNs;

use super::LabError;
use super::namespace_worker::{self, NamespaceWorker};
use crate::tunnel::{Tunnel, TunnelConfig, TunnelError};

/// A running end.
#[derive(Debug)]
pub(super) struct RunningTunnel {
    interface: String,
    /// Taken when it is dropped.
    tunnel: Option<NamespaceWorker<Result<(), TunnelError>>>,
}

impl RunningTunnel {
    /// Starts it inside `namespace`, and waits until it listens.
    pub(super) fn start(config: TunnelConfig, namespace: &NetNs) -> Result<Self, LabError> {
        let interface = config.interface.clone();
        let open = move || Ok(Tunnel::open(config)?);
        let run = |tunnel: Tunnel, stop: &_| tunnel.run(stop);
        let (tunnel, ready_message) = namespace_worker::start(&interface, namespace, open, run)?;
        ready_message.wait()?;
        Ok(Self {
            interface,
            tunnel: Some(tunnel),
        })
    }
}

impl Drop for RunningTunnel {
    fn drop(&mut self) {
        let result = self.tunnel.take().and_then(NamespaceWorker::stop);
        if let Some(Err(error)) = result {
            tracing::warn!("tunnel {}: {error}", self.interface);
        }
    }
}
