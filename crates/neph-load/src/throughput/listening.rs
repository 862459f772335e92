//! The server's TCP port, and who accepts its connections.
//!
//! A test whose transactions are connections accepts on the server's port, so that no second port
//! has to be open. Meanwhile the server does not accept; the test hands other connections back to
//! it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use socket2::SockRef;

use super::run::TICK;

/// Maximum number of connections that wait for the server; further ones are closed.
const MAX_PENDING_CONNECTIONS: usize = 64;

/// A connection from which these bytes were already read.
#[derive(Debug)]
pub(super) struct AcceptedConnection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) first: Vec<u8>,
}

/// A listening socket that the server can lend to a test.
#[derive(Debug)]
pub(super) struct Listening {
    listener: TcpListener,
    is_lent: AtomicBool,
    handed: Mutex<Vec<AcceptedConnection>>,
}

impl Listening {
    /// From a listening socket. `accept` blocks for a tick.
    pub(super) fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(false)?;
        SockRef::from(&listener).set_read_timeout(Some(TICK.to_duration()))?;
        Ok(Self {
            listener,
            is_lent: AtomicBool::new(false),
            handed: Mutex::new(Vec::new()),
        })
    }

    /// The socket.
    pub(super) const fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Whether a test accepts.
    pub(super) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Acquire)
    }

    /// Lends it until the result is dropped.
    pub(super) fn lend(&self) -> LentSocket<'_> {
        self.is_lent.store(true, Ordering::Release);
        LentSocket(self)
    }

    /// Hands a connection back to the server.
    pub(super) fn hand_back(&self, newcomer: AcceptedConnection) {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        if handed.len() < MAX_PENDING_CONNECTIONS {
            handed.push(newcomer);
        }
    }

    /// Removes and returns the connections that were handed back.
    pub(super) fn take_handed(&self) -> Vec<AcceptedConnection> {
        std::mem::take(&mut self.handed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the socket to the server when it is dropped.
#[derive(Debug)]
pub(super) struct LentSocket<'a>(&'a Listening);

impl Drop for LentSocket<'_> {
    fn drop(&mut self) {
        self.0.is_lent.store(false, Ordering::Release);
    }
}
