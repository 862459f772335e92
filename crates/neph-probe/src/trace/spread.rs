//! Probes that are a separate flow each, without privilege: one UDP socket, and one destination port per
//! probe, which identifies its answer.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use neph_model::{Instant, Local};
use neph_sys::icmp_error::{self, IcmpError, Queued};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Notice, Point};
use socket2::{Protocol, SockAddr, SockRef, Socket, Type};

use super::carrier::{self, Carrier};
use super::flow::{Answer, ProbeId};
use super::tracer::Tracer;
use super::tracer_io::{ProbeToSend, ReceivedAnswer};
use crate::stamp_clock::{StampClock, now};

/// The usual first port of traceroutes: hardly any program listens there.
const FIRST_PORT: u16 = 33_434;
/// As long as those of other traceroutes (60 bytes with their headers).
const PAYLOAD: [u8; 32] = *b"neph traceroute, no reply needed";

/// One socket for all probes.
#[derive(Debug)]
pub(super) struct Spread {
    destination: SocketAddr,
    socket: Socket,
    clock: StampClock,
    /// By the kernel's number of their send timestamps.
    sent: Vec<ProbeId>,
}

impl Spread {
    /// # Errors
    /// No socket can be opened.
    pub(super) fn open(destination: SocketAddr) -> io::Result<Self> {
        let socket = carrier::socket(destination, Type::DGRAM, Protocol::UDP)?;
        socket.bind(&SockAddr::from(SocketAddr::new(
            carrier::unspecified(destination),
            0,
        )))?;
        icmp_error::enable(socket.as_fd(), carrier::family(destination))?;
        stamp::enable(socket.as_fd(), stamp::Carrier::Datagrams)?;
        Ok(Self {
            destination,
            socket,
            clock: StampClock::new(),
            sent: Vec::new(),
        })
    }

    /// The destination of the probe with this number.
    fn to(&self, number: u16) -> SocketAddr {
        SocketAddr::new(self.destination.ip(), FIRST_PORT.saturating_add(number - 1))
    }

    fn received(&self, error: &IcmpError) -> Option<ReceivedAnswer> {
        let (to, from) = error.to.zip(error.from)?;
        let before = to.port().checked_sub(FIRST_PORT)?;
        let (at, read_by) = carrier::arrival(&self.clock, error.at);
        (to.ip() == self.destination.ip()).then_some(ReceivedAnswer {
            port: 0,
            number: Some(before.checked_add(1)?),
            answer: Answer {
                from,
                kind: carrier::reported_error(self.destination, from, error)?,
                at,
                read_by,
            },
            labels: Vec::new(),
        })
    }
}

impl Carrier for Spread {
    /// The socket is bound already.
    fn hold(&mut self, _port: u16) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }

    fn release(&mut self) -> bool {
        false
    }

    fn send(&mut self, probe: &ProbeToSend) -> io::Result<()> {
        carrier::set_ttl(&SockRef::from(&self.socket), self.destination, probe.ttl)?;
        let to = SockAddr::from(self.to(probe.number));
        let send = || self.socket.send_to(&PAYLOAD, &to);
        carrier::send_counted(&self.socket, &mut self.sent, probe.id, send)
    }

    fn take_in(&mut self, until: Instant<Local>, tracer: &mut Tracer) -> io::Result<()> {
        let mut poll_fds = [Awaited::readable(self.socket.as_fd())];
        let timeout = (until - now()).to_duration();
        ppoll::wait(&mut poll_fds, Some(timeout))?;
        self.clock.refresh();
        while let Ok(Some(queued)) = icmp_error::take(self.socket.as_fd()) {
            match queued {
                Queued::Icmp(error) => {
                    if let Some(received) = self.received(&error) {
                        tracer.on_answer(&received);
                    }
                }
                Queued::Notice(Notice::Stamp(stamp)) if stamp.point == Point::Sent => {
                    carrier::note_left(&self.clock, &self.sent, stamp, tracer);
                }
                Queued::Notice(_) => {}
            }
        }
        let mut buffer = [0; 64];
        // A program on this port replies: hardly one on the next probe's port too.
        while stamp::receive(self.socket.as_fd(), &mut buffer).is_ok() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_probe_goes_to_the_port_of_other_traceroutes() {
        let spread = Spread::open(([127, 0, 0, 1], 0).into()).expect("a socket");
        assert_eq!(spread.to(1), ([127, 0, 0, 1], 33_434).into());
        assert_eq!(spread.to(640), ([127, 0, 0, 1], 34_073).into());
    }
}
