//! Receives streams as a client: all are set up before any begins.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::rtsp::Request;

use super::dialogue::Dialogue;
use super::error::MediaError;
use super::lane::Lane;
use super::measured::{MediaAsk, MediaMeasured, StreamMeasured};
use super::opening::open_all;
use super::second::MediaSecond;

/// How soon a set stop flag is seen, and a second is reported.
const TICK: Span = Span::from_millis(50);
/// A second is reported so long after it ended: what the kernel stamped in it was read by then.
const SETTLED: Span = Span::from_millis(100);
/// How long the first packet may take.
const FIRST: Span = Span::from_secs(5);
/// How long the server may take to confirm the end.
const FAREWELL: Span = Span::from_secs(1);
/// How often the server is sent a report.
const REPORT: Span = Span::from_secs(2);
/// So long before the start moment sessions are no longer kept alive: nothing but the start happens then.
const QUIET: Span = Span::from_millis(200);

/// Receives streams from a server until the duration is over or `stop` is set; `on_second` is given each
/// second of all streams once it is over. Time counts from the first packet of each stream on.
///
/// # Errors
/// The ask cannot be meant, a stream cannot be set up, or no packet comes. A stream that breaks off later
/// keeps its figures, with the fault.
pub fn measure(
    server: SocketAddr,
    ask: &MediaAsk,
    stop: &Stop,
    on_second: &mut dyn FnMut(&MediaSecond),
) -> Result<MediaMeasured, MediaError> {
    ask.check()?;
    let lanes = open_all(server, ask, stop)?;
    let mut client = Client {
        began: clock::raw().0,
        lanes,
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
    client.say_farewell();
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
    /// On the monotonic clock; all times are since then.
    began: i64,
    lanes: Vec<Lane>,
    ask: &'a MediaAsk,
    stop: &'a Stop,
    on_second: &'a mut dyn FnMut(&MediaSecond),
    /// Seconds that were reported.
    reported: u32,
}

impl Client<'_> {
    fn now(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    /// Waits until the moment at which all clients begin.
    fn await_start(&mut self) -> Result<(), MediaError> {
        let now = self.now();
        for lane in &mut self.lanes {
            lane.alive_at = now + lane.dialogue.interval();
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
            if let Some(fault) = self.lanes.iter().find_map(|lane| lane.fault.clone()) {
                return Err(MediaError::Broken(format!("before the start: {fault}")));
            }
        }
    }

    fn request_all(&mut self, request: fn(&mut Dialogue) -> Request) {
        // Made first, so that they leave one right after the other.
        let requests = self
            .lanes
            .iter_mut()
            .map(|lane| request(&mut lane.dialogue));
        let requests: Vec<Request> = requests.collect();
        for (lane, request) in self.lanes.iter_mut().zip(&requests) {
            lane.send(request);
        }
    }

    /// Waits for what comes, and takes it in.
    fn turn(&mut self, most: Span) -> Result<(), MediaError> {
        let mut awaited = Vec::with_capacity(self.lanes.len() * 2);
        for lane in &self.lanes {
            awaited.push(Awaited::readable(lane.pair.rtp.as_fd()));
            if lane.fault.is_none() {
                awaited.push(Awaited::readable(lane.stream.as_fd()));
            }
        }
        let waited = ppoll::wait(&mut awaited, Some(most.to_duration()));
        if let (Err(source), Some(lane)) = (waited, self.lanes.first()) {
            return Err(MediaError::socket("wait for", lane.peer)(source));
        }
        let (clocks, now, began) = (clock::pair(), self.now(), self.began);
        let mut awaited = awaited.iter();
        for lane in &mut self.lanes {
            let has_packets = awaited.next().is_some_and(Awaited::has_something);
            // RTSP first: the answer to PLAY names the first packet.
            if lane.fault.is_none() && awaited.next().is_some_and(Awaited::has_something) {
                lane.read_control();
            }
            if has_packets {
                lane.receive(clocks, began);
            }
            lane.track.turn(now);
            if now >= lane.report_at && lane.fault.is_none() {
                lane.report_at = now + REPORT;
                lane.send_report();
            }
            if now >= lane.alive_at && lane.fault.is_none() {
                lane.alive_at = now + lane.dialogue.interval();
                let request = lane.dialogue.keep_alive();
                lane.send(&request);
            }
        }
        Ok(())
    }

    fn receive_all(&mut self, played: Span) -> Result<(), MediaError> {
        loop {
            self.turn(TICK)?;
            let now = self.now();
            self.report(now - SETTLED);
            let origins = self.lanes.iter().filter_map(|lane| lane.track.origin());
            let Some(last) = origins.max() else {
                if let Some(fault) = self.lanes.iter().find_map(|lane| lane.fault.clone()) {
                    return Err(MediaError::Broken(fault));
                }
                if self.stop.is_set() {
                    return Err(MediaError::Stopped);
                }
                if now >= played + FIRST {
                    let peer = self.lanes.first().map(|lane| lane.peer);
                    let peer = peer.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
                    return Err(MediaError::NoPacket { peer });
                }
                continue;
            };
            let is_over = now >= last + self.ask.duration + SETTLED;
            let is_lost = self.lanes.iter().all(|lane| lane.fault.is_some());
            if is_over || is_lost || self.stop.is_set() {
                return Ok(());
            }
        }
    }

    /// Reports the seconds that were over for all streams by then.
    fn report(&mut self, by: Span) {
        loop {
            let index = self.reported;
            let ends = self
                .lanes
                .iter()
                .filter_map(|lane| lane.track.second_ends(index));
            let is_over = ends.max().is_some_and(|end| end <= by);
            if !is_over || Span::from_secs(i64::from(index) + 1) > self.ask.duration {
                return;
            }
            let streams = self.lanes.iter().map(|lane| lane.track.second_of(index));
            let second = MediaSecond {
                index,
                streams: streams.collect(),
            };
            (self.on_second)(&second);
            self.reported += 1;
        }
    }

    /// Ends the sessions, so that the server is free at once.
    fn say_farewell(&mut self) {
        self.request_all(Dialogue::teardown);
        let latest = self.now() + FAREWELL;
        while self.now() < latest {
            let is_over = |lane: &Lane| lane.is_ended || lane.fault.is_some();
            if self.lanes.iter().all(is_over) {
                return;
            }
            for lane in self.lanes.iter_mut().filter(|lane| lane.fault.is_none()) {
                // Waits for its read timeout at most. What breaks now is no fault of the measurement.
                lane.read_control();
                if lane.fault.take().is_some() {
                    lane.is_ended = true;
                }
            }
        }
    }

    fn finish(self, end: Span) -> Vec<StreamMeasured> {
        let duration = self.ask.duration;
        let streams = self.lanes.into_iter().map(|mut lane| {
            let origin = lane.track.origin();
            let end = origin.map_or(end, |origin| end.min(origin + duration));
            let drops = lane.drops();
            let figures = lane.track.finish(end, drops);
            let silent = (origin.is_none()).then(|| "no packet came".to_owned());
            StreamMeasured {
                encoding: lane
                    .dialogue
                    .media()
                    .and_then(|media| media.encoding.clone()),
                seconds: lane.track.seconds().to_vec(),
                figures,
                fault: lane.fault.or(silent),
            }
        });
        streams.collect()
    }
}
