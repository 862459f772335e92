//! What reaches the peer and what it gives back, and how that reaches us.

use neph_model::{Instant, Local, Span};
use neph_sys::stamp::Ending;

use super::super::{PEER_AHEAD, at};
use super::{Event, Packet, World, last_id};
use crate::reflect::answerer::Times;
use crate::reflect::reply_timestamps::Arrived;

/// The peer's clock while it answers one packet.
struct PeerTimes {
    now: i64,
    app_tx: Vec<i64>,
}

impl Times for PeerTimes {
    fn now(&mut self) -> Instant<Local> {
        self.app_tx.push(self.now);
        at(self.now + PEER_AHEAD)
    }
    fn wall_offset(&mut self) -> i64 {
        0
    }
    fn think(&mut self, span: Span) {
        self.now += span.nanos();
    }
}

impl World {
    pub(super) fn answer(&mut self, number: u32, packet: &Packet) {
        let kernel = self.random.up_to(self.net.kernel);
        let link = self.links.get_mut(&number).expect("looked for");
        let app_rx = (packet.arrives + kernel).max(link.busy);
        let arrived = Arrived {
            rx: Some(at(packet.arrives + PEER_AHEAD)),
            app_rx: at(app_rx + PEER_AHEAD),
        };
        let mut times = PeerTimes {
            now: app_rx,
            app_tx: Vec::new(),
        };
        let answered = link.answerer.received(&packet.bytes, arrived, &mut times);
        assert!(!link.answerer.is_backlogged(), "small replies only");
        link.busy = times.now;
        if let Some(exchange) = packet.ends {
            let truth = &mut self.outcomes.truth.get_mut(&number).expect("dialled")[exchange];
            truth.peer_app_rx = app_rx;
            truth.peer_app_tx = times.app_tx[0];
        }
        self.give_back(number, times.now);
        // What ends a connection without a reply would show as lost messages.
        let _ = answered;
    }

    fn give_back(&mut self, number: u32, from: i64) {
        loop {
            let nic_tx = from + self.random.up_to(self.net.kernel);
            let delay = self.net.reverse_delay + self.random.up_to(self.net.jitter) + self.stall();
            let link = self.links.get_mut(&number).expect("looked for");
            let Some((bytes, ending)) = link.answerer.outbox().next() else {
                link.answerer.release_spare_capacity();
                return;
            };
            let bytes = bytes.to_vec();
            link.answerer.outbox().wrote(bytes.len());
            link.returned += bytes.len() as u64;
            link.reverse_delay = (nic_tx + delay).max(link.reverse_delay + 1);
            let arrives = link.reverse_delay;
            link.answerer
                .sent(last_id(link.returned), at(nic_tx + PEER_AHEAD));
            let ends = (ending == Ending::Message).then(|| {
                link.answered += 1;
                link.answered - 1
            });
            if let Some(exchange) = ends {
                let truth = self.outcomes.truth.get_mut(&number).expect("dialled");
                truth[exchange].peer_nic_tx = nic_tx;
                truth[exchange].nic_rx = arrives;
            }
            self.schedule_event(
                arrives,
                number,
                Event::ToUs(Packet {
                    bytes,
                    arrives,
                    ends,
                }),
            );
        }
    }

    pub(super) fn receive(&mut self, number: u32, packet: &Packet) {
        self.now += self.random.up_to(self.net.kernel);
        let read = self.now;
        if let Some(exchange) = packet.ends {
            let truth = self.outcomes.truth.get_mut(&number).expect("dialled");
            truth[exchange].app_recv = read;
        }
        self.session
            .received(number, &packet.bytes, Some(at(packet.arrives)), &mut || {
                at(read)
            });
    }
}
