//! Serves media streams: RTSP and RTP.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use neph_model::{Span, Stop};
use neph_sys::ppoll::{self, Awaited};

use super::connection::Connection;
use super::error::MediaError;
use super::places::Served;
use super::served::{MediaServed, ServerSpec};
use crate::listen::listen_on;

/// Maximum delay until a set stop flag is noticed.
const TICK: Span = Span::from_millis(50);
/// Connections beyond the maximum number of streams: for clients that only query the server.
const SPARE: usize = 16;

/// A server with an open port.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    spec: ServerSpec,
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// Another program uses it, or permissions are missing.
    pub fn bind(spec: &ServerSpec) -> Result<Self, MediaError> {
        let address = spec.listen;
        let listen = |source| MediaError::Listen { address, source };
        let listener = listen_on(address, 256).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self {
            listener,
            address,
            spec: spec.clone(),
        })
    }

    /// The listening address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The port cannot be polled.
    pub fn run(&self, stop: &Stop, event: &(dyn Fn(MediaServed) + Sync)) -> Result<(), MediaError> {
        let served = Served::new(&self.spec, event);
        let (served, count) = (&served, &AtomicUsize::new(0));
        let max = usize::from(self.spec.caps.streams) + SPARE;
        let result = thread::scope(|scope| {
            while !stop.is_set() {
                let mut poll_fds = [Awaited::readable(self.listener.as_fd())];
                ppoll::wait(&mut poll_fds, Some(TICK.to_duration()))?;
                if !poll_fds[0].is_readable() {
                    continue;
                }
                let Ok((stream, peer)) = self.listener.accept() else {
                    continue;
                };
                if count.fetch_add(1, Ordering::AcqRel) >= max {
                    count.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let work = move || {
                    if let Ok(connection) = Connection::new(served, stream, peer) {
                        connection.serve(stop);
                    }
                    count.fetch_sub(1, Ordering::AcqRel);
                };
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    count.fetch_sub(1, Ordering::AcqRel);
                }
            }
            Ok(())
        });
        let address = self.address;
        result.map_err(|source| MediaError::Listen { address, source })
    }
}
