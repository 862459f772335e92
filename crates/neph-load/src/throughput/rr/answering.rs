//! Answers the streams of a request/response test.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};

use neph_model::{BitRate, Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_wire::throughput::{RrAsk, RrKind, Token};

use super::super::board::Board;
use super::super::carrier::Carrier;
use super::super::engine::{Decision, Turn, run_streams};
use super::super::error::ThroughputError;
use super::super::listening::{Lent, Listening};
use super::super::served::ServerSpec;
use super::acceptor::Acceptor;
use super::recorder::Recorder;
use super::{datagram_answers, stream_answers};

/// A stream without a request for so long ends the test.
const IDLE: Span = Span::from_secs(60);
/// How long after the test's time a client may still ask.
const ALLOWANCE: Span = Span::from_secs(30);
/// A rate is looked at over so long.
const RATE_OVER: Span = Span::from_secs(1);

/// A test that a server answers.
#[derive(Clone, Copy, Debug)]
pub(in crate::throughput) struct Answering<'a> {
    pub(in crate::throughput) ask: &'a RrAsk,
    pub(in crate::throughput) token: Token,
    pub(in crate::throughput) client: IpAddr,
    pub(in crate::throughput) listening: &'a Listening,
    pub(in crate::throughput) spec: &'a ServerSpec,
}

impl<'a> Answering<'a> {
    /// Lets connections come to the test, where its transactions are connections.
    pub(in crate::throughput) fn prepare(&self) -> Option<Lent<'a>> {
        (self.ask.kind == RrKind::TcpCrr).then(|| self.listening.lend())
    }
}

/// Answers until all streams have ended; `turn` is asked all the while. The first fault of a stream, if
/// one broke. What [`Answering::prepare`] gave is given back at the end.
pub(in crate::throughput) fn answer(
    answering: &Answering<'_>,
    carriers: BTreeMap<u16, Carrier>,
    lent: Option<Lent<'_>>,
    turn: &mut dyn FnMut(Turn<'_>) -> Result<Decision, ThroughputError>,
) -> Result<Option<String>, ThroughputError> {
    let Answering { ask, token, .. } = *answering;
    let parts: BTreeMap<u16, Option<Carrier>> = match ask.kind {
        RrKind::TcpCrr => (0..ask.streams).map(|stream| (stream, None)).collect(),
        RrKind::UdpRr | RrKind::TcpRr => carriers
            .into_iter()
            .map(|(stream, carrier)| (stream, Some(carrier)))
            .collect(),
    };
    let asked = AtomicI64::new(clock::raw().0);
    let work = |part: Option<Carrier>, stream, board: &Board, stop: &Stop| {
        let mut guard = Guard::new(answering, Recorder::of_server(stream, board));
        match part {
            Some(Carrier::Udp(socket)) => {
                datagram_answers::answer(&socket, ask, token, stop, guard)
            }
            Some(Carrier::Tcp(stream)) => stream_answers::answer(&stream, ask, stop, guard),
            None => {
                guard.asked_of_all = Some(&asked);
                let acceptor = Acceptor {
                    listening: answering.listening,
                    ask,
                    token,
                    client: answering.client.to_canonical(),
                };
                acceptor.work(stop, guard)
            }
        }
    };
    let ended = run_streams(parts, &work, turn);
    drop(lent);
    ended
}

/// What a stream of the server counts, and what ends it although nobody stopped it.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    pub(super) recorder: Recorder<'a>,
    pub(super) busy_poll: bool,
    latest: RawNanos,
    /// The last request of this stream, or of all: any of them may accept the next connection.
    asked: RawNanos,
    asked_of_all: Option<&'a AtomicI64>,
    rate: Option<Rate>,
}

impl<'a> Guard<'a> {
    fn new(answering: &Answering<'_>, recorder: Recorder<'a>) -> Self {
        let ask = answering.ask;
        let duration = Span::from_nanos(i64::try_from(ask.duration_ns).unwrap_or(i64::MAX / 2));
        let now = clock::raw();
        let rate = answering.spec.caps.rate.map(|most| Rate {
            most,
            streams: ask.streams,
            each: ask.request_bytes.max(ask.reply_bytes).into(),
            from: now,
            bytes: 0,
        });
        Self {
            latest: recorder.moment(duration + ALLOWANCE),
            busy_poll: answering.spec.busy_poll,
            asked: now,
            asked_of_all: None,
            rate,
            recorder,
        }
    }

    /// A request was answered.
    #[inline]
    pub(super) fn answered(&mut self, now: RawNanos) -> io::Result<()> {
        self.asked = now;
        if let Some(asked) = self.asked_of_all {
            asked.store(now.0, Ordering::Relaxed);
        }
        self.recorder.count_at(now);
        self.rate.as_mut().map_or(Ok(()), |rate| rate.add(now))
    }

    /// Nothing came.
    pub(super) fn idle(&mut self, now: RawNanos) -> io::Result<()> {
        self.recorder.tick(now);
        let of_all = self.asked_of_all.map(|asked| asked.load(Ordering::Relaxed));
        let asked = of_all.unwrap_or(self.asked.0);
        if Span::from_nanos(now.0 - asked) >= IDLE {
            return Err(io::Error::other(format!("no request came for {IDLE}")));
        }
        if now >= self.latest {
            let late = format!("the client did not end the test {ALLOWANCE} after its time");
            return Err(io::Error::other(late));
        }
        Ok(())
    }
}

/// What the server grants of a direction, held each second.
#[derive(Debug)]
struct Rate {
    most: BitRate,
    streams: u16,
    each: u64,
    from: RawNanos,
    bytes: u64,
}

impl Rate {
    fn add(&mut self, now: RawNanos) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(self.each);
        let passed = now.0 - self.from.0;
        if passed < RATE_OVER.nanos() {
            return Ok(());
        }
        let bits = u128::from(self.bytes) * 8 * u128::from(self.streams) * 1_000_000_000;
        if bits > u128::from(self.most.bits_per_second()) * u128::from(passed.unsigned_abs()) {
            return Err(io::Error::other(format!(
                "its payload is more than the {} that this server grants",
                self.most
            )));
        }
        (self.from, self.bytes) = (now, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_cap_is_found_after_a_second_and_one_below_never() {
        let rate = |streams, each| Rate {
            most: BitRate(8_000_000),
            streams,
            each,
            from: RawNanos(0),
            bytes: 0,
        };
        let asked = |mut rate: Rate| {
            (1..=5_000_i64).find(|milli| rate.add(RawNanos(milli * 1_000_000)).is_err())
        };
        // 1,000 transactions per second.
        assert_eq!(asked(rate(1, 1_000)), None);
        assert_eq!(asked(rate(1, 1_001)), Some(1_000));
        assert_eq!(asked(rate(2, 600)), Some(1_000));
    }
}
