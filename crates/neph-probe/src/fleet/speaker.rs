//! A raw socket that sends a fleet's SYNs to one endpoint, from any port of ours.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use neph_sys::stamp::{self, Carrier, Ending, Notice, Point};
use neph_sys::{port_filter, room};
use neph_wire::syn::{self, Ends};
use socket2::Socket;

use super::session::{Departed, Event, Known};
use crate::numbered::Numbered;
use crate::raw_tcp;
use crate::stamp_clock::StampClock;

/// Stamps that may wait to be read: some 100 ms of the fastest fleet.
const UNREAD: usize = 8_192;
/// Bytes that they take in the kernel.
const ROOM: i32 = 8 << 20;

#[derive(Debug)]
pub(crate) struct Speaker {
    socket: Socket,
    source: SocketAddr,
    target: SocketAddr,
    /// What the kernel's stamps are of; a RST's is of no interest.
    sent: Numbered<Option<Known>>,
    segment: Vec<u8>,
}

impl Speaker {
    pub(crate) fn new(target: SocketAddr) -> io::Result<Self> {
        let (socket, source) = raw_tcp::connected(target)?;
        // It is told nothing: one socket receives for all.
        port_filter::attach(socket.as_fd(), raw_tcp::family(target), &(0..=0))?;
        room::for_received(socket.as_fd(), ROOM)?;
        stamp::enable(socket.as_fd(), Carrier::Departures)?;
        Ok(Self {
            socket,
            source,
            target,
            sent: Numbered::new(UNREAD),
            segment: Vec::with_capacity(syn::SYN_LEN),
        })
    }

    pub(crate) const fn target(&self) -> SocketAddr {
        self.target
    }

    fn ends(&self, port: u16) -> Ends {
        let mut source = self.source;
        source.set_port(port);
        let target = self.target;
        Ends { source, target }
    }

    /// Sends a SYN with this sequence number.
    pub(crate) fn syn(&mut self, request: Known, seq: u32) -> io::Result<()> {
        self.segment.clear();
        syn::syn(&self.ends(request.port), seq, &mut self.segment);
        self.send(Some(request))
    }

    /// Refuses a SYN-ACK to `port` that answers the SYN with this sequence number.
    pub(crate) fn rst(&mut self, port: u16, seq: u32) {
        self.segment.clear();
        syn::rst(&self.ends(port), seq.wrapping_add(1), &mut self.segment);
        // What does not go now is asked for again by the peer.
        let _ = self.send(None);
    }

    fn send(&mut self, what: Option<Known>) -> io::Result<()> {
        let fd = self.socket.as_fd();
        let once = || stamp::send(fd, &self.segment, Ending::Open).map(|_| ());
        let mut outcome = once();
        if outcome.is_err() {
            // An ICMP error to an earlier SYN is told here: once more, and it goes. Nobody can say
            // whether the kernel counted the first try.
            self.recount();
            let fd = self.socket.as_fd();
            outcome = stamp::send(fd, &self.segment, Ending::Open).map(|_| ());
        }
        match outcome {
            Ok(()) => self.sent.count(what),
            Err(_) => self.recount(),
        }
        outcome
    }

    fn recount(&mut self) {
        if stamp::restart_count(self.socket.as_fd(), Carrier::Departures).is_ok() {
            self.sent.restart();
        }
    }

    /// Reads send stamps.
    pub(crate) fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        let mut any = false;
        while let Ok(Some(notice)) = stamp::take_notice(self.socket.as_fd()) {
            any = true;
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            let request = self.sent.take(stamp.id).flatten();
            if let (Point::Sent, Some(request), Some(at)) =
                (stamp.point, request, clock.own(stamp.at))
            {
                events.push(Event::Departed(Departed { request, at }));
            }
        }
        if !any {
            // No stamp but an error: asking for it takes it away. Left there, it would be found
            // again and again. The SYN that met it is lost like any other.
            let _ = self.socket.take_error();
        }
    }
}

impl AsFd for Speaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
