//! Whether a target that has never answered is still to be expected to.

use neph_model::{EventKind, Instant, Own, Span};

/// Time to start the server after the ping, in seconds.
const SECONDS: i64 = 10;

/// What a flow has met so far.
#[derive(Debug, Default)]
pub(super) enum FirstReply {
    /// Nothing yet.
    #[default]
    Unmet,
    /// Refusals only, and why the latest.
    Refused { since: Instant<Own>, why: String },
    /// It has answered once: it may come back.
    Answered,
}

impl FirstReply {
    pub(super) fn answered(&mut self) {
        *self = Self::Answered;
    }

    pub(super) fn event(&mut self, kind: EventKind, text: &str, now: Instant<Own>) {
        match (kind, &mut *self) {
            (_, Self::Answered) => {}
            (EventKind::Connected, _) => *self = Self::Answered,
            (EventKind::ConnectFailed | EventKind::Refused, Self::Refused { why, .. }) => {
                text.clone_into(why);
            }
            (EventKind::ConnectFailed | EventKind::Refused, Self::Unmet) => {
                *self = Self::Refused {
                    since: now,
                    why: text.to_owned(),
                };
            }
            _ => {}
        }
    }

    /// Why no reply is expected any more, if so.
    pub(super) fn lost(&self, now: Instant<Own>) -> Option<String> {
        match self {
            Self::Refused { since, why } if now - *since >= Span::from_secs(SECONDS) => {
                Some(format!(
                    "no answer in {SECONDS} s: {why}; with --count or --duration neph continues"
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: i64) -> Instant<Own> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn refusals_alone_are_put_up_with_for_ten_seconds() {
        let mut first_reply = FirstReply::default();
        assert_eq!(first_reply.lost(after(60)), None, "silence is no refusal");
        first_reply.event(EventKind::ConnectFailed, "refused", after(100));
        first_reply.event(EventKind::ConnectFailed, "unreachable", after(105));
        assert_eq!(first_reply.lost(after(109)), None);
        let why = first_reply.lost(after(110)).expect("its time is over");
        assert!(why.starts_with("no answer in 10 s: unreachable"), "{why}");
    }

    #[test]
    fn whoever_has_answered_once_may_come_back() {
        for connected in [true, false] {
            let mut first_reply = FirstReply::default();
            first_reply.event(EventKind::Refused, "not yet", after(0));
            if connected {
                first_reply.event(EventKind::Connected, "connection 1", after(1));
            } else {
                first_reply.answered();
            }
            first_reply.event(EventKind::ConnectFailed, "gone", after(2));
            assert_eq!(first_reply.lost(after(60)), None);
        }
    }
}
