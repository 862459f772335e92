//! The thread of a generator: takes requests up at their times, and carries them over its connections.
//!
//! Owns the loop. Sleeps only in `epoll`; takes no lock. The times of requests are in `source`, the counts
//! in `recorder`.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use neph_model::{Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_sys::epoll::{Interest, ReadyEvent, ReadyList};

use super::connection::{Connection, Phase, Progress};
use super::failure::RequestFailure;
use super::pool::{ConnectionId, Pool};
use super::recorder::{Periods, Recorder, Request};
use super::source::{Intended, Source};
use super::spec::Exchange;
use super::tally::Tally;

const RECEIVE_BUFFER: usize = 64 << 10;
/// Maximum delay until a set stop flag is noticed.
const TICK: Span = Span::from_millis(50);

/// What a thread carries out.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    exchange: &'a Exchange,
    stop: &'a Stop,
    periods: Periods,
    source: Source,
    pool: Pool,
    recorder: Recorder,
    /// Requests that wait for a connection, in the order of their intended times.
    waiting: VecDeque<Request>,
    /// Requests to begin before the next wait.
    ready: VecDeque<Request>,
    /// Connections from which more can be read at once.
    unread: Vec<ConnectionId>,
    in_flight: u64,
    next_check: RawNanos,
    buffer: Box<[u8]>,
}

/// The parts of an engine.
#[derive(Debug)]
pub(super) struct EngineParts<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) stop: &'a Stop,
    pub(super) periods: Periods,
    pub(super) source: Source,
    pub(super) pool: Pool,
    pub(super) recorder: Recorder,
}

impl<'a> Engine<'a> {
    pub(super) fn new(parts: EngineParts<'a>) -> Self {
        Self {
            exchange: parts.exchange,
            stop: parts.stop,
            periods: parts.periods,
            source: parts.source,
            pool: parts.pool,
            recorder: parts.recorder,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            unread: Vec::new(),
            in_flight: 0,
            next_check: parts.periods.start,
            buffer: vec![0; RECEIVE_BUFFER].into(),
        }
    }

    /// Sends until the end of the load, and waits for the last responses; returns the counts of the measured
    /// time.
    ///
    /// # Errors
    /// The kernel refuses to watch descriptors.
    pub(super) fn run(mut self) -> io::Result<Tally> {
        let mut found = ReadyList::default();
        loop {
            let now = clock::raw();
            // Before the interval ends: a request belongs to the interval of its intended time.
            self.take_due(now);
            let waiting = self.waiting.len() as u64;
            self.recorder.tick(now, self.in_flight, waiting);
            if self.check_deadlines(now) {
                break;
            }
            while let Some(request) = self.ready.pop_front() {
                self.begin(request);
            }
            self.pool.wait(&mut found, self.wait_time())?;
            for id in std::mem::take(&mut self.unread) {
                self.receive(id);
            }
            for event in found.iter() {
                self.handle(event);
                while let Some(request) = self.ready.pop_front() {
                    self.begin(request);
                }
            }
        }
        Ok(self.recorder.finish(clock::raw()))
    }

    /// How long to wait for reports of the kernel.
    fn wait_time(&self) -> Duration {
        if !self.unread.is_empty() {
            return Duration::ZERO;
        }
        let now = clock::raw();
        let mut until = self.recorder.interval_end().0.min(self.next_check.0);
        if let Some(next) = self.source.next().filter(|next| *next < self.periods.end) {
            until = until.min(next.0 - self.exchange.spin.nanos());
        }
        Span::from_nanos(until - now.0).to_duration()
    }

    /// Takes up the requests whose intended time has come.
    fn take_due(&mut self, now: RawNanos) {
        while let Some(intended) = self.source.take(now) {
            self.take_up(intended, now);
        }
    }

    fn take_up(&mut self, intended: Intended, now: RawNanos) {
        if intended.at >= self.periods.end || self.stop.is_set() {
            return;
        }
        self.recorder.take_up(intended.at, now);
        self.ready.push_back(Request {
            worker: intended.worker,
            intended: intended.at,
            sent: None,
            is_retry: false,
            has_waited: false,
        });
    }

    /// Sends a request on a connection, or lets it wait for one.
    fn begin(&mut self, request: Request) {
        match self.idle_connection(&request) {
            Some(id) => {
                let connection = self.pool.get(id);
                if let Some(connection) = connection {
                    connection.assign(stamped(request));
                    self.in_flight += 1;
                    self.send(id);
                }
            }
            None if self.pool.is_full() && request.has_waited => self.waiting.push_front(request),
            None if self.pool.is_full() => {
                self.recorder.wait(&request);
                self.waiting.push_back(Request {
                    has_waited: true,
                    ..request
                });
            }
            None => self.open(stamped(request)),
        }
    }

    fn idle_connection(&mut self, request: &Request) -> Option<ConnectionId> {
        // Another idle connection may have been closed, too.
        if request.is_retry {
            return None;
        }
        if !self.exchange.has_own_connections {
            return self.pool.take_idle();
        }
        let worker = self.source.worker(request.worker?)?;
        let id = worker.connection?;
        let connection = self.pool.get(id)?;
        (connection.phase == Phase::Idle).then_some(id)
    }

    fn open(&mut self, request: Request) {
        let opened = Connection::open(self.exchange, request);
        let added = opened.and_then(|connection| {
            let is_open = connection.phase == Phase::Sending;
            let added = self.pool.add(connection);
            added
                .map(|id| (id, is_open))
                .map_err(|error| RequestFailure::of(&error))
        });
        match added {
            Ok((id, is_open)) => {
                self.recorder.open_connection();
                self.in_flight += 1;
                if let Some(worker) = self.own_worker(&request) {
                    worker.connection = Some(id);
                }
                if is_open {
                    self.send(id);
                }
            }
            Err(failure) => {
                self.recorder.fail(&request, failure);
                self.serve_waiting();
                self.next_of_worker(&request, false);
            }
        }
    }

    fn own_worker(&mut self, request: &Request) -> Option<&mut super::source::Worker> {
        if !self.exchange.has_own_connections {
            return None;
        }
        self.source.worker(request.worker?)
    }

    fn send(&mut self, id: ConnectionId) {
        let Some(connection) = self.pool.get(id) else {
            return;
        };
        let progress = connection.send(&self.exchange.request);
        let is_sent = connection.phase == Phase::Receiving;
        if let (Some(request), true) = (connection.request, is_sent) {
            self.recorder.send(&request, self.exchange.request.len());
        }
        if progress == Progress::Waits && !is_sent {
            let interest = if connection.waits_for_room() {
                Interest::ReadWrite
            } else {
                Interest::Read
            };
            // Errors appear at the next report about this connection.
            let _ = self.pool.watch(id, interest);
        }
        self.progress(id, progress);
    }

    /// Handles a report about a connection.
    fn handle(&mut self, event: ReadyEvent) {
        let id = ConnectionId::from_token(event.token);
        let Some(connection) = self.pool.get(id) else {
            return;
        };
        if connection.phase == Phase::Opening {
            let progress = connection.opened();
            if progress != Progress::Waits {
                return self.progress(id, progress);
            }
        }
        let is_advanced =
            event.is_writable || (event.is_readable && connection.sends_after_reading());
        if connection.phase == Phase::Sending && is_advanced {
            self.send(id);
            let is_sent = |connection: &mut Connection| connection.phase != Phase::Sending;
            if self.pool.get(id).is_some_and(is_sent) {
                let _ = self.pool.watch(id, Interest::Read);
            }
        }
        let is_handshaking = self
            .pool
            .get(id)
            .is_some_and(|one| one.sends_after_reading());
        if (event.is_readable && !is_handshaking) || event.has_notice {
            self.receive(id);
        }
    }

    fn receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.pool.get(id) else {
            return;
        };
        if connection.phase == Phase::Idle {
            // The peer closed it, or sent bytes without a request.
            self.pool.close(id);
            self.serve_waiting();
            return;
        }
        let (progress, bytes) = connection.receive(&mut self.buffer);
        if let Some(request) = connection.request {
            self.recorder.receive(&request, bytes);
        }
        self.progress(id, progress);
    }

    /// Ends the request of a connection if that has made the last step.
    fn progress(&mut self, id: ConnectionId, progress: Progress) {
        match progress {
            Progress::Waits => {}
            Progress::HasMore => self.unread.push(id),
            Progress::Failed(failure) => self.fail(id, failure),
            Progress::Done(response) => {
                let now = clock::raw();
                let Some(connection) = self.pool.get(id) else {
                    return;
                };
                let is_sent = connection.phase == Phase::Receiving;
                let Some(request) = connection.release() else {
                    return;
                };
                self.in_flight -= 1;
                self.recorder.respond(&request, response, now);
                if response.is_reusable && is_sent && self.exchange.keep_alive {
                    self.reuse(id);
                } else {
                    self.pool.close(id);
                }
                // First the request that has waited longest, then that of this worker.
                self.serve_waiting();
                self.next_of_worker(&request, true);
            }
        }
    }

    fn reuse(&mut self, id: ConnectionId) {
        if !self.exchange.has_own_connections {
            self.pool.put_idle(id);
        }
    }

    fn fail(&mut self, id: ConnectionId, failure: RequestFailure) {
        let Some(connection) = self.pool.close(id) else {
            return;
        };
        let Some(request) = connection.request else {
            return;
        };
        self.in_flight -= 1;
        let is_repeated = self.exchange.is_idempotent && !request.is_retry;
        if is_repeated && connection.is_stale(failure) {
            self.ready.push_back(Request {
                is_retry: true,
                ..request
            });
            return;
        }
        self.recorder.fail(&request, failure);
        self.serve_waiting();
        self.next_of_worker(&request, connection.phase != Phase::Opening);
    }

    /// A waiting request gets the connection, or the place, that became free.
    fn serve_waiting(&mut self) {
        self.ready.extend(self.waiting.pop_front());
    }

    fn next_of_worker(&mut self, request: &Request, is_connected: bool) {
        let now = clock::raw();
        if let Some(intended) = self.source.ended(request.worker, now, is_connected) {
            self.take_up(intended, now);
        }
    }

    /// Ends requests that are overdue; returns whether the load is over.
    fn check_deadlines(&mut self, now: RawNanos) -> bool {
        if now < self.next_check {
            return false;
        }
        let interval = (self.exchange.timeout.nanos() / 20).clamp(1_000_000, TICK.nanos());
        self.next_check = RawNanos(now.0 + interval);
        let limit = now.0 - self.exchange.timeout.nanos();
        let sent = |request: Request| request.sent.unwrap_or(request.intended).0;
        let is_overdue = |connection: &Connection| {
            connection
                .request
                .is_some_and(|request| sent(request) <= limit)
        };
        for id in self.pool.overdue(is_overdue) {
            self.fail(id, RequestFailure::TimedOut);
        }
        while let Some(request) = self
            .waiting
            .pop_front_if(|request| request.intended.0 <= limit)
        {
            self.recorder.fail(&request, RequestFailure::NoConnection);
            self.next_of_worker(&request, true);
        }
        let is_over = now >= self.periods.end && self.in_flight == 0 && self.waiting.is_empty();
        self.stop.is_set() || (is_over && self.ready.is_empty())
    }
}

/// The request with the time of its first sending.
fn stamped(request: Request) -> Request {
    Request {
        sent: request.sent.or_else(|| Some(clock::raw())),
        ..request
    }
}
