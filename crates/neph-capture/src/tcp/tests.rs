//! Connections written by hand, a segment a line.

mod gaps;
mod half_open;
mod openings;
mod spurious;

use neph_model::{Span, Wall};
use neph_wire::ip::TcpHeader;
use proptest::prelude::*;

use super::*;
use crate::sample::{Answer, Half, Method};
use crate::sequence::Serial;

const SYN: u8 = TcpHeader::SYN;
const ACK: u8 = TcpHeader::ACK;

#[derive(Default)]
struct RecordedConnection {
    samples: Vec<Sample>,
    events: Vec<(Side, Event)>,
    /// Spurious retransmissions, as they were reported before.
    spurious: Vec<(Side, Event)>,
}

impl Sink for RecordedConnection {
    fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }
    fn event(&mut self, _: Wall, side: Side, event: Event) {
        self.events.push((side, event));
    }
    fn found_spurious(&mut self, _: Wall, side: Side, previous: Event) {
        self.spurious.push((side, previous));
    }
}

impl RecordedConnection {
    /// Half, milliseconds, answer of what this method found.
    fn samples_by(&self, method: Method) -> Vec<(Half, i64, Answer)> {
        let samples = self.samples.iter().filter(|sample| sample.method == method);
        samples
            .map(|sample| {
                (
                    sample.half,
                    sample.round_trip.nanos() / 1_000_000,
                    sample.answer,
                )
            })
            .collect()
    }
}

/// A connection with one step per millisecond.
#[derive(Default)]
struct TestConnection {
    connection: Connection,
    recorded: RecordedConnection,
}

impl TestConnection {
    fn add(&mut self, at_ms: i64, side: Side, segment: Segment) {
        let at = Wall::from_unix_nanos(1_700_000_000_000_000_000 + at_ms * 1_000_000);
        let segment = &segment;
        let captured = CapturedSegment { at, side, segment };
        self.connection
            .add_segment(captured, SegmentBudget::Ample, &mut self.recorded);
    }
}

/// Sequence number, length, acknowledgement.
pub(super) const fn data(seq: u32, length: u32, ack: u32) -> Segment {
    Segment::of_numbers(seq, length, ack)
}

fn stamped(segment: Segment, value: u32, echo: u32) -> Segment {
    let timestamps = Some((Serial(value), Serial(echo)));
    Segment {
        timestamps,
        ..segment
    }
}

fn syn(seq: u32, ack: Option<u32>) -> Segment {
    Segment {
        ack: ack.map(Serial),
        flags: SYN | if ack.is_some() { ACK } else { 0 },
        max_segment_size: std::num::NonZeroU16::new(1460),
        ..data(seq, 0, 0)
    }
}

use Answer::{Bare, Delayed, Handshake, WithData};
use Event::{FastRetransmission, RepeatedAcknowledgement, SpuriousRetransmission};
use Method::{Acknowledgement, Echo, Response};
use Side::{Client, Server};

/// Captured in the middle: 30 ms to the server and back, 10 ms to the client and back.
fn opened() -> TestConnection {
    let mut test = TestConnection::default();
    test.add(0, Client, stamped(syn(99, None), 1000, 0));
    test.add(30, Server, stamped(syn(499, Some(100)), 5000, 1000));
    test.add(40, Client, stamped(data(100, 0, 500), 1040, 5000));
    test
}

#[test]
fn a_handshake_gives_the_rtt_of_both_path_halves_by_both_methods() {
    let test = opened();
    let expected = [(Half::Server, 30, Handshake), (Half::Client, 10, Handshake)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
    assert_eq!(test.recorded.samples_by(Echo), expected);
    assert_eq!(test.recorded.events, []);
}

#[test]
fn answers_with_data_are_distinguished_from_bare_acknowledgements() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, stamped(data(100, 10, 500), 1100, 5000));
    // The server takes 20 ms.
    test.add(150, Server, stamped(data(500, 20, 110), 5120, 1100));
    test.add(160, Client, stamped(data(110, 0, 520), 1160, 5120));
    let expected = [(Half::Server, 50, WithData), (Half::Client, 10, Bare)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
    assert_eq!(test.recorded.samples_by(Echo), expected);
    assert!(!WithData.measures_path() && Bare.measures_path());
}

#[test]
fn a_response_includes_server_processing_after_an_early_acknowledgement() {
    let mut test = opened();
    test.recorded.samples.clear();
    // Two segments are the request. The server's host acknowledges, and 60 ms later it answers.
    test.add(100, Client, data(100, 10, 500));
    test.add(105, Client, data(110, 10, 500));
    test.add(135, Server, data(500, 0, 120));
    test.add(195, Server, data(500, 20, 120));
    test.add(196, Server, data(520, 20, 120));
    test.add(206, Client, data(120, 0, 540));
    let expected = [(Half::Server, 30, Bare), (Half::Client, 10, Bare)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
    assert_eq!(
        test.recorded.samples_by(Response),
        [(Half::Server, 90, WithData)]
    );
}

#[test]
fn a_partly_retransmitted_request_has_no_response_sample() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, data(100, 10, 500));
    test.add(400, Client, data(100, 10, 500));
    test.add(401, Client, data(110, 10, 500));
    test.add(431, Server, data(500, 20, 120));
    assert_eq!(test.recorded.samples_by(Response), []);
    // The client takes 69 ms for its next request. What comes before all was acknowledged answers something else.
    test.add(500, Client, data(120, 10, 520));
    test.add(510, Client, data(130, 10, 520));
    test.add(531, Server, data(520, 20, 130));
    test.add(541, Server, data(540, 20, 140));
    assert_eq!(
        test.recorded.samples_by(Response),
        [(Half::Client, 69, WithData)]
    );
    test.recorded.samples.clear();
    test.add(600, Client, data(140, 10, 560));
    test.add(640, Server, data(560, 20, 150));
    let expected = [(Half::Client, 59, WithData), (Half::Server, 40, WithData)];
    assert_eq!(test.recorded.samples_by(Response), expected);
}

#[test]
fn a_late_acknowledgement_is_delayed_unless_two_segments_force_it() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, data(100, 10, 500));
    test.add(170, Server, data(500, 0, 110));
    test.add(200, Client, data(110, 1460, 500));
    test.add(201, Client, data(1570, 1460, 500));
    // A queue of 70 ms, and nobody held anything back.
    test.add(301, Server, data(500, 0, 3030));
    let expected = [(Half::Server, 70, Delayed), (Half::Server, 100, Bare)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
}

#[test]
fn only_the_earliest_echo_of_acknowledged_data_counts() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, stamped(data(100, 10, 500), 1100, 5000));
    test.add(101, Client, stamped(data(110, 10, 500), 1100, 5000));
    test.add(130, Server, stamped(data(500, 0, 110), 5130, 1100));
    test.add(131, Server, stamped(data(500, 0, 120), 5130, 1100));
    assert_eq!(test.recorded.samples_by(Echo), [(Half::Server, 30, Bare)]);
    let answers = [(Half::Server, 30, Bare), (Half::Server, 30, Bare)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), answers);
}

#[test]
fn a_timestamp_that_a_bare_acknowledgement_used_first_gives_no_sample() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, stamped(data(100, 0, 500), 1100, 5000));
    test.add(101, Client, stamped(data(100, 10, 500), 1100, 5000));
    test.add(131, Server, stamped(data(500, 0, 110), 5131, 1100));
    assert_eq!(test.recorded.samples_by(Echo), []);
}

#[test]
fn a_retransmission_has_an_rtt_sample_only_by_its_timestamp() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, stamped(data(100, 10, 500), 1100, 5000));
    test.add(400, Client, stamped(data(100, 10, 500), 1400, 5000));
    test.add(430, Server, stamped(data(500, 0, 110), 5430, 1400));
    assert_eq!(test.recorded.samples_by(Acknowledgement), []);
    assert_eq!(test.recorded.samples_by(Echo), [(Half::Server, 30, Bare)]);
    assert_eq!(test.recorded.events, [(Client, Event::Retransmission)]);
}

#[test]
fn a_reordered_segment_is_out_of_order_by_its_older_timestamp() {
    let mut test = opened();
    test.add(100, Client, stamped(data(110, 10, 500), 1101, 5000));
    test.add(105, Client, stamped(data(100, 10, 500), 1100, 5000));
    let expected = [(Client, Event::Gap), (Client, Event::OutOfOrder)];
    assert_eq!(test.recorded.events, expected);
}

#[test]
fn three_duplicate_acknowledgements_cause_a_fast_retransmission() {
    let mut test = opened();
    for n in 0..4 {
        test.add(100 + i64::from(n), Client, data(100 + 10 * n, 10, 500));
    }
    // The first was lost behind the point of capture.
    for at in [131, 132, 133] {
        test.add(at, Server, data(500, 0, 100));
    }
    test.add(140, Client, data(100, 10, 500));
    test.add(170, Server, data(500, 0, 140));
    // One more, although its acknowledgement has passed.
    test.add(171, Client, data(110, 10, 500));
    // The first repeats the acknowledgement of the SYN-ACK.
    let expected = [
        (Server, RepeatedAcknowledgement),
        (Server, RepeatedAcknowledgement),
        (Server, RepeatedAcknowledgement),
        (Client, FastRetransmission),
        (Client, SpuriousRetransmission),
    ];
    assert_eq!(test.recorded.events, expected);
}

#[test]
fn zero_windows_window_probes_and_keep_alives_are_reported() {
    let mut test = opened();
    test.add(100, Client, data(100, 10, 500));
    let closed = Segment {
        window: 0,
        ..data(500, 0, 110)
    };
    test.add(130, Server, closed);
    test.add(330, Client, data(110, 1, 500));
    test.add(900, Client, data(109, 0, 500));
    let expected = [
        (Server, Event::ZeroWindow),
        (Client, Event::WindowProbe),
        (Client, Event::KeepAlive),
    ];
    assert_eq!(test.recorded.events, expected);
}

#[test]
fn a_new_syn_on_the_same_ports_begins_another_connection() {
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(9_000, Client, syn(7_000_000, None));
    test.add(9_030, Server, syn(9_000_000, Some(7_000_001)));
    assert_eq!(test.recorded.events, []);
    let expected = [(Half::Server, 30, Handshake)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
}

proptest! {
    /// Numbers and timestamps may wrap around anywhere.
    #[test]
    fn each_request_has_one_sample_wherever_the_numbers_begin(
        first in any::<u32>(),
        clock in any::<u32>(),
        requests in 1_u32..40,
    ) {
        let mut test = TestConnection::default();
        test.add(0, Client, stamped(syn(first.wrapping_sub(1), None), clock, 0));
        let begin = syn(499, Some(first));
        test.add(30, Server, stamped(begin, 5000, clock));
        for index in 0..requests {
            let at = 100 + 50 * i64::from(index);
            let value = clock.wrapping_add(100 + 50 * index);
            let seq = first.wrapping_add(1000 * index);
            test.add(at, Client, stamped(data(seq, 1000, 500), value, 5000));
            let reply = data(500, 0, seq.wrapping_add(1000));
            test.add(at + 30, Server, stamped(reply, 5000 + 50 * index, value));
        }
        for method in [Acknowledgement, Echo] {
            let mut samples = test.recorded.samples_by(method);
            samples.retain(|sample| sample.0 == Half::Server);
            prop_assert_eq!(samples.len(), requests as usize + 1);
            prop_assert!(samples.iter().all(|sample| sample.1 == 30));
        }
        prop_assert_eq!(test.recorded.events, []);
    }

    #[test]
    fn arbitrary_segments_do_not_panic_and_no_sample_is_negative(
        segments in proptest::collection::vec(
            (any::<bool>(), any::<u32>(), any::<u32>(), 0_u32..100_000, any::<u8>(), 0_u32..6, 0_u32..6),
            0..60,
        ),
    ) {
        let mut test = TestConnection::default();
        for (at, (is_client, seq, ack, length, flags, value, echo)) in (0..).zip(segments) {
            let side = if is_client { Client } else { Server };
            let plain = data(seq % 5000, length, ack % 5000);
            let segment = Segment { flags, ack: (flags & ACK != 0).then_some(Serial(ack % 5000)), ..plain };
            test.add(at, side, stamped(segment, value, echo));
        }
        prop_assert!(test.recorded.samples.iter().all(|sample| sample.round_trip >= Span::ZERO));
    }
}

#[test]
fn acknowledgements_delayed_by_a_lost_segment_give_no_round_trip() {
    // Captured at the server, 1 ms away: 100 is lost on the way here, and comes again 40 ms later.
    let mut test = opened();
    test.recorded.samples.clear();
    test.add(100, Client, stamped(data(110, 10, 500), 1100, 5000));
    test.add(100, Client, stamped(data(120, 10, 500), 1100, 5000));
    test.add(140, Client, stamped(data(100, 10, 500), 1140, 5000));
    test.add(141, Server, stamped(data(500, 0, 130), 5111, 1140));
    assert_eq!(test.recorded.samples_by(Acknowledgement), []);
    assert_eq!(test.recorded.samples_by(Echo), [(Half::Server, 1, Bare)]);
    // Captured at the client: all passed, and the first once more.
    let mut test = opened();
    test.recorded.samples.clear();
    for seq in [100, 110, 120] {
        test.add(100, Client, stamped(data(seq, 10, 500), 1100, 5000));
    }
    test.add(140, Client, stamped(data(100, 10, 500), 1140, 5000));
    test.add(170, Server, stamped(data(500, 0, 130), 5111, 1140));
    assert_eq!(test.recorded.samples_by(Acknowledgement), []);
    assert_eq!(test.recorded.samples_by(Echo), [(Half::Server, 30, Bare)]);
    // What follows is measured again.
    test.add(200, Client, stamped(data(130, 10, 500), 1200, 5111));
    test.add(230, Server, stamped(data(500, 0, 140), 5200, 1200));
    assert_eq!(
        test.recorded.samples_by(Acknowledgement),
        [(Half::Server, 30, Bare)]
    );
}
