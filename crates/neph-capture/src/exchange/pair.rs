//! One pair: its questions that await an answer, and its counts.

use neph_model::{Span, Wall};

use super::counts::ExchangeCounts;
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
const MAX_UNTRUSTED: usize = 64;

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
    recent: ExchangeCounts,
    /// Counts up to the last look.
    before: Option<Box<ExchangeCounts>>,
    requests: Questions,
    spin: Spin,
    /// Round trips by the spin bit, until it is trusted.
    untrusted: Vec<ExchangeRoundTrip>,
    /// Whether packets of the client, and of the server, were captured.
    has_packets: [bool; 2],
}

impl HostPair {
    pub(super) fn begin(at: Wall, key: ExchangeKey) -> Self {
        Self {
            key,
            other: None,
            began: at,
            last: at,
            recent: ExchangeCounts::default(),
            before: None,
            requests: Questions::default(),
            spin: Spin::default(),
            untrusted: Vec::new(),
            has_packets: [false; 2],
        }
    }

    /// Adds a packet. Passes on the round trips that it shows, once they are trusted.
    pub(super) fn add_packet(
        &mut self,
        at: Wall,
        event: ExchangeEvent,
        report: &mut impl FnMut(&ExchangeKey, ExchangeRoundTrip),
    ) {
        self.last = self.last.max(at);
        self.recent.packets += 1;
        let round_trip = match event {
            ExchangeEvent::Request(id) => {
                self.has_packets[Side::Client as usize] = true;
                return self.add_request(at, id);
            }
            ExchangeEvent::Answer(id) => {
                self.has_packets[Side::Server as usize] = true;
                self.add_answer(at, id).map(|answer| (Half::Server, answer))
            }
            ExchangeEvent::SpinBit(side, first) => {
                self.has_packets[side as usize] = true;
                let round_trip = self.spin.add_datagram(at, side, first);
                round_trip.map(|span| (side.half(), (span, 1)))
            }
        };
        let Some((half, (round_trip, weight))) =
            round_trip.filter(|(_, (span, _))| *span <= MAX_ROUND_TRIP)
        else {
            return;
        };
        self.recent.add_round_trip(half, round_trip, weight);
        let exchange_round_trip = ExchangeRoundTrip {
            at,
            half,
            round_trip,
        };
        if self.is_trusted() {
            for earlier in self.untrusted.drain(..) {
                report(&self.key, earlier);
            }
            report(&self.key, exchange_round_trip);
        } else if self.untrusted.len() < MAX_UNTRUSTED {
            self.untrusted.push(exchange_round_trip);
        }
    }

    fn add_request(&mut self, at: Wall, id: MessageId) {
        let retry_time = match self.key.protocol {
            ExchangeProtocol::Ping => PING_RETRY,
            ExchangeProtocol::Dns | ExchangeProtocol::Quic => DNS_RETRY,
        };
        self.recent.requests +=
            u64::from(self.requests.add_question(at, id, retry_time) == QuestionKind::New);
        self.recent.requests_not_tracked += self.requests.take_untracked();
    }

    /// The round trip of an answer, and its weight.
    fn add_answer(&mut self, at: Wall, id: MessageId) -> Option<(Span, u64)> {
        let (requested_at, weight) = match self.requests.match_answer(id) {
            AnswerMatch::Question(requested_at, weight) => (requested_at, weight),
            AnswerMatch::NotFollowed => return None,
            AnswerMatch::NoQuestion => {
                self.recent.responses_without_request += 1;
                return None;
            }
        };
        self.recent.answered += 1;
        let nanos = at.unix_nanos().saturating_sub(requested_at?.unix_nanos());
        self.recent.negative_round_trips += u64::from(nanos < 0);
        (nanos >= 0).then_some((Span::from_nanos(nanos), weight))
    }

    /// Counts since the last look. `None` without packets.
    pub(super) fn take_recent(&mut self) -> Option<ExchangeCounts> {
        if self.recent.packets == 0 {
            return None;
        }
        let recent = std::mem::take(&mut self.recent);
        self.before.get_or_insert_default().merge(&recent);
        Some(self.trusted_counts(recent))
    }

    /// Counts since the last look, at the end of the pair.
    pub(super) fn recent_counts(&self) -> ExchangeCounts {
        self.trusted_counts(self.recent.clone())
    }

    fn trusted_counts(&self, counts: ExchangeCounts) -> ExchangeCounts {
        if self.is_trusted() {
            counts
        } else {
            counts.without_trips()
        }
    }

    fn is_trusted(&self) -> bool {
        self.key.protocol != ExchangeProtocol::Quic || self.spin.is_spinning()
    }

    /// Whether packets of one direction only were captured: then there is no round trip.
    pub fn is_one_direction(&self) -> bool {
        self.has_packets != [true; 2]
    }

    /// Whether this direction was not seen yet, and the event answers the direction that was.
    pub(super) fn is_mirrored_by(&self, event: ExchangeEvent) -> bool {
        let (side, is_fitting) = match event {
            ExchangeEvent::Request(_) => return false,
            ExchangeEvent::Answer(id) => (Side::Server, self.requests.awaits(id)),
            ExchangeEvent::SpinBit(side, _) => (side, true),
        };
        self.other.is_none() && is_fitting && !self.has_packets[side as usize]
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
    pub fn counts(&self) -> ExchangeCounts {
        let mut total = self.recent.clone();
        if let Some(before) = &self.before {
            total.merge(before);
        }
        self.trusted_counts(total)
    }
}
