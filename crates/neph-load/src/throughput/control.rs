//! The control connection of one end.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use neph_model::{Span, Stop};
use neph_sys::tcp;
use neph_wire::throughput::{Lines, encode_line};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ThroughputError;
use super::run::TICK;
use crate::transfer::now;

/// Write timeout.
const WRITE_TIMEOUT: Span = Span::from_secs(5);

/// A connection with lines of JSON in each direction.
#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    peer: SocketAddr,
    lines: Lines,
    buffer: Vec<u8>,
}

impl Control {
    /// From a connection from which `read` bytes were already read.
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        first: &[u8],
    ) -> Result<Self, ThroughputError> {
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(TICK.to_duration())))
            .and_then(|()| stream.set_write_timeout(Some(WRITE_TIMEOUT.to_duration())))
            .map_err(ThroughputError::socket("set up the connection to", peer))?;
        let mut lines = Lines::default();
        lines.push(first);
        Ok(Self {
            stream,
            peer,
            lines,
            buffer: vec![0; 1 << 14],
        })
    }

    /// Address of the peer.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Local address.
    pub(super) fn local(&self) -> Result<SocketAddr, ThroughputError> {
        let local = self.stream.local_addr();
        local.map_err(ThroughputError::socket(
            "ask for our address towards",
            self.peer,
        ))
    }

    /// Checks whether this end supports a congestion control; the error is one sentence.
    pub(super) fn try_congestion(&self, name: &str) -> Result<(), String> {
        let chosen = tcp::set_congestion_control(self.stream.as_fd(), name);
        chosen.map_err(|error| {
            format!("congestion control {name} cannot be had at this end: {error}")
        })
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), ThroughputError> {
        let result = self.stream.write_all(&encode_line(message));
        result.map_err(ThroughputError::socket("write to", self.peer))
    }

    /// Returns the next message if it arrives within 50 ms.
    pub(super) fn poll<M: DeserializeOwned>(
        &mut self,
        awaited: &'static str,
    ) -> Result<Option<M>, ThroughputError> {
        if let Some(message) = self.next()? {
            return Ok(Some(message));
        }
        match self.stream.read(&mut self.buffer) {
            Ok(0) => Err(self.closed(awaited)),
            Ok(count) => {
                self.lines.push(&self.buffer[..count]);
                self.next()
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
                ErrorKind::ConnectionReset => Err(self.closed(awaited)),
                _ => Err(ThroughputError::socket("read from", self.peer)(error)),
            },
        }
    }

    fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, ThroughputError> {
        let peer = self.peer;
        let next = self.lines.next_message();
        next.map_err(|source| ThroughputError::InvalidMessage { peer, source })
    }

    const fn closed(&self, awaited: &'static str) -> ThroughputError {
        ThroughputError::Closed {
            peer: self.peer,
            awaited,
        }
    }

    /// Waits for a message.
    pub(super) fn await_message<M: DeserializeOwned>(
        &mut self,
        awaited: &'static str,
        timeout: Span,
        stop: &Stop,
    ) -> Result<M, ThroughputError> {
        let deadline = now() + timeout;
        loop {
            if let Some(message) = self.poll(awaited)? {
                return Ok(message);
            }
            if stop.is_set() {
                return Err(ThroughputError::Stopped);
            }
            if now() >= deadline {
                let peer = self.peer;
                return Err(ThroughputError::Silent { peer, awaited });
            }
        }
    }
}
