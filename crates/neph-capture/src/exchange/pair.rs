//! One pair: its requests that await an answer, and its counts.

use neph_model::{Span, Wall};

use super::counts::ExchangeCounts;
use super::pending_requests::{AnswerMatch, MessageId, PendingRequests, RequestKind};
use super::spin_bit::SpinBit;
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
    first_packet_at: Wall,
    last_packet_at: Wall,
    /// Counts of the current period, or of the whole exchange without periods.
    period_counts: ExchangeCounts,
    /// Counts of all earlier periods.
    earlier_counts: Option<Box<ExchangeCounts>>,
    pending_requests: PendingRequests,
    spin_bit: SpinBit,
    /// Round trips by the spin bit, until it is trusted.
    untrusted_round_trips: Vec<ExchangeRoundTrip>,
    /// Whether packets of the client, and of the server, were captured.
    has_packets: [bool; 2],
}

impl HostPair {
    pub(super) fn begin(at: Wall, key: ExchangeKey) -> Self {
        Self {
            key,
            other: None,
            first_packet_at: at,
            last_packet_at: at,
            period_counts: ExchangeCounts::default(),
            earlier_counts: None,
            pending_requests: PendingRequests::default(),
            spin_bit: SpinBit::default(),
            untrusted_round_trips: Vec::new(),
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
        self.last_packet_at = self.last_packet_at.max(at);
        self.period_counts.packets += 1;
        let round_trip = match event {
            ExchangeEvent::Request(id) => {
                self.has_packets[Side::Client as usize] = true;
                return self.add_request(at, id);
            }
            ExchangeEvent::Answer(id) => {
                self.has_packets[Side::Server as usize] = true;
                self.add_answer(at, id).map(|answer| (Half::Server, answer))
            }
            ExchangeEvent::SpinBit(side, first_byte) => {
                self.has_packets[side as usize] = true;
                let round_trip = self.spin_bit.add_datagram(at, side, first_byte);
                round_trip.map(|span| (side.half(), (span, 1)))
            }
        };
        let Some((half, (round_trip, weight))) =
            round_trip.filter(|(_, (span, _))| *span <= MAX_ROUND_TRIP)
        else {
            return;
        };
        self.period_counts.add_round_trip(half, round_trip, weight);
        let exchange_round_trip = ExchangeRoundTrip {
            at,
            half,
            round_trip,
        };
        if self.is_trusted() {
            for earlier in self.untrusted_round_trips.drain(..) {
                report(&self.key, earlier);
            }
            report(&self.key, exchange_round_trip);
        } else if self.untrusted_round_trips.len() < MAX_UNTRUSTED {
            self.untrusted_round_trips.push(exchange_round_trip);
        }
    }

    fn add_request(&mut self, at: Wall, id: MessageId) {
        let retry_time = match self.key.protocol {
            ExchangeProtocol::Ping => PING_RETRY,
            ExchangeProtocol::Dns | ExchangeProtocol::Quic => DNS_RETRY,
        };
        self.period_counts.requests +=
            u64::from(self.pending_requests.add_request(at, id, retry_time) == RequestKind::New);
        self.period_counts.requests_not_tracked += self.pending_requests.take_untracked();
    }

    /// The round trip of an answer, and its weight.
    fn add_answer(&mut self, at: Wall, id: MessageId) -> Option<(Span, u64)> {
        let (requested_at, weight) = match self.pending_requests.match_answer(id) {
            AnswerMatch::Request(requested_at, weight) => (requested_at, weight),
            AnswerMatch::NotFollowed => return None,
            AnswerMatch::NoRequest => {
                self.period_counts.responses_without_request += 1;
                return None;
            }
        };
        self.period_counts.answered += 1;
        let nanos = at.unix_nanos().saturating_sub(requested_at?.unix_nanos());
        self.period_counts.negative_round_trips += u64::from(nanos < 0);
        (nanos >= 0).then_some((Span::from_nanos(nanos), weight))
    }

    /// Counts of the current period, which ends. `None` without packets.
    pub(super) fn take_period_counts(&mut self) -> Option<ExchangeCounts> {
        if self.period_counts.packets == 0 {
            return None;
        }
        let period_counts = std::mem::take(&mut self.period_counts);
        self.earlier_counts
            .get_or_insert_default()
            .merge(&period_counts);
        Some(self.trusted_counts(period_counts))
    }

    /// Counts of the current period, at the end of the pair.
    pub(super) fn current_period_counts(&self) -> ExchangeCounts {
        self.trusted_counts(self.period_counts.clone())
    }

    fn trusted_counts(&self, counts: ExchangeCounts) -> ExchangeCounts {
        if self.is_trusted() {
            counts
        } else {
            counts.without_round_trips()
        }
    }

    fn is_trusted(&self) -> bool {
        self.key.protocol != ExchangeProtocol::Quic || self.spin_bit.is_spinning()
    }

    /// Whether packets of one direction only were captured: then there is no round trip.
    pub fn is_one_direction(&self) -> bool {
        self.has_packets != [true; 2]
    }

    /// Whether this direction was not seen yet, and the event answers the direction that was.
    pub(super) fn is_mirrored_by(&self, event: ExchangeEvent) -> bool {
        let (side, is_fitting) = match event {
            ExchangeEvent::Request(_) => return false,
            ExchangeEvent::Answer(id) => (Side::Server, self.pending_requests.awaits(id)),
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
    pub const fn first_packet_at(&self) -> Wall {
        self.first_packet_at
    }

    /// When its last packet was captured.
    pub const fn last_packet_at(&self) -> Wall {
        self.last_packet_at
    }

    /// All counts.
    pub fn counts(&self) -> ExchangeCounts {
        let mut total = self.period_counts.clone();
        if let Some(earlier_counts) = &self.earlier_counts {
            total.merge(earlier_counts);
        }
        self.trusted_counts(total)
    }
}
