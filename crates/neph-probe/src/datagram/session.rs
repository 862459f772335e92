//! A flow's session over datagrams: its schedule and its messages, without input or output.

use neph_model::{
    Answer, EventKind, IcmpKind, Instant, Local, LocalFault, Message, Seq, Span, Tally,
};

use super::ReplyOutcome;
use crate::exchange::{Exchange, Expect, Reply, SendPoint};
use crate::fault::{self, ErrorTime};
use crate::numbered::AwaitedTimestamps;
use crate::report::Note;
use crate::spec::FlowSpec;

/// Messages that wait for a send timestamp. It comes within microseconds; an older one will not come.
const MAX_PENDING_TIMESTAMPS: usize = 4096;

#[derive(Debug)]
pub(crate) struct Session {
    spec: FlowSpec,
    start: Option<Instant<Local>>,
    entered: u64,
    exchange: Exchange,
    unstamped: AwaitedTimestamps<Seq>,
    tail_sent: bool,
    refused: bool,
    notes: Vec<Note>,
}

impl Session {
    pub(crate) fn new(spec: &FlowSpec) -> Self {
        let expect = Expect {
            sent: true,
            peer_send: spec.reflector && spec.has_room_for_marks(),
            ack: false,
        };
        Self {
            spec: spec.clone(),
            start: None,
            entered: 0,
            exchange: Exchange::new(spec.index, spec.schedule.interval, spec.timeout, expect),
            unstamped: AwaitedTimestamps::new(MAX_PENDING_TIMESTAMPS),
            tail_sent: false,
            refused: false,
            notes: Vec::with_capacity(64),
        }
    }

    pub(crate) const fn begin(&mut self, start: Instant<Local>) {
        self.start = Some(start);
    }

    pub(crate) fn next_due(&self) -> Option<Instant<Local>> {
        self.spec.schedule.due(self.start?, self.entered)
    }

    /// Ends the schedule.
    pub(crate) const fn end_schedule(&mut self) {
        self.spec.schedule.count = Some(self.entered);
    }

    /// The number of the next message.
    pub(crate) const fn next_seq(&self) -> u64 {
        self.entered
    }

    /// The next message is due and about to be sent.
    pub(crate) fn sending(&mut self, at: Instant<Local>) -> Option<Seq> {
        let seq = self.exchange.enter(self.next_due()?);
        self.entered += 1;
        self.exchange.sent(seq, at, 0);
        self.unstamped.count(seq);
        Some(seq)
    }

    /// The kernel did not accept the message.
    pub(crate) fn not_sent(&mut self, seq: Seq, reason: &std::io::Error, at: Instant<Local>) {
        let answer = fault::answer_of_datagram(reason, ErrorTime::AtOnce);
        self.exchange.failed(seq, answer, at);
        self.refused_by(&fault::sentence("send", reason, answer));
    }

    /// The next message is too late, or beyond a cap: it is not sent.
    pub(crate) fn skip(&mut self, reason: LocalFault, at: Instant<Local>) {
        if let Some(due) = self.next_due() {
            let seq = self.exchange.enter(due);
            self.entered += 1;
            self.exchange.failed(seq, Some(Answer::Local(reason)), at);
        }
    }

    /// The end of the schedule.
    pub(crate) fn end(&self) -> Option<Instant<Local>> {
        self.spec.schedule.end(self.start?)
    }

    /// An ICMP error arrived for a message.
    pub(crate) fn icmp_error(&mut self, seq: u64, kind: IcmpKind, at: Instant<Local>) {
        let answer = Answer::Icmp(kind);
        self.exchange.lost(Seq(seq), Some(answer), at);
        self.refused_by(&answer.description());
    }

    /// The kernel counts this socket's datagrams from 0 again.
    pub(crate) fn count_restarted(&mut self) {
        self.unstamped.restart();
    }

    /// After the last message, one exchange that is no message, for the last reply's send timestamp.
    pub(crate) fn tail(&mut self) -> Option<u64> {
        if self.tail_sent || self.next_due().is_some() || !self.exchange.all_decided() {
            return None;
        }
        self.tail_sent = true;
        self.exchange.lacks_peer_send().then_some(self.entered)
    }

    pub(crate) fn stamped(&mut self, point: SendPoint, id: u32, at: Instant<Local>) {
        if let Some(seq) = self.unstamped.get(id) {
            self.exchange.stamped(*seq, point, at, None);
        }
    }

    pub(crate) fn answered(
        &mut self,
        answer: &ReplyOutcome,
        stamp: Option<Instant<Local>>,
        at: Instant<Local>,
    ) {
        if answer.marks.is_some_and(|marks| marks.app_rx.is_some()) {
            // Only a neph reflector sends this timestamp, and its send timestamp follows.
            self.exchange.set_expect(Expect {
                sent: true,
                peer_send: true,
                ack: false,
            });
        }
        let reply = Reply {
            nic_rx: stamp,
            app_recv: at,
            marks: answer.marks,
            answer: answer.answer,
            outcome: answer.outcome,
        };
        if let Some(message) = self.exchange.replied(Seq(answer.seq), &reply) {
            self.notes.push(Note::Reply(*message));
        }
        self.notes.extend(self.exchange.take_disbelieved());
    }

    /// The network or this host refused a message. Noted once per flow.
    pub(crate) fn refused_by(&mut self, reason: &str) {
        if !self.refused {
            self.refused = true;
            self.notes
                .push(Note::Event(EventKind::Refused, reason.to_owned()));
        }
    }

    pub(crate) fn clock_stepped(&mut self, step: Span) {
        let text = format!("the wall clock stepped by {step}");
        self.notes.push(Note::Event(EventKind::ClockStepped, text));
    }

    pub(crate) fn at_time(&mut self, now: Instant<Local>) {
        self.exchange.expire(now);
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant<Local>> {
        self.exchange.next_deadline()
    }
    pub(crate) fn is_done(&self) -> bool {
        let scheduled = self.start.is_none() || self.next_due().is_some();
        !scheduled && self.exchange.all_decided() && self.tail_sent
    }
    pub(crate) fn lacks_peer_send(&self) -> bool {
        self.exchange.lacks_peer_send()
    }
    pub(crate) fn take_notes(&mut self) -> std::vec::Drain<'_, Note> {
        self.notes.drain(..)
    }
    pub(crate) fn take_finished(&mut self, now: Instant<Local>) -> Option<Message> {
        self.exchange.take_finished(now)
    }
    pub(crate) fn take_rest(&mut self) -> Option<Message> {
        self.exchange.take_rest()
    }
    pub(crate) const fn tally(&self) -> &Tally {
        self.exchange.tally()
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Outcome, Target};

    use super::*;
    use crate::resolver::Resolve;

    #[test]
    fn a_codec_error_becomes_the_outcome_of_the_message() {
        let target = Target::parse("udp://127.0.0.1:862").expect("a target");
        let address = target.addresses(None).expect("an address")[0];
        let mut session = Session::new(&FlowSpec::plain(target, address));
        let at = Instant::from_nanos;
        session.begin(at(0));
        let seq = session.sending(at(1)).expect("a message is due");
        let answered = ReplyOutcome {
            seq: seq.0,
            marks: None,
            answer: Some(Answer::HttpStatus(503)),
            outcome: Outcome::Error,
        };
        session.answered(&answered, None, at(2));
        let message = session.take_rest().expect("the message");
        assert_eq!(
            (message.outcome, message.answer),
            (answered.outcome, answered.answer)
        );
        assert_eq!((session.tally().replies, session.tally().errors), (0, 1));
    }
}
