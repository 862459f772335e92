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
const REPORT_DELAY: Span = Span::from_millis(100);
/// Timeout for the first packet.
const FIRST_PACKET_TIMEOUT: Span = Span::from_secs(5);
/// Timeout for the server's confirmation of the end.
const TEARDOWN_TIMEOUT: Span = Span::from_secs(1);
/// Interval of the receiver reports to the server.
const RTCP_REPORT_INTERVAL: Span = Span::from_secs(2);
/// No keep-alives are sent within this time before the start moment, so that nothing delays the
/// start.
const KEEP_ALIVE_GUARD: Span = Span::from_millis(200);

/// Receives streams from a server until the duration is over or `stop` is set. `on_second` gets
/// each complete second of all streams. The time of a stream counts from its first packet.
///
/// # Errors
/// Invalid parameters, a stream that cannot be set up, or no packet. A stream that breaks off later
/// keeps its figures and has a fault.
pub fn measure(
    server: SocketAddr,
    media_request: &MediaRequest,
    stop: &Stop,
    on_second: &mut dyn FnMut(&MediaSecond),
) -> Result<MediaMeasured, MediaError> {
    media_request.check()?;
    let receivers = open_all(server, media_request, stop)?;
    let mut client = Client {
        start_nanos: clock::raw().0,
        receivers,
        media_request,
        stop,
        on_second,
        reported_seconds: 0,
    };
    client.await_start()?;
    let started = Wall::from_unix_nanos(clock::wall().0);
    let play_sent_at = client.now();
    client.send_to_all(Dialogue::play);
    client.receive_all(play_sent_at)?;
    let end = client.now();
    client.teardown_sessions();
    let is_stopped = stop.is_set();
    let streams = client.finish(end);
    Ok(MediaMeasured {
        address: server,
        media_request: media_request.clone(),
        started,
        streams,
        is_stopped,
    })
}

struct Client<'a> {
    /// Monotonic start; all times are relative to it.
    start_nanos: i64,
    receivers: Vec<Receiver>,
    media_request: &'a MediaRequest,
    stop: &'a Stop,
    on_second: &'a mut dyn FnMut(&MediaSecond),
    /// Number of reported seconds.
    reported_seconds: u32,
}

impl Client<'_> {
    fn now(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.start_nanos)
    }

    /// Waits for the common start of all clients.
    fn await_start(&mut self) -> Result<(), MediaError> {
        let now = self.now();
        for receiver in &mut self.receivers {
            receiver.alive_at = now + receiver.dialogue.interval();
        }
        let Some(start) = self.media_request.start else {
            return Ok(());
        };
        loop {
            let remaining = Span::from_nanos(start.unix_nanos() - clock::wall().0);
            if remaining <= KEEP_ALIVE_GUARD {
                let start_raw = clock::raw().0 + remaining.nanos();
                clock::sleep_until(RawNanos(start_raw), Spin::NONE);
                return Ok(());
            }
            if self.stop.is_set() {
                return Err(MediaError::Stopped);
            }
            self.poll_once(TICK.min(remaining - KEEP_ALIVE_GUARD))?;
            if let Some(fault) = self
                .receivers
                .iter()
                .find_map(|receiver| receiver.fault.clone())
            {
                return Err(MediaError::Broken(format!("before the start: {fault}")));
            }
        }
    }

    fn send_to_all(&mut self, build_request: fn(&mut Dialogue) -> Request) {
        // Built first, so that they leave back to back.
        let requests = self
            .receivers
            .iter_mut()
            .map(|receiver| build_request(&mut receiver.dialogue));
        let requests: Vec<Request> = requests.collect();
        for (receiver, request) in self.receivers.iter_mut().zip(&requests) {
            receiver.send(request);
        }
    }

    /// Waits for data and processes it.
    fn poll_once(&mut self, max_wait: Span) -> Result<(), MediaError> {
        let mut poll_fds = Vec::with_capacity(self.receivers.len() * 2);
        for receiver in &self.receivers {
            poll_fds.push(Awaited::readable(receiver.pair.rtp.as_fd()));
            if receiver.fault.is_none() {
                poll_fds.push(Awaited::readable(receiver.stream.as_fd()));
            }
        }
        let poll_result = ppoll::wait(&mut poll_fds, Some(max_wait.to_duration()));
        if let (Err(source), Some(receiver)) = (poll_result, self.receivers.first()) {
            return Err(MediaError::socket("wait for", receiver.peer)(source));
        }
        let (clocks, now, start_nanos) = (clock::pair(), self.now(), self.start_nanos);
        let mut poll_fds = poll_fds.iter();
        for receiver in &mut self.receivers {
            let has_packets = poll_fds.next().is_some_and(Awaited::has_something);
            // RTSP first: the answer to PLAY names the first packet.
            if receiver.fault.is_none() && poll_fds.next().is_some_and(Awaited::has_something) {
                receiver.read_control();
            }
            if has_packets {
                receiver.receive(clocks, start_nanos);
            }
            receiver.track.advance_to(now);
            if now >= receiver.report_at && receiver.fault.is_none() {
                receiver.report_at = now + RTCP_REPORT_INTERVAL;
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

    fn receive_all(&mut self, play_sent_at: Span) -> Result<(), MediaError> {
        loop {
            self.poll_once(TICK)?;
            let now = self.now();
            self.report_complete_seconds(now - REPORT_DELAY);
            let first_arrivals = self
                .receivers
                .iter()
                .filter_map(|receiver| receiver.track.origin());
            let Some(latest_start) = first_arrivals.max() else {
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
                if now >= play_sent_at + FIRST_PACKET_TIMEOUT {
                    let peer = self.receivers.first().map(|receiver| receiver.peer);
                    let peer = peer.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
                    return Err(MediaError::NoPacket { peer });
                }
                continue;
            };
            let is_duration_over = now >= latest_start + self.media_request.duration + REPORT_DELAY;
            let all_failed = self
                .receivers
                .iter()
                .all(|receiver| receiver.fault.is_some());
            if is_duration_over || all_failed || self.stop.is_set() {
                return Ok(());
            }
        }
    }

    /// Reports the seconds that all streams had completed at `completed_before`.
    fn report_complete_seconds(&mut self, completed_before: Span) {
        loop {
            let index = self.reported_seconds;
            let ends = self
                .receivers
                .iter()
                .filter_map(|receiver| receiver.track.second_ends(index));
            let is_complete = ends.max().is_some_and(|end| end <= completed_before);
            if !is_complete || Span::from_secs(i64::from(index) + 1) > self.media_request.duration {
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
            self.reported_seconds += 1;
        }
    }

    /// Ends the sessions, so that the server has free slots at once.
    fn teardown_sessions(&mut self) {
        self.send_to_all(Dialogue::teardown);
        let deadline = self.now() + TEARDOWN_TIMEOUT;
        while self.now() < deadline {
            let has_ended = |receiver: &Receiver| receiver.is_ended || receiver.fault.is_some();
            if self.receivers.iter().all(has_ended) {
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
        let duration = self.media_request.duration;
        let streams = self.receivers.into_iter().map(|mut receiver| {
            let first_arrival = receiver.track.origin();
            let end = first_arrival.map_or(end, |first_arrival| end.min(first_arrival + duration));
            let drops = receiver.drops();
            let statistics = receiver.track.finish(end, drops);
            let no_packet_fault = (first_arrival.is_none()).then(|| "no packet came".to_owned());
            StreamMeasured {
                encoding: receiver
                    .dialogue
                    .media()
                    .and_then(|media| media.encoding.clone()),
                seconds: receiver.track.seconds().to_vec(),
                statistics,
                fault: receiver.fault.or(no_packet_fault),
            }
        });
        streams.collect()
    }
}
