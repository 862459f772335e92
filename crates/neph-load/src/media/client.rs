//! Receives streams as a client; sets up all of them before any begins.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::rtsp::Request;

use super::dialogue::Dialogue;
use super::error::MediaError;
use super::measured::{MediaMeasured, MediaRequest, StreamMeasured};
use super::opening::open_all;
use super::receiver::Receiver;
use super::second::MediaSecond;

/// Maximum delay until a set stop flag is noticed or a second is reported.
const TICK: Span = Span::from_millis(50);
/// Delay of the report of a second: packets with a kernel timestamp in it are read by then.
const SETTLED: Span = Span::from_millis(100);
/// Timeout for the first packet.
const FIRST: Span = Span::from_secs(5);
/// Timeout for the server's confirmation of the end.
const FAREWELL: Span = Span::from_secs(1);
/// Interval of the receiver reports to the server.
const REPORT: Span = Span::from_secs(2);
/// No keep-alives are sent within this time before the start moment, so that nothing delays the
/// start.
const QUIET: Span = Span::from_millis(200);

/// Receives streams from a server until the duration is over or `stop` is set. `on_second` gets
/// each complete second of all streams. The time of a stream counts from its first packet.
///
/// # Errors
/// Invalid parameters, a stream that cannot be set up, or no packet. A stream that breaks off later
/// keeps its figures and has a fault.
pub fn measure(
    server: SocketAddr,
    ask: &MediaRequest,
    stop: &Stop,
    on_second: &mut dyn FnMut(&MediaSecond),
) -> Result<MediaMeasured, MediaError> {
    ask.check()?;
    let receivers = open_all(server, ask, stop)?;
    let mut client = Client {
        began: clock::raw().0,
        receivers,
        ask,
        stop,
        on_second,
        reported: 0,
    };
    client.await_start()?;
    let started = Wall::from_unix_nanos(clock::wall().0);
    let played = client.now();
    client.request_all(Dialogue::play);
    client.receive_all(played)?;
    let end = client.now();
    client.send_farewell();
    let is_stopped = stop.is_set();
    let streams = client.finish(end);
    Ok(MediaMeasured {
        address: server,
        ask: ask.clone(),
        started,
        streams,
        is_stopped,
    })
}

struct Client<'a> {
    /// Monotonic start; all times are relative to it.
    began: i64,
    receivers: Vec<Receiver>,
    ask: &'a MediaRequest,
    stop: &'a Stop,
    on_second: &'a mut dyn FnMut(&MediaSecond),
    /// Number of reported seconds.
    reported: u32,
}

impl Client<'_> {
    fn now(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    /// Waits for the common start of all clients.
    fn await_start(&mut self) -> Result<(), MediaError> {
        let now = self.now();
        for receiver in &mut self.receivers {
            receiver.alive_at = now + receiver.dialogue.interval();
        }
        let Some(start) = self.ask.start else {
            return Ok(());
        };
        loop {
            let left = Span::from_nanos(start.unix_nanos() - clock::wall().0);
            if left <= QUIET {
                let at = clock::raw().0 + left.nanos();
                clock::sleep_until(RawNanos(at), Spin::NONE);
                return Ok(());
            }
            if self.stop.is_set() {
                return Err(MediaError::Stopped);
            }
            self.turn(TICK.min(left - QUIET))?;
            if let Some(fault) = self
                .receivers
                .iter()
                .find_map(|receiver| receiver.fault.clone())
            {
                return Err(MediaError::Broken(format!("before the start: {fault}")));
            }
        }
    }

    fn request_all(&mut self, request: fn(&mut Dialogue) -> Request) {
        // Built first, so that they leave back to back.
        let requests = self
            .receivers
            .iter_mut()
            .map(|receiver| request(&mut receiver.dialogue));
        let requests: Vec<Request> = requests.collect();
        for (receiver, request) in self.receivers.iter_mut().zip(&requests) {
            receiver.send(request);
        }
    }

    /// Waits for data and processes it.
    fn turn(&mut self, max: Span) -> Result<(), MediaError> {
        let mut awaited = Vec::with_capacity(self.receivers.len() * 2);
        for receiver in &self.receivers {
            awaited.push(Awaited::readable(receiver.pair.rtp.as_fd()));
            if receiver.fault.is_none() {
                awaited.push(Awaited::readable(receiver.stream.as_fd()));
            }
        }
        let waited = ppoll::wait(&mut awaited, Some(max.to_duration()));
        if let (Err(source), Some(receiver)) = (waited, self.receivers.first()) {
            return Err(MediaError::socket("wait for", receiver.peer)(source));
        }
        let (clocks, now, began) = (clock::pair(), self.now(), self.began);
        let mut awaited = awaited.iter();
        for receiver in &mut self.receivers {
            let has_packets = awaited.next().is_some_and(Awaited::has_something);
            // RTSP first: the answer to PLAY names the first packet.
            if receiver.fault.is_none() && awaited.next().is_some_and(Awaited::has_something) {
                receiver.read_control();
            }
            if has_packets {
                receiver.receive(clocks, began);
            }
            receiver.track.advance_to(now);
            if now >= receiver.report_at && receiver.fault.is_none() {
                receiver.report_at = now + REPORT;
                receiver.send_report();
            }
            if now >= receiver.alive_at && receiver.fault.is_none() {
                receiver.alive_at = now + receiver.dialogue.interval();
                let request = receiver.dialogue.keep_alive();
                receiver.send(&request);
            }
        }
        Ok(())
    }

    fn receive_all(&mut self, played: Span) -> Result<(), MediaError> {
        loop {
            self.turn(TICK)?;
            let now = self.now();
            self.report(now - SETTLED);
            let origins = self
                .receivers
                .iter()
                .filter_map(|receiver| receiver.track.origin());
            let Some(last) = origins.max() else {
                if let Some(fault) = self
                    .receivers
                    .iter()
                    .find_map(|receiver| receiver.fault.clone())
                {
                    return Err(MediaError::Broken(fault));
                }
                if self.stop.is_set() {
                    return Err(MediaError::Stopped);
                }
                if now >= played + FIRST {
                    let peer = self.receivers.first().map(|receiver| receiver.peer);
                    let peer = peer.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
                    return Err(MediaError::NoPacket { peer });
                }
                continue;
            };
            let is_over = now >= last + self.ask.duration + SETTLED;
            let is_lost = self
                .receivers
                .iter()
                .all(|receiver| receiver.fault.is_some());
            if is_over || is_lost || self.stop.is_set() {
                return Ok(());
            }
        }
    }

    /// Reports the seconds that all streams had completed at `by`.
    fn report(&mut self, by: Span) {
        loop {
            let index = self.reported;
            let ends = self
                .receivers
                .iter()
                .filter_map(|receiver| receiver.track.second_ends(index));
            let is_over = ends.max().is_some_and(|end| end <= by);
            if !is_over || Span::from_secs(i64::from(index) + 1) > self.ask.duration {
                return;
            }
            let streams = self
                .receivers
                .iter()
                .map(|receiver| receiver.track.second_of(index));
            let second = MediaSecond {
                index,
                streams: streams.collect(),
            };
            (self.on_second)(&second);
            self.reported += 1;
        }
    }

    /// Ends the sessions, so that the server has free slots at once.
    fn send_farewell(&mut self) {
        self.request_all(Dialogue::teardown);
        let latest = self.now() + FAREWELL;
        while self.now() < latest {
            let is_over = |receiver: &Receiver| receiver.is_ended || receiver.fault.is_some();
            if self.receivers.iter().all(is_over) {
                return;
            }
            for receiver in self
                .receivers
                .iter_mut()
                .filter(|receiver| receiver.fault.is_none())
            {
                // Waits at most for its read timeout. An error now is no fault of the measurement.
                receiver.read_control();
                if receiver.fault.take().is_some() {
                    receiver.is_ended = true;
                }
            }
        }
    }

    fn finish(self, end: Span) -> Vec<StreamMeasured> {
        let duration = self.ask.duration;
        let streams = self.receivers.into_iter().map(|mut receiver| {
            let origin = receiver.track.origin();
            let end = origin.map_or(end, |origin| end.min(origin + duration));
            let drops = receiver.drops();
            let statistics = receiver.track.finish(end, drops);
            let silent = (origin.is_none()).then(|| "no packet came".to_owned());
            StreamMeasured {
                encoding: receiver
                    .dialogue
                    .media()
                    .and_then(|media| media.encoding.clone()),
                seconds: receiver.track.seconds().to_vec(),
                statistics,
                fault: receiver.fault.or(silent),
            }
        });
        streams.collect()
    }
}
