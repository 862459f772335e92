//! A raw socket that sends a fleet's SYNs to one endpoint, from any source port.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use neph_sys::port_filter;
use neph_sys::stamp::{self, Carrier, Ending, Notice, Point};
use neph_wire::syn::{self, SegmentEnds};
use socket2::Socket;

use super::session::{Departed, Event, RequestId};
use crate::numbered::AwaitedTimestamps;
use crate::raw_tcp;
use crate::stamp_clock::StampClock;

/// Timestamps that may wait to be read: about 100 ms of the fastest fleet.
const UNREAD: usize = 8_192;
/// Bytes that they take in the kernel.
const RECEIVE_BUFFER_BYTES: i32 = 8 << 20;

#[derive(Debug)]
pub(crate) struct Speaker {
    socket: Socket,
    source: SocketAddr,
    target: SocketAddr,
    /// The request of each kernel timestamp; `None` for a RST.
    sent: AwaitedTimestamps<Option<RequestId>>,
    segment: Vec<u8>,
}

impl Speaker {
    pub(crate) fn new(target: SocketAddr) -> io::Result<Self> {
        let (socket, source) = raw_tcp::connected(target)?;
        // It receives nothing: one socket receives for all.
        port_filter::attach(socket.as_fd(), raw_tcp::family(target), &(0..=0))?;
        stamp::make_room(socket.as_fd(), RECEIVE_BUFFER_BYTES)?;
        stamp::enable(socket.as_fd(), Carrier::Departures)?;
        Ok(Self {
            socket,
            source,
            target,
            sent: AwaitedTimestamps::new(UNREAD),
            segment: Vec::with_capacity(syn::SYN_LEN),
        })
    }

    pub(crate) const fn target(&self) -> SocketAddr {
        self.target
    }

    fn ends(&self, port: u16) -> SegmentEnds {
        let mut source = self.source;
        source.set_port(port);
        let target = self.target;
        SegmentEnds { source, target }
    }

    /// Sends a SYN with this sequence number.
    pub(crate) fn syn(&mut self, request: RequestId, seq: u32) -> io::Result<()> {
        self.segment.clear();
        syn::syn(&self.ends(request.port), seq, &mut self.segment);
        self.send(Some(request))
    }

    /// Refuses a SYN-ACK to `port` that answers the SYN with this sequence number.
    pub(crate) fn rst(&mut self, port: u16, seq: u32) {
        self.segment.clear();
        syn::rst(&self.ends(port), seq.wrapping_add(1), &mut self.segment);
        // If it is not sent now, the peer's retransmission gives another chance.
        let _ = self.send(None);
    }

    fn send(&mut self, known: Option<RequestId>) -> io::Result<()> {
        let fd = self.socket.as_fd();
        let once = || stamp::send(fd, &self.segment, Ending::Open).map(|_| ());
        let mut outcome = once();
        if outcome.is_err() {
            // This send reports an ICMP error of an earlier SYN. The second try succeeds, but it is unknown
            // whether the kernel counted the first.
            self.recount();
            let fd = self.socket.as_fd();
            outcome = stamp::send(fd, &self.segment, Ending::Open).map(|_| ());
        }
        match outcome {
            Ok(()) => self.sent.count(known),
            Err(_) => self.recount(),
        }
        outcome
    }

    fn recount(&mut self) {
        if stamp::restart_count(self.socket.as_fd(), Carrier::Departures).is_ok() {
            self.sent.restart();
        }
    }

    /// Reads send timestamps.
    pub(crate) fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        let mut any = false;
        while let Ok(Some(notice)) = stamp::take_notice(self.socket.as_fd()) {
            any = true;
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            let request = self.sent.take(stamp.id).flatten();
            if let (Point::Sent, Some(request), Some(at)) =
                (stamp.point, request, clock.own_instant(stamp.at))
            {
                events.push(Event::Departed(Departed { request, at }));
            }
        }
        if !any {
            // No timestamp but an error: reading it clears it. Otherwise it would be found again and again.
            // The SYN of the error is lost like any other.
            let _ = self.socket.take_error();
        }
    }
}

impl AsFd for Speaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
