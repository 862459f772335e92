//! The reports of a driver, made from the notes of its session.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use neph_model::{Instant, Local, Message, Span, Tally, TcpState};
use neph_sys::stamp::Point;
use neph_sys::tcp::{self, TcpStats};
use socket2::Socket;

use crate::exchange::SendPoint;
use crate::report::{Note, Report, Reports};
use crate::stamp_clock::{StampClock, now};

/// Interval between reports of both clocks.
const ANCHORS: Span = Span::from_secs(1);

#[derive(Debug)]
pub(crate) struct Outlet {
    reports: Reports,
    anchored: Option<Instant<Local>>,
    opened: bool,
}

impl Outlet {
    pub(crate) const fn new(reports: Reports) -> Self {
        Self {
            reports,
            anchored: None,
            opened: false,
        }
    }

    /// Reports the local address of a flow whose socket does not know it.
    pub(crate) fn placed(&mut self, source: SocketAddr) {
        self.opened = true;
        let congestion = None;
        self.reports.report(Report::Opened { source, congestion });
    }

    /// Reports the local address of the flow's first socket. Later ones differ in their port only.
    pub(crate) fn opened(&mut self, socket: &Socket) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        let local = socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        if let Some(source) = local {
            let congestion = tcp::congestion_control(socket.as_fd()).ok();
            self.reports.report(Report::Opened { source, congestion });
        }
    }

    /// Reports the kernel's statistics of a connection. Nothing for other sockets than TCP.
    pub(crate) fn tcp(&mut self, socket: &Socket) {
        if let Ok(info) = tcp::info(socket.as_fd()) {
            self.reports.report(Report::Tcp { at: now(), info });
        }
    }

    /// Reports both clocks, if it is time.
    pub(crate) fn anchor(&mut self, clock: &StampClock) {
        let anchor = clock.anchor();
        if self.anchored.is_none_or(|last| anchor.at - last >= ANCHORS) {
            self.anchored = Some(anchor.at);
            self.reports.report(Report::Anchor(anchor));
        }
    }

    pub(crate) fn notes(&mut self, notes: impl Iterator<Item = Note>) {
        for note in notes {
            self.reports.report(match note {
                Note::Reply(message) => Report::Reply(message),
                Note::Event(kind, text) => Report::Event {
                    at: now(),
                    kind,
                    text,
                },
            });
        }
    }

    pub(crate) fn message(&mut self, message: &Message) {
        self.reports.report(Report::Message(*message));
    }

    pub(crate) fn end(self, tally: Tally) {
        self.reports.end(tally);
    }
}

impl From<Point> for SendPoint {
    fn from(point: Point) -> Self {
        match point {
            Point::Queued => Self::Queued,
            Point::Sent => Self::NicTx,
            Point::Acked => Self::Acked,
        }
    }
}

/// The kernel's statistics in the terms of neph.
pub(crate) const fn tcp_state(stats: TcpStats) -> TcpState {
    TcpState {
        cwnd: stats.cwnd,
        ssthresh: stats.ssthresh,
        srtt_us: stats.srtt_us,
        min_rtt_us: stats.min_rtt_us,
        retransmissions: stats.retransmissions,
        dsack_duplicates: stats.dsack_duplicates,
        delivery_rate: stats.delivery_rate,
    }
}
