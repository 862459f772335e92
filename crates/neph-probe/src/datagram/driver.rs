//! Runs a datagram session on a real socket: one thread, ppoll, absolute sleeps.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use neph_model::{Instant, Local, Span, Stop, Wall};
use neph_sys::icmp_error::{self, IcmpError, Queued};
use neph_sys::ppoll::Awaited;
use neph_sys::stamp::{self, Carrier, Family, Notice};
use socket2::Socket;

use super::session::Session;
use super::{Codec, Opened, RawCompanion, icmp_answer, send};
use crate::ProbeError;
use crate::exchange::SendPoint;
use crate::fault::{self, ErrorTime};
use crate::finish::Finish;
use crate::gate::Gate;
use crate::outlet::Outlet;
use crate::pace::{Pace, SendWait};
use crate::reply_wait::ReplyWait;
use crate::spec::FlowSpec;
use crate::stamp_clock::{StampClock, now};

/// From opening the socket to the first message: receive timestamps are enabled by then.
const SETTLE_TIME: Span = Span::from_millis(20);
/// Deadlines and reports are handled at least this often, however dense the schedule.
const TICK: Span = Span::from_millis(1);
/// Datagrams read in a row before timestamps and the schedule are checked again.
const BATCH: usize = 64;
/// Receive buffer, in bytes.
const RECEIVE_BUFFER_BYTES: i32 = 4 << 20;
/// How long to wait for the reflector's last timestamp.
const LAST_TIMESTAMP_TIMEOUT: Span = Span::from_millis(500);
/// Bytes of a datagram quoted by an ICMP error that are read: the numbers of STAMP and ICMP are in them.
const MAX_QUOTE_BYTES: usize = 64;

/// Runs the flow until its schedule is over or `stop` is set.
pub(crate) fn drive(
    spec: &FlowSpec,
    opened: Opened,
    outlet: Outlet,
    stop: &Stop,
) -> Result<(), ProbeError> {
    let Opened {
        socket,
        codec,
        alongside,
    } = opened;
    stamp::enable(socket.as_fd(), Carrier::Datagrams).map_err(|source| ProbeError::Socket {
        operation: "enable kernel timestamps on a socket to",
        address: spec.address,
        source,
    })?;
    // Without it ICMP errors are not assigned to messages: only the reason for a loss is then unknown.
    let _ = icmp_error::enable(socket.as_fd(), family_of(spec.address));
    // A thread that is not scheduled must not lose datagrams. Less room is no fault.
    let _ = stamp::make_room(socket.as_fd(), RECEIVE_BUFFER_BYTES);
    let mut driver = Driver {
        session: Session::new(spec),
        codec,
        socket,
        alongside,
        outlet,
        clock: StampClock::new(),
        pace: Pace::new(spec.spin, spec.schedule.interval),
        gate: Gate::for_flow(spec),
        reply_wait: ReplyWait::for_flow(spec, now()),
        target: spec.address,
        request: Vec::with_capacity(1 << 16),
        built: None,
        buffer: vec![0; 1 << 16],
        ticked_at: now(),
    };
    match &driver.alongside {
        Some(alongside) => driver.outlet.placed(alongside.source),
        None => driver.outlet.opened(&driver.socket),
    }
    driver.session.begin(now() + SETTLE_TIME);
    driver.run(stop);
    driver.finish();
    Ok(())
}

struct Driver {
    session: Session,
    codec: Box<dyn Codec>,
    socket: Socket,
    alongside: Option<RawCompanion>,
    outlet: Outlet,
    clock: StampClock,
    pace: Pace,
    gate: Gate,
    reply_wait: ReplyWait,
    target: SocketAddr,
    request: Vec<u8>,
    /// The number of the request that is already built.
    built: Option<u64>,
    buffer: Vec<u8>,
    /// When deadlines and reports were last handled.
    ticked_at: Instant<Local>,
}

/// Whether send timestamps are read now, or later because a send is close.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notices {
    Now,
    Later,
}

impl Driver {
    fn run(&mut self, stop: &Stop) {
        let mut finish = Finish::new(stop, LAST_TIMESTAMP_TIMEOUT);
        while !finish.is_cut_off(now(), || self.session.end_schedule()) {
            let limit = if let Some(due) = self.session.next_due() {
                let Some(limit) = self.approach(due) else {
                    continue;
                };
                limit
            } else {
                self.send_tail();
                now() + Stop::POLL_INTERVAL
            };
            self.tick();
            if self.session.is_done() && finish.is_complete(self.session.lacks_peer_send(), now()) {
                break;
            }
            let deadline = self.session.next_deadline().unwrap_or(limit);
            let until = limit.min(deadline).min(now() + Stop::POLL_INTERVAL);
            self.take_in(until, Notices::Now);
        }
    }

    /// Handles a message that is due soon. Returns until when there is time for other work, if any.
    fn approach(&mut self, due: Instant<Local>) -> Option<Instant<Local>> {
        match self.pace.nearness(due, now()) {
            SendWait::Blind => {
                self.send(due);
                None
            }
            SendWait::Close => {
                self.build(due);
                self.take_in(now(), Notices::Later);
                None
            }
            SendWait::Far(until) => Some(until),
        }
    }

    fn refresh(&mut self) {
        if let Some(step) = self.clock.refresh() {
            self.session.clock_stepped(step);
        }
    }

    fn wall(&self, at: Instant<Local>) -> Wall {
        self.clock.anchor().to_wall(at)
    }

    fn build(&mut self, due: Instant<Local>) {
        let seq = self.session.next_seq();
        if self.built != Some(seq) {
            self.take_back();
            self.refresh();
            let wall = self.wall(due);
            self.codec.request(seq, wall, &mut self.request);
            self.built = Some(seq);
        }
    }

    fn send(&mut self, due: Instant<Local>) {
        if let Some(reason) = self.gate.refusal(due, self.session.end(), now()) {
            self.session.skip(reason, now());
        } else {
            self.send_now(due);
        }
        // A late schedule, or one so dense that its next message is near, must still read and report replies.
        if self.session.next_due().is_some_and(|next| next <= now()) {
            self.take_in(now(), Notices::Now);
        }
        if now() - self.ticked_at >= TICK {
            self.take_in(now(), Notices::Now);
            self.tick();
        }
    }

    fn send_now(&mut self, due: Instant<Local>) {
        self.build(due);
        let at = self.pace.reach(due);
        let Some(seq) = self.session.sending(at) else {
            return;
        };
        self.reply_wait.sent(at);
        self.gate.spend(self.request.len(), at);
        if let Err(earlier) = send(self.socket.as_fd(), &self.request) {
            // This send reports an ICMP error of an earlier datagram. The second try succeeds.
            match send(self.socket.as_fd(), &self.request) {
                Ok(()) => self.session.refused_by(&fault::sentence(
                    "an earlier message",
                    &earlier,
                    fault::answer_of_datagram(&earlier, ErrorTime::Later),
                )),
                Err(error) => {
                    self.session.not_sent(seq, &error, now());
                    self.restart_count();
                }
            }
        }
    }

    /// A firewall refuses a datagram after the kernel has counted it, a full buffer before (since Linux 6.9).
    /// So the number of the next datagram is not known.
    fn restart_count(&mut self) {
        self.read_notices();
        if stamp::restart_count(self.socket.as_fd(), Carrier::Datagrams).is_ok() {
            self.session.count_restarted();
        }
    }

    fn send_tail(&mut self) {
        if let Some(seq) = self.session.tail() {
            let wall = self.wall(now());
            self.codec.request(seq, wall, &mut self.request);
            // Not counted: without it two stages of the last message merge.
            let _ = send(self.socket.as_fd(), &self.request);
        }
    }

    fn tick(&mut self) {
        self.ticked_at = now();
        self.session.at_time(self.ticked_at);
        self.outlet.anchor(&self.clock);
        self.outlet.notes(self.session.take_notes());
        while let Some(message) = self.session.take_finished(now()) {
            self.outlet.message(&message);
        }
    }

    /// Waits until `until` or until something happens, and processes it. Close to a send, only replies are
    /// read: send timestamps can wait.
    fn take_in(&mut self, until: Instant<Local>, notices: Notices) {
        let mut poll_fds = [Awaited::readable(self.socket.as_fd())];
        if self.reply_wait.wait(&mut poll_fds, until).is_err() {
            return;
        }
        let [poll_fd] = poll_fds;
        if !poll_fd.is_readable() && !poll_fd.has_notice() {
            return;
        }
        self.refresh();
        if poll_fd.is_readable() {
            let max = match notices {
                Notices::Now => BATCH,
                Notices::Later => 1,
            };
            let mut read = 0;
            while read < max && self.read() {
                read += 1;
            }
        }
        if poll_fd.has_notice() && notices == Notices::Now && self.read_notices() == 0 {
            // No timestamp but an error (ICMP: the peer's port is closed). A read clears it; otherwise it
            // would end every wait at once.
            self.read();
        }
    }

    /// Reads one datagram. Returns whether there was one.
    fn read(&mut self) -> bool {
        match stamp::receive(self.socket.as_fd(), &mut self.buffer) {
            Ok(received) => {
                let at = now();
                self.gate.spend(received.len, at);
                let bytes = &self.buffer[..received.len];
                let latest_seq = self.session.next_seq();
                if let Some(answer) = self.codec.answer(bytes, latest_seq) {
                    let stamp = received
                        .stamp
                        .and_then(|stamp| self.clock.own_instant(stamp));
                    self.session.answered(&answer, stamp, at);
                    self.object(received.len);
                    self.reply_wait.took_in(self.session.tally().replies, at);
                }
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    let answer = fault::answer_of_datagram(&error, ErrorTime::Later);
                    let reason = fault::sentence("receive", &error, answer);
                    self.session.refused_by(&reason);
                }
                false
            }
        }
    }

    /// Cancels state that the peer may keep for the latest request, as it would block the next one.
    fn take_back(&mut self) {
        if let Some(alongside) = &mut self.alongside {
            self.codec.take_back(&mut alongside.prepared_packet);
            alongside.send_prepared();
        }
    }

    /// Sends an objection to the datagram in the buffer, if the peer needs one.
    fn object(&mut self, len: usize) {
        if let Some(alongside) = &mut self.alongside {
            self.codec
                .objection(&self.buffer[..len], &mut alongside.prepared_packet);
            alongside.send_prepared();
        }
    }

    /// Reads the kernel's notices about sent datagrams. Returns their number.
    fn read_notices(&mut self) -> usize {
        let mut read = 0;
        let mut quoted = [0; MAX_QUOTE_BYTES];
        while let Ok(Some((queued, len))) =
            icmp_error::take_quoted(self.socket.as_fd(), &mut quoted)
        {
            read += 1;
            match queued {
                Queued::Notice(Notice::Stamp(stamp)) => {
                    if let Some(at) = self.clock.own_instant(stamp.at) {
                        self.session
                            .stamped(SendPoint::from(stamp.point), stamp.id, at);
                    }
                }
                Queued::Notice(_) => {}
                Queued::Icmp(error) => self.icmp_error(&error, &quoted[..len]),
            }
        }
        read
    }

    /// Handles an ICMP error for one of this flow's datagrams.
    fn icmp_error(&mut self, error: &IcmpError, quoted: &[u8]) {
        let latest_seq = self.session.next_seq();
        if let Some(kind) = icmp_answer::kind_of(self.target, error)
            && let Some(seq) = self.codec.quoted(quoted, latest_seq)
        {
            self.session.icmp_error(seq, kind, now());
        }
    }

    fn finish(mut self) {
        self.take_back();
        self.read_notices();
        self.tick();
        while let Some(message) = self.session.take_rest() {
            self.outlet.message(&message);
        }
        self.outlet.end(*self.session.tally());
    }
}

const fn family_of(address: SocketAddr) -> Family {
    match address {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    }
}
