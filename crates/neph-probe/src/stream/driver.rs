//! Runs a session on real sockets: one thread, ppoll, absolute sleeps, no async runtime.
//!
//! Between a send and its receive it does not lock, log or access the disk.

mod connections;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use neph_model::{Instant, Local, Span, Stop};
use neph_sys::ppoll::Awaited;
use neph_sys::stamp::{self, Notice};
use socket2::Socket;

use super::session::{Session, Stamped};
use super::socket::{is_answer, set_up, socket_for};
use super::tcp_sampler::TcpSampler;
use crate::ProbeError;
use crate::codec::ConnectionEnd;
use crate::exchange::SendPoint;
use crate::fault::{self, ErrorTime};
use crate::finish::Finish;
use crate::gate::Gate;
use crate::outlet::Outlet;
use crate::pace::{Pace, SendWait};
use crate::reply_wait::ReplyWait;
use crate::spec::FlowSpec;
use crate::stamp_clock::{StampClock, now};
use crate::tls;
use connections::bind_source_port;

/// Messages are built this long before their time.
const BUILD_LEAD: Span = Span::from_micros(400);
/// From the establishment of the first connection to the first message.
const SETTLE_TIME: Span = Span::from_millis(5);
/// Deadlines and reports are handled at least this often, however dense the schedule.
const TICK: Span = Span::from_millis(1);
/// How long to wait for the reflector's last timestamp.
const LAST_TIMESTAMP_TIMEOUT: Span = Span::from_secs(1);

/// Runs the flow until its schedule is over or `stop` is set.
pub(crate) fn drive(spec: &FlowSpec, outlet: Outlet, stop: &Stop) -> Result<(), ProbeError> {
    let config = if spec.target.is_secure() {
        Some(tls::client_config(spec.tls_version, &spec.trust)?)
    } else {
        None
    };
    let mut driver = Driver {
        session: Session::new(spec, config),
        spec,
        outlet,
        sockets: BTreeMap::new(),
        spare: bind_source_port(spec)?,
        clock: StampClock::new(),
        pace: Pace::new(spec.spin, spec.schedule.interval),
        gate: Gate::for_flow(spec),
        reply_wait: ReplyWait::for_flow(spec, now()),
        sampler: TcpSampler::new(spec.tcp_stats, now()),
        buffer: vec![0; 256 << 10],
        ticked_at: now(),
        poll_fds: Vec::with_capacity(64),
        connection_ids: Vec::with_capacity(64),
    };
    driver.warm_up(stop);
    driver.run(stop);
    driver.finish();
    Ok(())
}

struct Driver<'a> {
    session: Session,
    spec: &'a FlowSpec,
    outlet: Outlet,
    sockets: BTreeMap<u32, OpenSocket>,
    /// A socket opened ahead of the message that will need it.
    spare: Option<Socket>,
    clock: StampClock,
    pace: Pace,
    gate: Gate,
    reply_wait: ReplyWait,
    sampler: TcpSampler,
    buffer: Vec<u8>,
    /// When deadlines and reports were last handled.
    ticked_at: Instant<Local>,
    /// Awaited sockets and their connections; kept between waits.
    poll_fds: Vec<Awaited>,
    connection_ids: Vec<u32>,
}

/// A socket, and whether its TCP handshake is done.
struct OpenSocket {
    socket: Socket,
    connected: bool,
}

impl Driver<'_> {
    /// Opens the lasting connection before the schedule starts, for at most the timeout.
    fn warm_up(&mut self, stop: &Stop) {
        self.session.warm_up(now());
        let deadline = now() + self.spec.timeout;
        loop {
            self.tick();
            if self.session.is_warm() || now() >= deadline || stop.is_set() {
                break;
            }
            self.wait_until(deadline.min(now() + Stop::POLL_INTERVAL));
        }
        self.session.begin(now() + SETTLE_TIME);
    }

    fn run(&mut self, stop: &Stop) {
        let mut finish = Finish::new(stop, LAST_TIMESTAMP_TIMEOUT);
        while !finish.is_cut_off(now(), || self.session.end_schedule()) {
            let limit = if let Some(due) = self.session.next_due() {
                let Some(limit) = self.approach(due) else {
                    continue;
                };
                limit
            } else {
                if let Some(connection_id) = self.session.send_tail(now()) {
                    self.write(connection_id);
                }
                now() + Stop::POLL_INTERVAL
            };
            self.tick();
            if self.session.is_done() && finish.is_complete(self.session.lacks_peer_send(), now()) {
                break;
            }
            let deadline = self.session.next_deadline().unwrap_or(limit);
            let reading = self.sampler.next().unwrap_or(limit);
            self.wait_until(
                limit
                    .min(deadline)
                    .min(reading)
                    .min(now() + Stop::POLL_INTERVAL),
            );
        }
    }

    /// Handles a message that is due soon. Returns until when there is time for other work, if any.
    fn approach(&mut self, due: Instant<Local>) -> Option<Instant<Local>> {
        if due - now() <= BUILD_LEAD && self.gate.is_permitted(due, now()) {
            let wants_socket = self.session.prepare(now());
            if wants_socket && self.spare.is_none() {
                // A failure now happens again when the message is due, and is reported then.
                self.spare = socket_for(self.spec).ok();
            }
        }
        match self.pace.nearness(due, now()) {
            SendWait::Blind => {
                self.send(due);
                None
            }
            SendWait::Close => {
                self.wait_until(now());
                None
            }
            SendWait::Far(until) if due - now() > BUILD_LEAD => Some(until.min(due - BUILD_LEAD)),
            SendWait::Far(until) => Some(until),
        }
    }

    fn send(&mut self, due: Instant<Local>) {
        match self.gate.refusal(due, self.session.end(), now()) {
            // A message that is already built is sent.
            Some(reason) if !self.session.has_prepared() => self.session.skip(reason, now()),
            _ => self.send_now(due),
        }
        // A late schedule, or one so dense that its next message is near, must still read and report replies.
        if self.session.next_due().is_some_and(|next| next <= now()) {
            self.wait_until(now());
        }
        if now() - self.ticked_at >= TICK {
            self.tick();
        }
    }

    fn send_now(&mut self, due: Instant<Local>) {
        let at = self.pace.reach(due);
        self.reply_wait.sent(at);
        match self.session.send(at, &mut now) {
            Some(connection_id) => {
                self.write(connection_id);
                self.read_tcp(connection_id);
            }
            None => self.dial_and_close(),
        }
    }

    /// Reads the kernel's statistics of a connection, where they are requested for each message.
    fn read_tcp(&mut self, connection_id: u32) {
        if self.sampler.is_per_message()
            && let Some(connection) = self.sockets.get(&connection_id)
        {
            self.outlet.tcp(&connection.socket);
        }
    }

    /// Handles deadlines, sockets to open and close, and reports.
    fn tick(&mut self) {
        self.ticked_at = now();
        self.session.at_time(self.ticked_at);
        self.dial_and_close();
        self.outlet.anchor(&self.clock);
        if self.sampler.is_due(self.ticked_at)
            && let Some(connection) = self
                .sockets
                .values()
                .rfind(|connection| connection.connected)
        {
            self.outlet.tcp(&connection.socket);
        }
        self.outlet.notes(self.session.take_notes());
        while let Some(message) = self.session.take_finished(now()) {
            self.outlet.message(&message);
        }
    }

    /// Waits until `until` or until something happens on a socket, and processes it.
    fn wait_until(&mut self, until: Instant<Local>) {
        self.poll_fds.clear();
        self.connection_ids.clear();
        for (connection_id, connection) in &self.sockets {
            let wants_room = !connection.connected || self.session.has_more(*connection_id);
            let fd = connection.socket.as_fd();
            self.poll_fds.push(if wants_room {
                Awaited::readable_or_writable(fd)
            } else {
                Awaited::readable(fd)
            });
            self.connection_ids.push(*connection_id);
        }
        if self.reply_wait.wait(&mut self.poll_fds, until).is_err() {
            return;
        }
        if let Some(step) = self.clock.refresh() {
            self.session.clock_stepped(step);
        }
        for index in 0..self.connection_ids.len() {
            let (connection_id, poll_fd) = (self.connection_ids[index], &self.poll_fds[index]);
            let (readable, writable) = (poll_fd.is_readable(), poll_fd.is_writable());
            let (notice, hung_up) = (poll_fd.has_notice(), poll_fd.is_hung_up());
            if readable {
                self.read(connection_id);
            }
            // A wake-up without a timestamp is an error of the socket.
            let faulty = notice && self.read_notices(connection_id) == 0;
            if writable || ((hung_up || faulty) && !readable) {
                self.writable(connection_id);
            }
        }
    }

    fn writable(&mut self, connection_id: u32) {
        let Some(connection) = self.sockets.get_mut(&connection_id) else {
            return;
        };
        let fault = connection.socket.take_error().ok().flatten();
        if let Some(error) = fault {
            if !connection.connected && is_answer(self.spec, &error) {
                return self.handle_refused(connection_id);
            }
            let end = if connection.connected {
                fault::to_connection_end("use the connection", &error, ErrorTime::Later)
            } else {
                self.connect_error(&error, ErrorTime::Later)
            };
            return self.session.connection_failed(connection_id, end, now());
        }
        if !connection.connected {
            if connection.socket.peer_addr().is_err() {
                return;
            }
            connection.connected = true;
            let at = now();
            if let Err(reason) = set_up(&connection.socket, self.spec) {
                return self.session.connection_failed(
                    connection_id,
                    ConnectionEnd::new(reason, None),
                    at,
                );
            }
            self.outlet.opened(&connection.socket);
            self.session.connected(connection_id, at, &mut now);
        }
        self.write(connection_id);
    }

    fn write(&mut self, connection_id: u32) {
        let Some(connection) = self.sockets.get(&connection_id) else {
            return;
        };
        while let Some((bytes, ending)) = self.session.to_write(connection_id) {
            match stamp::send(connection.socket.as_fd(), bytes, ending) {
                Ok(count) => {
                    self.gate.spend(count, now());
                    self.session.wrote(connection_id, count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    let end = fault::to_connection_end("send", &error, ErrorTime::AtOnce);
                    return self.session.connection_failed(connection_id, end, now());
                }
            }
        }
    }

    fn read(&mut self, connection_id: u32) {
        let Some(connection) = self.sockets.get(&connection_id) else {
            return;
        };
        match stamp::receive(connection.socket.as_fd(), &mut self.buffer) {
            Ok(received) if received.len == 0 => {
                self.read_notices(connection_id);
                self.session.ended(connection_id, now());
            }
            Ok(received) => {
                let stamp = received
                    .stamp
                    .and_then(|stamp| self.clock.own_instant(stamp));
                let bytes = &self.buffer[..received.len];
                self.gate.spend(received.len, now());
                self.session.received(connection_id, bytes, stamp, &mut now);
                if self.sampler.is_per_message() {
                    self.outlet.tcp(&connection.socket);
                }
                self.reply_wait.took_in(self.session.tally().replies, now());
                if self.session.has_more(connection_id) {
                    self.write(connection_id);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if !connection.connected && is_answer(self.spec, &error) => {
                self.handle_refused(connection_id);
            }
            Err(error) => {
                self.read_notices(connection_id);
                let end = fault::to_connection_end("receive", &error, ErrorTime::Later);
                self.session.connection_failed(connection_id, end, now());
            }
        }
    }

    /// Reads send timestamps. Returns their number.
    fn read_notices(&mut self, connection_id: u32) -> usize {
        let mut count = 0;
        let Some(connection) = self.sockets.get(&connection_id) else {
            return count;
        };
        while let Ok(Some(notice)) = stamp::take_notice(connection.socket.as_fd()) {
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            count += 1;
            let Some(at) = self.clock.own_instant(stamp.at) else {
                continue;
            };
            let stamped = Stamped {
                point: SendPoint::from(stamp.point),
                id: stamp.id,
                at,
                tcp: stamp.tcp.map(crate::outlet::tcp_state),
            };
            self.session.stamped(connection_id, &stamped);
        }
        count
    }

    fn finish(mut self) {
        let connection_ids: Vec<u32> = self.sockets.keys().copied().collect();
        for connection_id in connection_ids {
            self.read_notices(connection_id);
        }
        self.tick();
        while let Some(message) = self.session.take_rest() {
            self.outlet.message(&message);
        }
        self.session.part();
        self.dial_and_close();
        self.outlet.end(*self.session.tally());
    }
}
