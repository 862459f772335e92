//! Whether to wait longer for a target that has never answered.

use neph_model::{EventKind, Instant, Local, Span};

/// Seconds in which the user may start the server after neph ping.
const SERVER_START_SECONDS: i64 = 10;

/// The state of a flow.
#[derive(Debug, Default)]
pub(super) enum FirstReply {
    /// Nothing yet.
    #[default]
    Waiting,
    /// Only refusals, with the latest reason.
    Refused {
        start: Instant<Local>,
        reason: String,
    },
    /// At least one reply: the server may return.
    Answered,
}

impl FirstReply {
    pub(super) fn set_answered(&mut self) {
        *self = Self::Answered;
    }

    pub(super) fn record_event(&mut self, kind: EventKind, text: &str, now: Instant<Local>) {
        match (kind, &mut *self) {
            (_, Self::Answered) => {}
            (EventKind::Connected, _) => *self = Self::Answered,
            (EventKind::ConnectFailed | EventKind::Refused, Self::Refused { reason, .. }) => {
                text.clone_into(reason);
            }
            (EventKind::ConnectFailed | EventKind::Refused, Self::Waiting) => {
                *self = Self::Refused {
                    start: now,
                    reason: text.to_owned(),
                };
            }
            _ => {}
        }
    }

    /// Why no reply is expected any more; `None` if one is.
    pub(super) fn give_up_reason(&self, now: Instant<Local>) -> Option<String> {
        match self {
            Self::Refused { start, reason }
                if now - *start >= Span::from_secs(SERVER_START_SECONDS) =>
            {
                Some(format!(
                    "no answer in {SERVER_START_SECONDS} s: {reason}; with --count or --duration neph continues"
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_second(seconds: i64) -> Instant<Local> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn after_ten_seconds_of_refusals_neph_gives_up() {
        let mut first_reply = FirstReply::default();
        assert_eq!(
            first_reply.give_up_reason(at_second(60)),
            None,
            "silence is no refusal"
        );
        first_reply.record_event(EventKind::ConnectFailed, "refused", at_second(100));
        first_reply.record_event(EventKind::ConnectFailed, "unreachable", at_second(105));
        assert_eq!(first_reply.give_up_reason(at_second(109)), None);
        let reason = first_reply
            .give_up_reason(at_second(110))
            .expect("its time is over");
        assert!(
            reason.starts_with("no answer in 10 s: unreachable"),
            "{reason}"
        );
    }

    #[test]
    fn after_a_first_reply_neph_never_gives_up() {
        for is_connected in [true, false] {
            let mut first_reply = FirstReply::default();
            first_reply.record_event(EventKind::Refused, "not yet", at_second(0));
            if is_connected {
                first_reply.record_event(EventKind::Connected, "connection 1", at_second(1));
            } else {
                first_reply.set_answered();
            }
            first_reply.record_event(EventKind::ConnectFailed, "gone", at_second(2));
            assert_eq!(first_reply.give_up_reason(at_second(60)), None);
        }
    }
}
