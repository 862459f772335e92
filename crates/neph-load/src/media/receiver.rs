//! Sockets of one stream of a client: its RTSP connection and its RTP port.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use neph_model::Span;
use neph_sys::clock::Pair as ClockPair;
use neph_sys::{bulk, stamp};
use neph_wire::rtsp::{Inbox, Message, Request};

use super::dialogue::{Dialogue, Received, Refusal};
use super::error::MediaError;
use super::ports::Pair;
use super::track::Track;

/// Maximum number of datagrams per turn, so that other streams do not wait.
const MAX_DATAGRAMS_PER_POLL: usize = 256;
/// Larger than any packet of a link with jumbo frames; the rest of a larger datagram is cut off.
const MAX_PACKET_BYTES: usize = 9_216;

/// One stream.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) inbox: Inbox,
    pub(super) dialogue: Dialogue,
    pub(super) pair: Pair,
    pub(super) track: Track,
    /// Why it broke off.
    pub(super) fault: Option<String>,
    /// Whether the server confirmed the end.
    pub(super) is_ended: bool,
    /// When to send the next keep-alive.
    pub(super) alive_at: Span,
    /// When to send the next receiver report.
    pub(super) report_at: Span,
}

impl Receiver {
    /// Converts a refusal to an error.
    pub(super) fn refusal_error(peer: SocketAddr, refusal: Refusal) -> MediaError {
        match refusal {
            Refusal::Status {
                method,
                status,
                reason,
            } => MediaError::Refused {
                peer,
                method,
                status,
                reason,
            },
            Refusal::MissingPart { method, lacks } => MediaError::MissingPart {
                peer,
                method,
                lacks,
            },
        }
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn send(&mut self, request: &Request) {
        let bytes = match request.encode() {
            Ok(bytes) => bytes,
            Err(error) => return self.break_off(error.to_string()),
        };
        if let Err(error) = self.stream.write_all(&bytes) {
            let peer = self.peer;
            self.break_off(format!("write to {peer}: {error}"));
        }
    }

    fn break_off(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    /// Reads the server's RTSP messages.
    pub(super) fn read_control(&mut self) {
        let (mut buffer, peer) = ([0; 4096], self.peer);
        match self.stream.read(&mut buffer) {
            Ok(0) => self.break_off(format!("{peer} closed the RTSP connection")),
            Ok(count) => {
                self.inbox.push(&buffer[..count]);
                self.process_messages();
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => self.break_off(format!("read from {peer}: {error}")),
            },
        }
    }

    fn process_messages(&mut self) {
        loop {
            let message = match self.inbox.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => return self.break_off(error.to_string()),
            };
            let Message::Response(response) = message else {
                continue;
            };
            match self.dialogue.process_response(&response) {
                Ok(Received::Playing(info)) => {
                    if let Some(info) = info {
                        self.track.announce(&info);
                    }
                }
                Ok(Received::Ended) => self.is_ended = true,
                Ok(Received::Nothing | Received::Described | Received::SetUp(_)) => {}
                Err(refusal) => self.break_off(Self::refusal_error(self.peer, refusal).to_string()),
            }
        }
    }

    /// Reads the RTP port. `start_nanos` is the client's start on the monotonic clock.
    pub(super) fn receive(&mut self, clocks: ClockPair, start_nanos: i64) {
        let mut buffer = [0; MAX_PACKET_BYTES];
        for _ in 0..MAX_DATAGRAMS_PER_POLL {
            // An error means an empty socket, or ICMP about the packet that opened the firewall.
            let burst = match bulk::receive(self.pair.rtp.as_fd(), &mut buffer) {
                Ok(burst) => burst,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => break,
            };
            let at = burst.stamp.map_or(clocks.raw, |stamp| clocks.to_raw(stamp));
            let at = Span::from_nanos(at.0.saturating_sub(start_nanos));
            self.track.arrive(&buffer[..burst.len], at);
        }
        // Empties the RTCP port: the server's reports are not used.
        for _ in 0..MAX_DATAGRAMS_PER_POLL {
            if self.pair.rtcp.recv(&mut buffer).is_err() {
                break;
            }
        }
    }

    /// Sends a receiver report. It keeps the session alive without the RTSP connection, whose
    /// retransmissions back off when the path is congested.
    pub(super) fn send_report(&mut self) {
        let Some(report) = self.track.report() else {
            return;
        };
        let mut bytes = Vec::new();
        report.encode(&mut bytes);
        // A server may ignore RTCP.
        let _ = self.pair.rtcp.send(&bytes);
    }

    /// Packets that were dropped at the RTP port; 0 if the kernel does not count them.
    pub(super) fn drops(&self) -> u64 {
        stamp::dropped(self.pair.rtp.as_fd()).unwrap_or(0)
    }
}
