//! Opens and closes the sockets that a session requests.

use std::io;
use std::os::fd::AsFd;

use neph_sys::stamp::{self, Ending};
use socket2::{SockAddr, Socket};

use super::super::session::Closing;
use super::super::socket::{in_progress, is_answer, socket_for};
use super::{Driver, Open};
use crate::ProbeError;
use crate::codec::ConnectionEnd;
use crate::fault::{self, ErrorTime};
use crate::spec::FlowSpec;
use crate::stamp_clock::now;

/// If a source port is given, the first socket, which has it: without it nothing can begin.
pub(super) fn first_socket(spec: &FlowSpec) -> Result<Option<Socket>, ProbeError> {
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
        while let Some(number) = self.session.take_dial() {
            self.dial(number);
        }
        while let Some(Closing { number, last_words }) = self.session.take_close() {
            if let Some(open) = self.sockets.get(&number) {
                // Whether the peer gets it has no effect here.
                let _ = stamp::send(open.socket.as_fd(), &last_words, Ending::Open);
                self.read_notices(number);
                self.sockets.remove(&number);
                self.session.closed(number);
            }
        }
    }

    fn dial(&mut self, number: u32) {
        let spare = self.spare.take();
        let socket = match spare.map_or_else(|| socket_for(self.spec), Ok) {
            Ok(socket) => socket,
            Err(error) => {
                let parting = fault::parting("open a socket", &error, ErrorTime::AtOnce);
                return self.session.broke(number, parting, now());
            }
        };
        self.session.dialling(number, now());
        match socket.connect(&SockAddr::from(self.spec.address)) {
            Err(error) if is_answer(self.spec, &error) => {
                let connected = false;
                self.sockets.insert(number, Open { socket, connected });
                self.refused(number);
            }
            Err(error) if !in_progress(&error) => {
                self.session
                    .broke(number, self.no_connection(&error, ErrorTime::AtOnce), now());
            }
            _ => {
                self.sockets.insert(
                    number,
                    Open {
                        socket,
                        connected: false,
                    },
                );
            }
        }
    }

    /// A connection attempt was refused, where only the attempt is measured.
    pub(super) fn refused(&mut self, number: u32) {
        if let Some(open) = self.sockets.get_mut(&number) {
            open.connected = true;
            self.session.refused(number, now(), &mut now);
        }
    }

    pub(super) fn no_connection(&self, error: &io::Error, known: ErrorTime) -> ConnectionEnd {
        fault::parting(&format!("connect to {}", self.spec.address), error, known)
    }
}
