//! An end of a tunnel on a thread of this process, stopped when dropped.

use std::io::{self, PipeWriter};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use neph_sys::netns::{self, NetNs};

use super::LabError;
use crate::tunnel::{Tunnel, TunnelConfig, TunnelError};

/// A running end.
#[derive(Debug)]
pub(super) struct Tunnelling {
    interface: String,
    /// Closing it stops the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<Result<(), TunnelError>>>,
}

impl Tunnelling {
    /// Starts it inside `namespace`, and waits until it listens.
    pub(super) fn start(config: TunnelConfig, namespace: &NetNs) -> Result<Self, LabError> {
        let interface = config.interface.clone();
        let failed = |source| LabError::Thread {
            link: interface.clone(),
            source,
        };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let namespace = NetNs::open(namespace.name())?;
        let (tell, told) = mpsc::channel::<Result<(), LabError>>();
        let work = move || {
            let opened = netns::enter(&namespace)
                .map_err(LabError::from)
                .and_then(|()| Ok(Tunnel::open(config)?));
            match opened {
                Ok(tunnel) => {
                    // Nobody listens only if the starter is gone, and its pipe with it.
                    let _ = tell.send(Ok(()));
                    tunnel.run(&stopped)
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    Ok(())
                }
            }
        };
        let thread = thread::Builder::new()
            .name(interface.clone())
            .spawn(work)
            .map_err(failed)?;
        let gone = |_| failed(io::Error::other("it ended before it was ready"));
        told.recv().map_err(gone)??;
        Ok(Self {
            interface,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Tunnelling {
    fn drop(&mut self) {
        self.stop.take();
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Ok(Err(error))) = ended {
            tracing::warn!("tunnel {}: {error}", self.interface);
        }
    }
}
