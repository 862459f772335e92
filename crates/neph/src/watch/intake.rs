//! Destinations of packets: the file of `--write`, and the table of flows with its output.

use neph_capture::Limits;
use neph_model::Wall;
use neph_sys::clock;
use neph_sys::links::Change;
use neph_sys::ring::Packet;
use neph_wire::dissect::{Dissected, NoPacket};

use super::Args;
use super::watching::Watching;
use crate::exit::Failure;
use crate::output;
use neph_capture::reading::conversations::Conversations;
use neph_listen::CaptureMethod;
use neph_listen::Writing;
use neph_listen::{CaptureCounters, CaptureInterface};

pub(super) struct Intake {
    conversations: Conversations,
    watching: Watching,
    writing: Option<Writing>,
    /// A single interface has no duplicates.
    is_any: bool,
    method: CaptureMethod,
}

/// Without packets so far; starts the first period.
pub(super) fn conversations(args: &Args) -> Conversations {
    let limits = Limits {
        flows: args.flows.max(1),
        idle_timeout: args.idle,
        ..Limits::default()
    };
    let mut conversations = Conversations::new(limits, &args.quic_port);
    conversations.table.look(|_, _| {});
    conversations.exchanges.look(|_, _| {});
    conversations
}

impl Intake {
    pub(super) fn new(
        args: &Args,
        capture_interface: &CaptureInterface,
        watching: Watching,
    ) -> Result<Self, Failure> {
        let (link, format) = capture_interface.format();
        let writing = args.write.as_deref();
        let writing = writing.map(|path| super::write_into(path, args.force, (link, format)));
        Ok(Self {
            conversations: conversations(args),
            watching,
            writing: writing.transpose()?,
            is_any: capture_interface.is_any(),
            method: capture_interface.method(),
        })
    }

    pub(super) fn packet(
        &mut self,
        packet: &Packet<'_>,
        dissected: Result<&Dissected<'_>, NoPacket>,
    ) {
        if let Some(writing) = &mut self.writing {
            writing.packet(packet);
        }
        match dissected {
            Ok(dissected) => {
                let at = Wall::from_unix_nanos(packet.stamp());
                let interface = if self.is_any { packet.interface() } else { 0 };
                self.conversations
                    .see(at, interface, dissected, &mut self.watching);
            }
            Err(NoPacket::Cut) => self.conversations.see_cut(),
            Err(NoPacket::NotIp) => {}
        }
    }

    /// Ends a period; `observed` counts from the start.
    pub(super) fn period(&mut self, observed: CaptureCounters) {
        let now = clock::pair();
        let wall = Wall::from_unix_nanos(now.wall.0);
        self.conversations.silence(wall, &mut self.watching);
        self.watching
            .period(&mut self.conversations, self.method, observed, now);
        if let Some(writing) = &mut self.writing {
            writing.flush();
        }
    }

    /// Reports a change of a watched interface.
    pub(super) fn changed(&mut self, change: &Change) {
        self.watching.changed(change);
    }

    /// Answers a request of Prometheus, if there is one.
    pub(super) fn answer(&mut self, observed: CaptureCounters) {
        self.watching.answer(&self.conversations, observed);
    }

    /// Whether the reader of the output has closed it.
    pub(super) const fn is_refused(&self) -> bool {
        self.watching.is_refused()
    }

    /// Ends the watch: reports the last period, all flows, and the written packets. Returns whether
    /// an alarm was raised, and any output error.
    pub(super) fn finish(mut self, observed: CaptureCounters) -> (bool, Result<(), Failure>) {
        self.period(observed);
        let written = self.writing.take().map(Writing::finish);
        let (was_alarmed, output) = self.watching.finish(self.conversations, observed);
        let written = written.transpose().map_err(Failure::from).map(|sentence| {
            if let Some(sentence) = sentence {
                output::say(&format!("neph watch: {sentence}"));
            }
        });
        (was_alarmed, output.map_err(Failure::from).and(written))
    }
}
