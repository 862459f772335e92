//! The ledger: where one message's time went. Its entries add up to the end-to-end time exactly.
//!
//! The peer's clock enters only through differences within itself, so the sum never needs the
//! offset between the two sites. Splitting the network into its directions does: see
//! [`Ledger::directions`].

use crate::{ClockOffset, Instant, Local, Marks, OneWay, Span, Stage, StageSet};

/// One line of a ledger: the stages it covers and the time they took together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One stage, or several where a timestamp between them is missing.
    pub stages: StageSet,
    time: Span,
}

impl Entry {
    /// How long they took; never negative: contradictory timestamps count as missing
    /// ([`Marks::without_contradictions`]).
    pub const fn time(&self) -> Span {
        self.time
    }
}

/// All entries of one message that was replied to, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    entries: [Entry; Stage::ALL.len()],
    len: usize,
    response: Span,
    service: Span,
}

impl Ledger {
    /// The ledger of a message; `None` without a reply, or if the reply arrived before the
    /// scheduled send time.
    pub fn of(marks: &Marks) -> Option<Self> {
        let end = marks.app_recv.filter(|end| *end >= marks.intended)?;
        let marks = &marks.without_contradictions();
        let mut builder = Builder::starting_at(marks.intended);
        builder.close_send_stages(marks);
        if !marks.is_connection_attempt() {
            builder.close_network_and_peer_stages(marks, end);
            if marks.nic_rx.is_some() {
                builder.close(Stage::OwnKernel, end);
            }
        }
        Some(Self {
            entries: builder.entries,
            len: builder.len,
            response: end - marks.intended,
            service: end - marks.first_action().unwrap_or(marks.intended),
        })
    }

    /// The entries, in order of time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..self.len]
    }
    /// From `intended` to `app_recv`: what a user waits who sends by the schedule. Without
    /// coordinated omission.
    pub const fn response_time(&self) -> Span {
        self.response
    }
    /// From the first act (dial or send) to `app_recv`.
    pub const fn service_time(&self) -> Span {
        self.service
    }
    /// The time of a single stage; `None` if it is absent or merged with another.
    pub fn stage(&self, stage: Stage) -> Option<Span> {
        let single = StageSet::only(stage);
        self.entries()
            .iter()
            .find(|entry| entry.stages == single)
            .map(|entry| entry.time)
    }

    /// The network's two directions, separated with the clock offset; `None` if one of the four
    /// timestamps at the interfaces is missing.
    pub fn directions(marks: &Marks, offset: ClockOffset) -> Option<(OneWay, OneWay)> {
        let forward = offset.forward(marks.nic_tx?, marks.peer.rx?);
        let reverse = offset.reverse(marks.peer.nic_tx?, marks.nic_rx?);
        Some((forward, reverse))
    }
}

/// Walks along the timestamps. Stages without an end timestamp wait in `open` for the next one.
struct Builder {
    entries: [Entry; Stage::ALL.len()],
    len: usize,
    open: StageSet,
    from: Instant<Local>,
}

impl Builder {
    const fn starting_at(from: Instant<Local>) -> Self {
        let empty_entry = Entry {
            stages: StageSet::EMPTY,
            time: Span::ZERO,
        };
        Self {
            entries: [empty_entry; Stage::ALL.len()],
            len: 0,
            open: StageSet::EMPTY,
            from,
        }
    }

    fn push(&mut self, stages: StageSet, time: Span) {
        self.entries[self.len] = Entry { stages, time };
        self.len += 1;
    }

    /// Ends `stage`, and all stages that are open before it, at `at`.
    fn close(&mut self, stage: Stage, at: Instant<Local>) {
        let stages = self.open.with(stage);
        self.push(stages, at - self.from);
        self.open = StageSet::EMPTY;
        self.from = at;
    }

    fn close_or_open(&mut self, stage: Stage, at: Option<Instant<Local>>) {
        match at {
            Some(at) => self.close(stage, at),
            None => self.open = self.open.with(stage),
        }
    }

    fn close_send_stages(&mut self, marks: &Marks) {
        if let Some(dialled) = marks.dialled {
            self.close(Stage::Lateness, dialled);
            self.close_or_open(Stage::Connect, marks.connected);
            if marks.is_connection_attempt() {
                return;
            }
            if let Some(opened) = marks.opened {
                self.close(Stage::Handshake, opened);
            }
            self.close_or_open(Stage::Compose, marks.app_send);
        } else {
            self.close_or_open(Stage::Lateness, marks.app_send);
        }
        self.close_or_open(Stage::SendWindow, marks.queued);
        self.close_or_open(Stage::SendQueue, marks.nic_tx);
    }

    /// From the last local timestamp before the network to the first one after it: the peer's
    /// stages are differences on its own clock, the network is the rest.
    fn close_network_and_peer_stages(&mut self, marks: &Marks, end: Instant<Local>) {
        let after = marks.nic_rx.unwrap_or(end);
        let whole = after - self.from;
        let peer = &marks.peer;
        let points = [
            (Stage::PeerKernel, peer.rx),
            (Stage::PeerApp, peer.app_rx),
            (Stage::PeerSend, peer.app_tx),
            (Stage::OwnKernel, peer.nic_tx),
        ];
        let mut crossing = self.open.with(Stage::Network);
        let mut inner = [(StageSet::EMPTY, Span::ZERO); 3];
        let mut count = 0;
        let mut last = None;
        let mut open = StageSet::EMPTY;
        for (starts, at) in points {
            if let Some(at) = at {
                match last {
                    None => crossing = open.iter().fold(crossing, StageSet::with),
                    Some(before) => {
                        inner[count] = (open, at - before);
                        count += 1;
                    }
                }
                last = Some(at);
                open = StageSet::EMPTY;
            }
            if starts != Stage::OwnKernel {
                open = open.with(starts);
            }
        }
        crossing = open.iter().fold(crossing, StageSet::with);
        let inside: Span = inner[..count].iter().map(|(_, time)| *time).sum();
        if marks.nic_rx.is_none() {
            crossing = crossing.with(Stage::OwnKernel);
        }
        self.push(crossing, whole - inside);
        for (stages, time) in inner.into_iter().take(count) {
            self.push(stages, time);
        }
        self.open = StageSet::EMPTY;
        self.from = after;
    }
}

#[cfg(test)]
mod tests;
