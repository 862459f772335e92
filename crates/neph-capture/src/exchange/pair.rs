//! One pair: its questions that await an answer, and its counts.

use neph_model::{Span, Wall};

use super::counted::ExchangeCounts;
use super::spin::Spin;
use super::waiting::{AnswerMatch, MessageId, QuestionKind, Questions};
use super::{ExchangeEvent, ExchangeKey, ExchangeProtocol, ExchangeRoundTrip};
use crate::sample::Half;
use crate::tcp::Side;

/// Ping sends each request once. An equal one within this time is a duplicate in the capture.
const PING_RETRY: Span = Span::from_secs(1);
/// Resolvers repeat a query with the same number within this time. Later it is another query.
const DNS_RETRY: Span = Span::from_secs(30);
/// Round trips by the spin bit that are kept until it is trusted.
const UNBELIEVED: usize = 64;

/// A longer time is no round trip: a clock was set.
const MAX_ROUND_TRIP: Span = Span::from_secs(3600);

/// One client and server, and their exchange.
#[derive(Debug)]
pub struct HostPair {
    key: ExchangeKey,
    /// The other direction, where it travels in another VLAN or tunnel.
    pub(super) other: Option<Box<ExchangeKey>>,
    began: Wall,
    last: Wall,
    /// Counts since the last look, or since the beginning without looks.
    counted: ExchangeCounts,
    /// Counts up to the last look.
    before: Option<Box<ExchangeCounts>>,
    requests: Questions,
    spin: Spin,
    /// Round trips by the spin bit, until it is trusted.
    unbelieved: Vec<ExchangeRoundTrip>,
    /// Whether packets of the client, and of the server, were captured.
    received: [bool; 2],
}

impl HostPair {
    pub(super) fn begin(at: Wall, key: ExchangeKey) -> Self {
        Self {
            key,
            other: None,
            began: at,
            last: at,
            counted: ExchangeCounts::default(),
            before: None,
            requests: Questions::default(),
            spin: Spin::default(),
            unbelieved: Vec::new(),
            received: [false; 2],
        }
    }

    /// Adds a packet. Passes on the round trips that it shows, once they are trusted.
    pub(super) fn see(
        &mut self,
        at: Wall,
        event: ExchangeEvent,
        report: &mut impl FnMut(&ExchangeKey, ExchangeRoundTrip),
    ) {
        self.last = self.last.max(at);
        self.counted.packets += 1;
        let trip = match event {
            ExchangeEvent::Asks(of) => {
                self.received[Side::Client as usize] = true;
                return self.asks(at, of);
            }
            ExchangeEvent::Answers(of) => {
                self.received[Side::Server as usize] = true;
                self.answers(at, of).map(|answer| (Half::Server, answer))
            }
            ExchangeEvent::Spins(side, first) => {
                self.received[side as usize] = true;
                let round_trip = self.spin.see(at, side, first);
                round_trip.map(|span| (side.half(), (span, 1)))
            }
        };
        let Some((half, (round_trip, weight))) =
            trip.filter(|(_, (span, _))| *span <= MAX_ROUND_TRIP)
        else {
            return;
        };
        self.counted.add_round_trip(half, round_trip, weight);
        let answered = ExchangeRoundTrip {
            at,
            half,
            round_trip,
        };
        if self.is_believed() {
            for answered in self.unbelieved.drain(..) {
                report(&self.key, answered);
            }
            report(&self.key, answered);
        } else if self.unbelieved.len() < UNBELIEVED {
            self.unbelieved.push(answered);
        }
    }

    fn asks(&mut self, at: Wall, of: MessageId) {
        let repeats = match self.key.protocol {
            ExchangeProtocol::Ping => PING_RETRY,
            ExchangeProtocol::Dns | ExchangeProtocol::Quic => DNS_RETRY,
        };
        self.counted.requests +=
            u64::from(self.requests.ask(at, of, repeats) == QuestionKind::Another);
        self.counted.requests_not_tracked += self.requests.take_left_out();
    }

    /// The round trip of an answer, and its weight.
    fn answers(&mut self, at: Wall, of: MessageId) -> Option<(Span, u64)> {
        let (since, weight) = match self.requests.answer(of) {
            AnswerMatch::Question(since, weight) => (since, weight),
            AnswerMatch::NotFollowed => return None,
            AnswerMatch::Nothing => {
                self.counted.responses_without_request += 1;
                return None;
            }
        };
        self.counted.answered += 1;
        let nanos = at.unix_nanos().saturating_sub(since?.unix_nanos());
        self.counted.backwards += u64::from(nanos < 0);
        (nanos >= 0).then_some((Span::from_nanos(nanos), weight))
    }

    /// Counts since the last look. `None` without packets.
    pub(super) fn look(&mut self) -> Option<ExchangeCounts> {
        if self.counted.packets == 0 {
            return None;
        }
        let recent = std::mem::take(&mut self.counted);
        self.before.get_or_insert_default().merge(&recent);
        Some(self.believed(recent))
    }

    /// Counts since the last look, at the end of the pair.
    pub(super) fn rest(&self) -> ExchangeCounts {
        self.believed(self.counted.clone())
    }

    fn believed(&self, counted: ExchangeCounts) -> ExchangeCounts {
        if self.is_believed() {
            counted
        } else {
            counted.without_trips()
        }
    }

    fn is_believed(&self) -> bool {
        self.key.protocol != ExchangeProtocol::Quic || self.spin.is_spinning()
    }

    /// Whether packets of one direction only were captured: then there is no round trip.
    pub fn is_one_direction(&self) -> bool {
        self.received != [true; 2]
    }

    /// Whether this direction was not seen yet, and the event answers the direction that was.
    pub(super) fn is_mirrored_by(&self, event: ExchangeEvent) -> bool {
        let (side, fits) = match event {
            ExchangeEvent::Asks(_) => return false,
            ExchangeEvent::Answers(of) => (Side::Server, self.requests.awaits(of)),
            ExchangeEvent::Spins(side, _) => (side, true),
        };
        self.other.is_none() && fits && !self.received[side as usize]
    }

    /// The other direction, where it travels in another VLAN or tunnel.
    pub fn other(&self) -> Option<&ExchangeKey> {
        self.other.as_deref()
    }

    /// The client and the server.
    pub const fn key(&self) -> &ExchangeKey {
        &self.key
    }

    /// When its first packet was captured.
    pub const fn began(&self) -> Wall {
        self.began
    }

    /// When its last packet was captured.
    pub const fn last(&self) -> Wall {
        self.last
    }

    /// All counts.
    pub fn counted(&self) -> ExchangeCounts {
        let mut total = self.counted.clone();
        if let Some(before) = &self.before {
            total.merge(before);
        }
        self.believed(total)
    }
}
