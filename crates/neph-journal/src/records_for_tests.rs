//! Messages with known and with random values, for the tests of this crate and of neph-store.

use neph_model::{
    Answer, FleetMessage, FleetOutcome, FleetReply, FlowIndex, Instant, Marks, Message, Outcome,
    PeerReport, ReadBy, Seq, Slot, Span, SynAnswer, TcpState,
};
use proptest::option;
use proptest::prelude::*;

/// A replied message with most marks.
///
/// # Panics
/// A `seq` of more than 63 bits.
pub(crate) fn message(flow: u32, seq: u64) -> Message {
    let start = i64::try_from(seq).expect("small") * 1_000_000;
    let at = |offset: i64| Some(Instant::from_nanos(start + offset));
    let mut marks = Marks::intended_at(Instant::from_nanos(start));
    marks.app_send = at(300);
    marks.queued = at(2_000);
    marks.nic_tx = at(2_500);
    marks.acked = at(40_000);
    marks.peer.rx = Some(Instant::from_nanos(start + 7_000_000_000));
    marks.peer.app_rx = Some(Instant::from_nanos(start + 7_000_002_000));
    marks.peer.app_tx = Some(Instant::from_nanos(start + 7_000_004_000));
    marks.nic_rx = at(45_000);
    marks.app_recv = at(47_000);
    let mut message = Message::new(FlowIndex(flow), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message.peer_wall_offset = Some(1_700_000_000_000_000_000);
    message.tcp_at_ack = Some(TcpState {
        cwnd: 10,
        ssthresh: u32::MAX,
        srtt_us: 41,
        min_rtt_us: 33,
        retransmissions: 0,
        dsack_duplicates: 0,
        delivery_rate: 1_000_000,
    });
    message
}

/// Any message.
pub(crate) fn any_message() -> impl Strategy<Value = Message> {
    let identity = (any::<u32>(), any::<u64>(), 0..4_u8, any::<u32>());
    let counts = (any::<u16>(), any::<bool>(), any_answer());
    let times = prop::collection::vec(option::of(any::<i64>()), 14);
    let tcp = (option::of(any_tcp_state()), option::of(any_tcp_state()));
    (identity, counts, any::<i64>(), times, tcp).prop_map(
        |(
            (flow, seq, outcome, connection),
            (duplicates, reordered, answer),
            intended,
            times,
            tcp,
        )| {
            let mut message = Message::new(FlowIndex(flow), Seq(seq), marks_of(intended, &times));
            message.outcome = Outcome::ALL[outcome as usize];
            message.connection = connection;
            message.duplicates = duplicates;
            message.reordered = reordered;
            message.answer = answer;
            message.peer_wall_offset = times[13];
            (message.tcp_at_send, message.tcp_at_ack) = tcp;
            message
        },
    )
}

fn marks_of(intended: i64, times: &[Option<i64>]) -> Marks {
    let instant = |at: usize| times[at].map(Instant::from_nanos);
    let peer = |at: usize| times[at].map(Instant::from_nanos);
    let mut marks = Marks::intended_at(Instant::from_nanos(intended));
    marks.dialled = instant(0);
    marks.connected = instant(1);
    marks.opened = instant(2);
    marks.app_send = instant(3);
    marks.queued = instant(4);
    marks.nic_tx = instant(5);
    marks.acked = instant(6);
    marks.nic_rx = instant(7);
    marks.app_recv = instant(8);
    marks.peer.rx = peer(9);
    marks.peer.app_rx = peer(10);
    marks.peer.app_tx = peer(11);
    marks.peer.nic_tx = peer(12);
    marks
}

fn any_tcp_state() -> impl Strategy<Value = TcpState> {
    (any::<[u32; 6]>(), any::<u64>()).prop_map(|(values, delivery_rate)| TcpState {
        cwnd: values[0],
        ssthresh: values[1],
        srtt_us: values[2],
        min_rtt_us: values[3],
        retransmissions: values[4],
        dsack_duplicates: values[5],
        delivery_rate,
    })
}

/// A fleet's message that was sent `second` seconds after the start.
pub(crate) fn fleet_message(slot: u32, seq: u32, second: i64) -> FleetMessage {
    FleetMessage {
        slot: Slot(slot),
        source_port: 40_000,
        seq,
        sent: Instant::from_nanos(second * 1_000_000_000),
        late: Span::from_nanos(900),
        outcome: FleetOutcome::Reply(FleetReply {
            round_trip: Span::from_micros(850),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
                rx: Instant::from_nanos(-7),
                residence: Span::from_micros(30),
                count: Some(seq),
                ttl: Some(64),
            }),
            ttl: Some(63),
            copies: 1,
            answer: None,
        }),
    }
}

/// Any message of a fleet.
pub(crate) fn any_fleet_message() -> impl Strategy<Value = FleetMessage> {
    let identity = (any::<u32>(), any::<u16>(), any::<u32>());
    let times = (any::<i64>(), any::<i64>());
    (identity, times, any_fleet_outcome()).prop_map(
        |((slot, source_port, seq), (sent, late), outcome)| FleetMessage {
            slot: Slot(slot),
            source_port,
            seq,
            sent: Instant::from_nanos(sent),
            late: Span::from_nanos(late),
            outcome,
        },
    )
}

/// Any answer, or none.
fn any_answer() -> impl Strategy<Value = Option<Answer>> {
    (0_u16..7000).prop_map(Answer::from_code)
}

/// Any answer to a SYN, or none.
fn any_syn_answer() -> impl Strategy<Value = Option<SynAnswer>> {
    option::of(prop_oneof![Just(SynAnswer::SynAck), Just(SynAnswer::Rst)])
}

fn any_fleet_outcome() -> impl Strategy<Value = FleetOutcome> {
    let counts = (any::<u8>(), option::of(any::<u8>()), any::<bool>());
    let peer = (
        any::<[i64; 2]>(),
        option::of(any::<u32>()),
        option::of(any::<u8>()),
    );
    let peer_report = peer.prop_map(|([rx, residence], count, ttl)| PeerReport {
        rx: Instant::from_nanos(rx),
        residence: Span::from_nanos(residence),
        count,
        ttl,
    });
    let reply = (
        any::<i64>(),
        option::of(peer_report),
        counts,
        any_syn_answer(),
    )
        .prop_map(
            |(round_trip, peer_report, (copies, ttl, by_kernel), answer)| {
                FleetOutcome::Reply(FleetReply {
                    round_trip: Span::from_nanos(round_trip),
                    read_by: if by_kernel {
                        ReadBy::Kernel
                    } else {
                        ReadBy::Program
                    },
                    peer_report,
                    ttl,
                    copies,
                    answer,
                })
            },
        );
    prop_oneof![6 => reply, 1 => Just(FleetOutcome::Lost), 1 => Just(FleetOutcome::Failed)]
}
