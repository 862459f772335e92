//! Carries a datagram session out on a real socket: one thread, ppoll, absolute sleeps.

use std::io;
use std::os::fd::AsFd;

use neph_model::{Instant, Own, Span, Wall};
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Carrier, Notice};
use socket2::Socket;

use super::session::Session;
use super::{Codec, open, send};
use crate::ProbeError;
use crate::exchange::SendPoint;
use crate::outlet::Outlet;
use crate::pace::{Nearness, Pace};
use crate::spec::FlowSpec;
use crate::stamp_clock::{StampClock, now};
use crate::stop::Stop;

/// From the socket's opening to the first message: receive stamps are switched on by then.
const SETTLE: Span = Span::from_millis(20);
/// How long to wait for the reflector's last stamp.
const TAIL: Span = Span::from_millis(500);

/// Carries out the flow until its schedule is over or `stop` is set.
pub(crate) fn drive(spec: &FlowSpec, outlet: Outlet, stop: &Stop) -> Result<(), ProbeError> {
    let (socket, codec) = open(spec)?;
    stamp::enable(socket.as_fd(), Carrier::Datagrams).map_err(|source| ProbeError::Socket {
        operation: "ask for kernel stamps on a socket to",
        address: spec.address,
        source,
    })?;
    let mut driver = Driver {
        session: Session::new(spec),
        codec,
        socket,
        outlet,
        clock: StampClock::new(),
        pace: Pace::new(spec.spin),
        request: Vec::with_capacity(1 << 16),
        built: None,
        buffer: vec![0; 1 << 16],
    };
    driver.session.begin(now() + SETTLE);
    driver.run(stop);
    driver.finish();
    Ok(())
}

struct Driver {
    session: Session,
    codec: Box<dyn Codec>,
    socket: Socket,
    outlet: Outlet,
    clock: StampClock,
    pace: Pace,
    request: Vec<u8>,
    /// The number of the request that is built already.
    built: Option<u64>,
    buffer: Vec<u8>,
}

/// Whether send stamps are read too, or can wait because a send is close.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notices {
    Now,
    Later,
}

impl Driver {
    fn run(&mut self, stop: &Stop) {
        let mut done_since = None;
        while !stop.is_set() {
            let limit = match self.session.next_due() {
                Some(due) => match self.pace.nearness(due, now()) {
                    Nearness::Blind => {
                        self.send(due);
                        continue;
                    }
                    Nearness::Close => {
                        self.build(due);
                        self.take_in(now(), Notices::Later);
                        continue;
                    }
                    Nearness::Far(until) => until,
                },
                None => {
                    self.send_tail();
                    now() + Stop::PATIENCE
                }
            };
            self.turn();
            if self.session.is_done() {
                let since = *done_since.get_or_insert_with(now);
                if !self.session.lacks_peer_send() || now() >= since + TAIL {
                    break;
                }
            }
            let deadline = self.session.next_deadline().unwrap_or(limit);
            let until = limit.min(deadline).min(now() + Stop::PATIENCE);
            self.take_in(until, Notices::Now);
        }
    }

    fn wall(&self, at: Instant<Own>) -> Wall {
        self.clock.anchor().to_wall(at)
    }

    fn build(&mut self, due: Instant<Own>) {
        let seq = self.session.next_seq();
        if self.built != Some(seq) {
            let wall = self.wall(due);
            self.codec.request(seq, wall, &mut self.request);
            self.built = Some(seq);
        }
    }

    fn send(&mut self, due: Instant<Own>) {
        self.build(due);
        let at = self.pace.reach(due);
        let Some(seq) = self.session.sending(at) else {
            return;
        };
        if let Err(error) = send(self.socket.as_fd(), &self.request) {
            // A refusal that an earlier datagram met is told here: once more, and it goes.
            if error.kind() != io::ErrorKind::ConnectionRefused
                || send(self.socket.as_fd(), &self.request).is_err()
            {
                self.session.not_sent(seq, &error, now());
            } else {
                self.session.refused_by(&error);
            }
        }
        if self.session.next_due().is_some_and(|next| next <= now()) {
            self.take_in(now(), Notices::Now);
            self.turn();
        }
    }

    fn send_tail(&mut self) {
        if let Some(seq) = self.session.tail() {
            let wall = self.wall(now());
            self.codec.request(seq, wall, &mut self.request);
            // Nothing is counted on it: without it the last message's two stages merge.
            let _ = send(self.socket.as_fd(), &self.request);
        }
    }

    fn turn(&mut self) {
        self.session.at_time(now());
        self.outlet.anchor(&self.clock);
        self.outlet.notes(self.session.take_notes());
        while let Some(message) = self.session.take_finished(now()) {
            self.outlet.message(message);
        }
    }

    /// Waits until `until` or until something happens, and takes it in. Close to a send, only
    /// replies are read: send stamps can wait.
    fn take_in(&mut self, until: Instant<Own>, notices: Notices) {
        let mut awaited = [Awaited::readable(self.socket.as_fd())];
        let timeout = (until - now()).to_duration();
        if ppoll::wait(&mut awaited, Some(timeout)).is_err() {
            return;
        }
        let [awaited] = awaited;
        if !awaited.is_readable() && !awaited.has_notice() {
            return;
        }
        if let Some(step) = self.clock.refresh() {
            self.session.clock_stepped(step);
        }
        if awaited.is_readable() {
            self.read();
        }
        if awaited.has_notice() && notices == Notices::Now {
            self.read_notices();
        }
    }

    fn read(&mut self) {
        match stamp::receive(self.socket.as_fd(), &mut self.buffer) {
            Ok(received) => {
                let at = now();
                let bytes = &self.buffer[..received.len];
                let latest = self.session.next_seq();
                if let Some(answer) = self.codec.answer(bytes, latest) {
                    let stamp = received.stamp.and_then(|stamp| self.clock.own(stamp));
                    self.session.answered(&answer, stamp, at);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => self.session.refused_by(&error),
        }
    }

    fn read_notices(&mut self) {
        while let Ok(Some(notice)) = stamp::take_notice(self.socket.as_fd()) {
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            if let Some(at) = self.clock.own(stamp.at) {
                self.session
                    .stamped(SendPoint::from(stamp.point), stamp.id, at);
            }
        }
    }

    fn finish(mut self) {
        self.read_notices();
        self.turn();
        while let Some(message) = self.session.take_rest(now()) {
            self.outlet.message(message);
        }
        self.outlet.end(*self.session.tally());
    }
}
