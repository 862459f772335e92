//! The table of columns: name, optional or required, and how to get and set its value in a message.

use std::borrow::Cow;

use neph_model::{Answer, FlowIndex, Instant, Marks, Message, Outcome, Seq, TcpState};

/// A type that is stored as rows of a table.
pub(crate) trait Row: Copy + 'static {
    /// Name of a row in the file's schema.
    const ROW_NAME: &'static str;
    /// Its columns, in file order. A reader sets the values in this order.
    const COLUMNS: &'static [Column<Self>];
    /// An empty row, which a reader fills.
    fn blank() -> Self;
}

/// One column of a table.
pub(crate) struct Column<R: 'static = Message> {
    /// Its name, with the unit.
    pub(crate) name: &'static str,
    /// Its name in older files.
    pub(crate) old_name: Option<&'static str>,
    /// Every row has a value.
    pub(crate) required: bool,
    /// Type and accessors of its values.
    pub(crate) cells: Cells<R>,
}

/// Type of a column's values, with getter and setter.
pub(crate) enum Cells<R: 'static = Message> {
    /// Nanoseconds.
    Nanos(fn(&R) -> Option<i64>, fn(&mut R, i64)),
    /// Unsigned 64 bits.
    Unsigned64(fn(&R) -> Option<u64>, fn(&mut R, u64)),
    /// Unsigned, up to 32 bits.
    Unsigned32(fn(&R) -> Option<u32>, fn(&mut R, u32)),
    /// A boolean.
    Flag(fn(&R) -> bool, fn(&mut R, bool)),
    /// A word of a fixed set.
    Word(
        fn(&R) -> Option<Cow<'static, str>>,
        fn(&mut R, &str) -> bool,
    ),
}

/// A value of any column, for the exports that write text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Absent,
    Signed(i64),
    Unsigned(u64),
    Flag(bool),
    Word(Cow<'static, str>),
}

impl<R> Column<R> {
    /// Sets the name that the column has in older files.
    pub(crate) const fn with_old_name(mut self, name: &'static str) -> Self {
        self.old_name = Some(name);
        self
    }

    /// Whether `name` is the column's current or old name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        name == self.name || self.old_name == Some(name)
    }

    /// The row's value in this column.
    pub(crate) fn cell(&self, row: &R) -> Cell {
        match self.cells {
            Cells::Nanos(get, _) => get(row).map_or(Cell::Absent, Cell::Signed),
            Cells::Unsigned64(get, _) => get(row).map_or(Cell::Absent, Cell::Unsigned),
            Cells::Unsigned32(get, _) => {
                get(row).map_or(Cell::Absent, |value| Cell::Unsigned(u64::from(value)))
            }
            Cells::Flag(get, _) => Cell::Flag(get(row)),
            Cells::Word(get, _) => get(row).map_or(Cell::Absent, Cell::Word),
        }
    }
}

/// The outcome of that name.
fn outcome_named(name: &str) -> Option<Outcome> {
    Outcome::from_name(name)
}

fn put_outcome(message: &mut Message, name: &str) -> bool {
    let outcome = outcome_named(name);
    message.outcome = outcome.unwrap_or(message.outcome);
    outcome.is_some()
}

fn put_answer(message: &mut Message, name: &str) -> bool {
    message.answer = Answer::from_name(name);
    message.answer.is_some()
}

pub(crate) const fn required<R>(name: &'static str, cells: Cells<R>) -> Column<R> {
    Column {
        name,
        old_name: None,
        required: true,
        cells,
    }
}

pub(crate) const fn optional<R>(name: &'static str, cells: Cells<R>) -> Column<R> {
    Column {
        name,
        old_name: None,
        required: false,
        cells,
    }
}

/// A timestamp that may be absent.
macro_rules! mark {
    ($name:literal, $($field:ident).+) => {
        optional(
            $name,
            Cells::Nanos(
                |message| message.marks.$($field).+.map(|at| at.nanos()),
                |message, nanos| message.marks.$($field).+ = Some(Instant::from_nanos(nanos)),
            ),
        )
    };
}

/// A 32-bit TCP value.
macro_rules! tcp {
    ($name:literal, $state:ident, $field:ident) => {
        optional(
            $name,
            Cells::Unsigned32(
                |message| message.$state.map(|state| state.$field),
                |message, value| {
                    message.$state.get_or_insert_with(TcpState::default).$field = value;
                },
            ),
        )
    };
}

macro_rules! tcp_delivery_rate {
    ($name:literal, $state:ident) => {
        optional(
            $name,
            Cells::Unsigned64(
                |message| message.$state.map(|state| state.delivery_rate),
                |message, value| {
                    message
                        .$state
                        .get_or_insert_with(TcpState::default)
                        .delivery_rate = value;
                },
            ),
        )
    };
}

impl Row for Message {
    const ROW_NAME: &'static str = "message";
    const COLUMNS: &'static [Column] = COLUMNS;

    fn blank() -> Self {
        let begun = Marks::intended_at(Instant::from_nanos(0));
        Self::new(FlowIndex(0), Seq(0), begun)
    }
}

/// All columns, in file order.
const COLUMNS: &[Column] = &[
    required(
        "flow",
        Cells::Unsigned32(|m| Some(m.flow.0), |m, value| m.flow = FlowIndex(value)),
    ),
    required(
        "seq",
        Cells::Unsigned64(|m| Some(m.seq.0), |m, value| m.seq = Seq(value)),
    ),
    required(
        "outcome",
        Cells::Word(|m| Some(m.outcome.name().into()), put_outcome),
    ),
    required(
        "intended_ns",
        Cells::Nanos(
            |m| Some(m.marks.intended.nanos()),
            |m, nanos| m.marks.intended = Instant::from_nanos(nanos),
        ),
    ),
    mark!("dialled_ns", dialled),
    mark!("connected_ns", connected),
    mark!("opened_ns", opened),
    mark!("app_send_ns", app_send),
    mark!("queued_ns", queued),
    mark!("nic_tx_ns", nic_tx),
    mark!("acked_ns", acked),
    mark!("peer_rx_ns", peer.rx),
    mark!("peer_app_rx_ns", peer.app_rx),
    mark!("peer_app_tx_ns", peer.app_tx),
    mark!("peer_nic_tx_ns", peer.nic_tx),
    mark!("nic_rx_ns", nic_rx),
    mark!("app_recv_ns", app_recv),
    optional(
        "peer_wall_offset_ns",
        Cells::Nanos(
            |m| m.peer_wall_offset,
            |m, nanos| m.peer_wall_offset = Some(nanos),
        ),
    ),
    required(
        "connection",
        Cells::Unsigned32(|m| Some(m.connection), |m, value| m.connection = value),
    ),
    required(
        "duplicates",
        Cells::Unsigned32(
            |m| Some(u32::from(m.duplicates)),
            |m, value| m.duplicates = u16::try_from(value).unwrap_or(u16::MAX),
        ),
    ),
    required(
        "reordered",
        Cells::Flag(|m| m.reordered, |m, value| m.reordered = value),
    ),
    tcp!("tcp_send_cwnd_segments", tcp_at_send, cwnd),
    tcp!("tcp_send_ssthresh_segments", tcp_at_send, ssthresh),
    tcp!("tcp_send_srtt_us", tcp_at_send, srtt_us),
    tcp!("tcp_send_min_rtt_us", tcp_at_send, min_rtt_us),
    tcp!("tcp_send_retransmissions", tcp_at_send, retransmissions),
    tcp_delivery_rate!("tcp_send_delivery_rate_bytes_per_s", tcp_at_send),
    tcp!("tcp_ack_cwnd_segments", tcp_at_ack, cwnd),
    tcp!("tcp_ack_ssthresh_segments", tcp_at_ack, ssthresh),
    tcp!("tcp_ack_srtt_us", tcp_at_ack, srtt_us),
    tcp!("tcp_ack_min_rtt_us", tcp_at_ack, min_rtt_us),
    tcp!("tcp_ack_retransmissions", tcp_at_ack, retransmissions),
    tcp_delivery_rate!("tcp_ack_delivery_rate_bytes_per_s", tcp_at_ack),
    optional(
        "answer",
        Cells::Word(|m| Some(m.answer?.name()), put_answer),
    ),
    tcp!("tcp_send_dsack_duplicates", tcp_at_send, dsack_duplicates),
    tcp!("tcp_ack_dsack_duplicates", tcp_at_ack, dsack_duplicates),
];
