//! Opens and closes the sockets that a session requests.

use std::io;
use std::os::fd::AsFd;

use neph_sys::stamp::{self, Ending};
use socket2::{SockAddr, Socket};

use super::super::session::Closing;
use super::super::socket::{in_progress, is_answer, socket_for};
use super::{Driver, OpenSocket};
use crate::ProbeError;
use crate::codec::ConnectionEnd;
use crate::fault::{self, ErrorTime};
use crate::spec::FlowSpec;
use crate::stamp_clock::now;

/// If a source port is given, the first socket, which has it: without it nothing can begin.
pub(super) fn bind_source_port(spec: &FlowSpec) -> Result<Option<Socket>, ProbeError> {
    let Some(port) = spec.source_port else {
        return Ok(None);
    };
    let socket = socket_for(spec).map_err(|source| ProbeError::SourcePort {
        port,
        address: spec.address,
        source,
    })?;
    Ok(Some(socket))
}

impl Driver<'_> {
    pub(super) fn dial_and_close(&mut self) {
        while let Some(connection_id) = self.session.take_dial() {
            self.dial(connection_id);
        }
        while let Some(Closing {
            number: connection_id,
            close_message,
        }) = self.session.take_close()
        {
            if let Some(connection) = self.sockets.get(&connection_id) {
                // Whether the peer gets it has no effect here.
                let _ = stamp::send(connection.socket.as_fd(), &close_message, Ending::Open);
                self.read_notices(connection_id);
                self.sockets.remove(&connection_id);
                self.session.closed(connection_id);
            }
        }
    }

    fn dial(&mut self, connection_id: u32) {
        let spare = self.spare.take();
        let socket = match spare.map_or_else(|| socket_for(self.spec), Ok) {
            Ok(socket) => socket,
            Err(error) => {
                let end = fault::to_connection_end("open a socket", &error, ErrorTime::AtOnce);
                return self.session.connection_failed(connection_id, end, now());
            }
        };
        self.session.dial_started(connection_id, now());
        match socket.connect(&SockAddr::from(self.spec.address)) {
            Err(error) if is_answer(self.spec, &error) => {
                let connected = false;
                self.sockets
                    .insert(connection_id, OpenSocket { socket, connected });
                self.handle_refused(connection_id);
            }
            Err(error) if !in_progress(&error) => {
                self.session.connection_failed(
                    connection_id,
                    self.connect_error(&error, ErrorTime::AtOnce),
                    now(),
                );
            }
            _ => {
                self.sockets.insert(
                    connection_id,
                    OpenSocket {
                        socket,
                        connected: false,
                    },
                );
            }
        }
    }

    /// A connection attempt was refused, where only the attempt is measured.
    pub(super) fn handle_refused(&mut self, connection_id: u32) {
        if let Some(connection) = self.sockets.get_mut(&connection_id) {
            connection.connected = true;
            self.session.refused(connection_id, now(), &mut now);
        }
    }

    pub(super) fn connect_error(&self, error: &io::Error, error_time: ErrorTime) -> ConnectionEnd {
        fault::to_connection_end(
            &format!("connect to {}", self.spec.address),
            error,
            error_time,
        )
    }
}
