//! Destinations of packets: the file of `--write`, and the table of flows with its output.

use neph_capture::Limits;
use neph_model::Wall;
use neph_sys::clock;
use neph_sys::links::Change;
use neph_sys::ring::Packet;
use neph_wire::dissect::{Dissected, NoPacket};

use super::Args;
use super::watch_output::WatchOutput;
use crate::exit::Failure;
use crate::output;
use neph_capture::reading::conversations::Conversations;
use neph_listen::CaptureMethod;
use neph_listen::Writing;
use neph_listen::{CaptureCounters, CaptureInterface};

pub(super) struct Intake {
    conversations: Conversations,
    watch_output: WatchOutput,
    writer: Option<Writing>,
    /// A single interface has no duplicates.
    is_any_interface: bool,
    method: CaptureMethod,
}

/// Without packets so far; starts the first period.
pub(super) fn new_conversations(args: &Args) -> Conversations {
    let limits = Limits {
        max_flows: args.flows.max(1),
        idle_timeout: args.idle,
        ..Limits::default()
    };
    let mut conversations = Conversations::new(limits, &args.quic_port);
    conversations.table.end_period(|_, _| {});
    conversations.exchanges.end_period(|_, _| {});
    conversations
}

impl Intake {
    pub(super) fn new(
        args: &Args,
        capture_interface: &CaptureInterface,
        watch_output: WatchOutput,
    ) -> Result<Self, Failure> {
        let (link, format) = capture_interface.format();
        let writer = args.write.as_deref();
        let writer = writer.map(|path| super::write_into(path, args.force, (link, format)));
        Ok(Self {
            conversations: new_conversations(args),
            watch_output,
            writer: writer.transpose()?,
            is_any_interface: capture_interface.is_any(),
            method: capture_interface.method(),
        })
    }

    pub(super) fn add_packet(
        &mut self,
        packet: &Packet<'_>,
        dissected: Result<&Dissected<'_>, NoPacket>,
    ) {
        if let Some(writer) = &mut self.writer {
            writer.packet(packet);
        }
        match dissected {
            Ok(dissected) => {
                let time = Wall::from_unix_nanos(packet.stamp());
                let interface = if self.is_any_interface {
                    packet.interface()
                } else {
                    0
                };
                self.conversations
                    .add_packet(time, interface, dissected, &mut self.watch_output);
            }
            Err(NoPacket::Cut) => self.conversations.count_cut_packet(),
            Err(NoPacket::NotIp) => {}
        }
    }

    /// Ends a period; `counters` count from the start.
    pub(super) fn end_period(&mut self, counters: CaptureCounters) {
        let now = clock::pair();
        let wall = Wall::from_unix_nanos(now.wall.0);
        self.conversations.end_idle(wall, &mut self.watch_output);
        self.watch_output
            .end_period(&mut self.conversations, self.method, counters, now);
        if let Some(writer) = &mut self.writer {
            writer.flush();
        }
    }

    /// Reports a change of a watched interface.
    pub(super) fn report_link_change(&mut self, change: &Change) {
        self.watch_output.report_link_change(change);
    }

    /// Answers a request of Prometheus, if there is one.
    pub(super) fn answer_request(&mut self, counters: CaptureCounters) {
        self.watch_output
            .answer_request(&self.conversations, counters);
    }

    /// Whether the reader of the output has closed it.
    pub(super) const fn is_refused(&self) -> bool {
        self.watch_output.is_refused()
    }

    /// Ends the watch: reports the last period, all flows, and the written packets. Returns whether
    /// an alarm was raised, and any output error.
    pub(super) fn finish(mut self, counters: CaptureCounters) -> (bool, Result<(), Failure>) {
        self.end_period(counters);
        let write_result = self.writer.take().map(Writing::finish);
        let (was_alarmed, output) = self.watch_output.finish(self.conversations, counters);
        let write_result = write_result
            .transpose()
            .map_err(Failure::from)
            .map(|sentence| {
                if let Some(sentence) = sentence {
                    output::say(&format!("neph watch: {sentence}"));
                }
            });
        (was_alarmed, output.map_err(Failure::from).and(write_result))
    }
}
