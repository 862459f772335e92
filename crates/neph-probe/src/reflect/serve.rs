//! Runs one connection on its socket.
//!
//! Does not own which connections there are (`accept`).

use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_model::{Instant, Local, Span};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::memory;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::stamp::{self, Carrier, Notice, Point};

use super::ReflectorState;
use super::answerer::{Answerer, CloseReason, Shares, Times};
use super::budget::Budget;
use super::connection_slots::SlotGuard;
use super::counters::Counted;
use super::progress::{Progress, WINDOW};
use super::reply_timestamps::Arrived;
use crate::stamp_clock::{StampClock, now};

/// How long a thread may take to notice that the reflector stops.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// How much longer than agreed a bulk transfer may take.
const TURN_MARGIN: Span = Span::from_secs(10);
/// After the last reply the peer's data is read for this time, so that it gets the reply and no reset.
const LINGER_TIME: Span = Span::from_millis(500);
/// Bytes per read. A bulk transfer has more, as there is one at a time.
const BUFFER_BYTES: usize = 32 << 10;
const BULK_BUFFER_BYTES: usize = 256 << 10;
/// Ticks without the memory reserve after which even a connection with little memory ends: half a second.
const MAX_SCARCE: u32 = 5;

/// A connection with its place and its peer's budget.
pub(super) struct Admitted {
    pub(super) peer: IpAddr,
    pub(super) guard: SlotGuard,
    pub(super) budget: Arc<Budget>,
}

/// Runs one connection.
pub(super) fn serve(stream: &TcpStream, shared: &ReflectorState, admitted: &Admitted) {
    let mut server = Server {
        stream,
        shared,
        guard: &admitted.guard,
        answerer: Answerer::new(
            shared.caps,
            shared.think,
            shared.tls.clone(),
            Shares {
                peer: admitted.peer,
                budget: Arc::clone(&admitted.budget),
                bulk: Arc::clone(&shared.bulk),
                room: Arc::clone(&shared.room),
                tx_timestamps: Arc::clone(&shared.tx_timestamps),
                clock: Arc::clone(&shared.clock),
                counters: Arc::clone(&shared.counters),
            },
        ),
        clock: StampClock::new(),
        since: now(),
        scarce: 0,
    };
    let refused = match server.run() {
        Err(Ending::Connection(CloseReason::Refused(counted)) | Ending::Refused(counted)) => {
            Some(counted)
        }
        Err(Ending::Connection(CloseReason::Done) | Ending::Gone) | Ok(()) => None,
    };
    if let Some(counted) = refused {
        shared.counters.count(counted);
    }
    server.leave();
}

struct Server<'a> {
    stream: &'a TcpStream,
    shared: &'a ReflectorState,
    guard: &'a SlotGuard,
    answerer: Answerer,
    clock: StampClock,
    since: Instant<Local>,
    /// Consecutive ticks without the memory reserve.
    scarce: u32,
}

/// Why the loop ends.
enum Ending {
    Connection(CloseReason),
    Refused(Counted),
    Gone,
}

/// A buffer of that size, or the end of the connection where there is no memory for it.
fn buffer(size: usize) -> Result<Vec<u8>, Ending> {
    let mut buffer = Vec::new();
    let reserved = buffer.try_reserve_exact(size);
    reserved.map_err(|_| Ending::Refused(Counted::RefusedMemory))?;
    buffer.resize(size, 0);
    Ok(buffer)
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), Ending> {
        let peer_gone = |_| Ending::Gone;
        self.stream.set_nodelay(true).map_err(peer_gone)?;
        self.stream.set_nonblocking(true).map_err(peer_gone)?;
        stamp::enable(self.stream.as_fd(), Carrier::StreamDepartures).map_err(peer_gone)?;
        let mut buffer = buffer(BUFFER_BYTES)?;
        let mut incoming = now();
        while !self.shared.stop.is_set() {
            if let Some(span) = self.answerer.bulk() {
                return self.sink(span);
            }
            if self.receive(&mut buffer)? {
                incoming = now();
                self.guard.record_received(incoming);
            }
            self.check_memory()?;
            if self.wait_for_turn()? {
                // The turn is awaited, not the peer.
                incoming = now();
                self.guard.record_received(incoming);
            }
            // A peer that sends single bytes is no reason to wait longer.
            self.check_patience(incoming)?;
        }
        Ok(())
    }

    /// Answers a bulk transfer whose turn has come, or that has waited too long. Returns whether one still
    /// waits.
    fn wait_for_turn(&mut self) -> Result<bool, Ending> {
        let result = self.answerer.wait(now());
        self.write()?;
        result.map_err(Ending::Connection)
    }

    /// Without free memory, a connection that holds a large message ends at once, and any other if that was
    /// not enough.
    fn check_memory(&mut self) -> Result<(), Ending> {
        if memory::keep_reserve() {
            self.scarce = 0;
            return Ok(());
        }
        self.scarce += 1;
        if self.scarce > MAX_SCARCE || self.answerer.holds_much() {
            return Err(Ending::Refused(Counted::RefusedMemory));
        }
        Ok(())
    }

    fn check_patience(&mut self, incoming: Instant<Local>) -> Result<(), Ending> {
        let caps = &self.shared.caps;
        if !self.answerer.is_open() && now() - self.since > caps.handshake {
            return Err(Ending::Refused(Counted::RefusedHandshake));
        }
        if now() - incoming > self.guard.idle() {
            return Err(Ending::Refused(Counted::Idle));
        }
        if self.answerer.is_stalled(now()) {
            return Err(Ending::Refused(Counted::SlowWriters));
        }
        Ok(())
    }

    /// Waits for bytes and answers them. Returns whether there were any.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Ending> {
        let mut poll_fds = [Awaited::readable(self.stream.as_fd())];
        ppoll::wait(&mut poll_fds, Some(TICK)).map_err(|_| Ending::Gone)?;
        if poll_fds[0].has_notice() {
            self.clock.refresh();
            self.read_notices();
        }
        if !poll_fds[0].is_readable() {
            return if poll_fds[0].is_hung_up() {
                Err(Ending::Gone)
            } else {
                Ok(false)
            };
        }
        let received = match stamp::receive(self.stream.as_fd(), buffer) {
            Ok(received) if received.len == 0 => return Err(Ending::Gone),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(_) => return Err(Ending::Gone),
        };
        let app_rx = now();
        self.clock.refresh();
        let rx = received
            .stamp
            .and_then(|stamp| self.clock.own_instant(stamp));
        let before = self.answerer.replies();
        let mut times = RealTimes {
            wall_offset: self.clock.anchor().offset().nanos(),
        };
        let arrived = Arrived { rx, app_rx };
        let bytes = &buffer[..received.len];
        let mut answered = self.answerer.received(bytes, arrived, &mut times);
        let mut written = self.write();
        while self.answerer.is_backlogged() && answered.is_ok() && written.is_ok() {
            answered = self.answerer.resume(arrived, &mut times);
            written = self.write();
        }
        for _ in before..self.answerer.replies() {
            self.shared.counters.count(Counted::Replies);
        }
        self.read_notices();
        answered.map_err(Ending::Connection)?;
        written.map(|()| true)
    }

    fn write(&mut self) -> Result<(), Ending> {
        let mut progress: Option<Progress> = None;
        let mut written = 0;
        while let Some((bytes, ending)) = self.answerer.outbox().next() {
            match stamp::send(self.stream.as_fd(), bytes, ending) {
                Ok(count) => {
                    self.answerer.outbox().wrote(count);
                    if progress.is_some() {
                        // It still reads, so it is not idle.
                        self.guard.record_received(now());
                    }
                    written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.shared.stop.is_set() {
                        return Err(Ending::Gone);
                    }
                    let window = self.shared.caps.idle.min(WINDOW);
                    let progress =
                        progress.get_or_insert_with(|| Progress::new(window, written, now()));
                    if progress.is_too_slow(written, now()) {
                        return Err(Ending::Refused(Counted::SlowReaders));
                    }
                    self.wait_for_room()?;
                }
                Err(_) => return Err(Ending::Gone),
            }
        }
        self.answerer.release_spare_capacity();
        Ok(())
    }

    fn wait_for_room(&mut self) -> Result<(), Ending> {
        self.read_notices();
        let mut poll_fds = [Awaited::writable(self.stream.as_fd())];
        ppoll::wait(&mut poll_fds, Some(TICK)).map_err(|_| Ending::Gone)
    }

    fn read_notices(&mut self) {
        while let Ok(Some(notice)) = stamp::take_notice(self.stream.as_fd()) {
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            if stamp.point == Point::Sent
                && let Some(at) = self.clock.own_instant(stamp.at)
            {
                self.answerer.sent(stamp.id, at);
            }
        }
    }

    /// Receives a bulk transfer until the peer ends it, its time is over, or it loses its turn to others.
    fn sink(&mut self, span: Span) -> Result<(), Ending> {
        let mut buffer = buffer(BULK_BUFFER_BYTES)?;
        self.shared.counters.count(Counted::Bulk);
        let deadline = now() + span + TURN_MARGIN;
        let mut bytes = 0;
        while !self.shared.stop.is_set() && now() < deadline {
            let mut poll_fds = [Awaited::readable(self.stream.as_fd())];
            ppoll::wait(&mut poll_fds, Some(TICK)).map_err(|_| Ending::Gone)?;
            if poll_fds[0].has_notice() {
                self.read_notices();
            }
            match stamp::receive(self.stream.as_fd(), &mut buffer) {
                Ok(received) if received.len == 0 => return Err(Ending::Gone),
                Ok(received) => {
                    bytes += received.len as u64;
                    self.guard.record_received(now());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Ending::Gone),
            }
            if let Some(reason) = self.answerer.sank(bytes, now()) {
                return Err(Ending::Refused(reason));
            }
        }
        Ok(())
    }

    /// Ends the connection so that the peer gets the last written bytes.
    fn leave(&mut self) {
        self.answerer.release_memory();
        if self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let deadline = now() + LINGER_TIME;
        let mut buffer = vec![0; 4096];
        while now() < deadline {
            let mut poll_fds = [Awaited::readable(self.stream.as_fd())];
            if ppoll::wait(&mut poll_fds, Some(TICK)).is_err() {
                return;
            }
            self.read_notices();
            match stamp::receive(self.stream.as_fd(), &mut buffer) {
                Ok(received) if received.len > 0 => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// The clocks of this host, as of the last request.
struct RealTimes {
    wall_offset: i64,
}

impl Times for RealTimes {
    fn now(&mut self) -> Instant<Local> {
        now()
    }
    fn wall_offset(&mut self) -> i64 {
        self.wall_offset
    }
    fn think(&mut self, span: Span) {
        let until = RawNanos((now() + span).nanos());
        clock::sleep_until(until, Spin::SHORT);
    }
}
