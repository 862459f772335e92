//! A connection of a client: its requests, and the responses that it has not taken yet.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use neph_wire::http::{BodyReader, BodyStep, MAX_HEAD, parse_request};

/// Bytes that a client may leave unread before its connection is closed.
const MAX_UNREAD: usize = 64 << 10;
/// Maximum length of a request body.
const MAX_BODY: u64 = 64 << 20;

/// What a request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServedRequest {
    pub(super) keep_alive: bool,
}

#[derive(Debug)]
pub(super) struct ClientConnection {
    stream: TcpStream,
    /// Received, and no complete request yet.
    input: Vec<u8>,
    body: Option<(ServedRequest, BodyReader)>,
    output: Vec<u8>,
    /// A request that has no response yet; the next one is read afterwards.
    pub(super) is_served: bool,
    closes: bool,
}

/// What came of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientProgress {
    /// Nothing to do.
    Waits,
    /// A request is complete.
    Requests(ServedRequest),
    /// The connection is of no more use.
    Ends,
}

impl ClientConnection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            body: None,
            output: Vec::new(),
            is_served: false,
            closes: false,
        })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether there is something to write.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Reads what has arrived.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> ClientProgress {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return ClientProgress::Ends,
                Ok(count) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    if count < buffer.len() {
                        return self.next_request();
                    }
                    let progress = self.next_request();
                    if progress != ClientProgress::Waits || self.is_served {
                        return progress;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return ClientProgress::Waits;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return ClientProgress::Ends,
            }
        }
    }

    /// The next complete request of what has arrived, unless one is being served.
    pub(super) fn next_request(&mut self) -> ClientProgress {
        if self.is_served {
            // A client that sends requests in advance may not fill the memory.
            let is_too_much = self.input.len() > 4 * MAX_HEAD;
            return if is_too_much {
                ClientProgress::Ends
            } else {
                ClientProgress::Waits
            };
        }
        if self.body.is_none() {
            match parse_request(&self.input) {
                Ok(Some(head)) => {
                    let request = ServedRequest {
                        keep_alive: head.keep_alive(),
                    };
                    let Ok(body) = BodyReader::new(head.body(), MAX_BODY) else {
                        return ClientProgress::Ends;
                    };
                    let length = head.len();
                    self.body = Some((request, body));
                    self.input.drain(..length);
                }
                Ok(None) => return ClientProgress::Waits,
                Err(_) => return ClientProgress::Ends,
            }
        }
        let Some((request, body)) = &mut self.body else {
            return ClientProgress::Waits;
        };
        let mut used = 0;
        while !body.is_done() && used < self.input.len() {
            match body.step(&self.input[used..]) {
                Ok(BodyStep::More) => used = self.input.len(),
                Ok(BodyStep::Piece { consumed, .. } | BodyStep::Done { consumed }) => {
                    used += consumed;
                }
                Err(_) => return ClientProgress::Ends,
            }
        }
        let (request, is_complete) = (*request, body.is_done());
        self.input.drain(..used);
        if !is_complete {
            return ClientProgress::Waits;
        }
        self.body = None;
        self.is_served = true;
        ClientProgress::Requests(request)
    }

    /// Sends a response; the last one of a connection closes it.
    pub(super) fn respond(&mut self, response: &[u8], keep_alive: bool) -> ClientProgress {
        self.is_served = false;
        self.closes |= !keep_alive;
        self.output.extend_from_slice(response);
        self.send()
    }

    /// Sends what is left to send.
    pub(super) fn send(&mut self) -> ClientProgress {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => {
                    self.output.drain(..count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_too_much = self.output.len() > MAX_UNREAD;
                    return if is_too_much {
                        ClientProgress::Ends
                    } else {
                        ClientProgress::Waits
                    };
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return ClientProgress::Ends,
            }
        }
        if self.closes {
            ClientProgress::Ends
        } else {
            ClientProgress::Waits
        }
    }
}
