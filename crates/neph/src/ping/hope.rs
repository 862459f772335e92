//! Whether a target that has never answered is still to be expected to.

use neph_model::{EventKind, Instant, Own, Span};

/// Whoever starts a server after the ping is given this long.
const SECONDS: i64 = 10;

/// What a flow has met so far.
#[derive(Debug, Default)]
pub(super) enum Hope {
    /// Nothing yet.
    #[default]
    Unmet,
    /// Refusals only, and why the latest.
    Refused { since: Instant<Own>, why: String },
    /// It has answered once: it may come back.
    Answered,
}

impl Hope {
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

    /// Why nobody is expected any more, if so.
    pub(super) fn lost(&self, now: Instant<Own>) -> Option<String> {
        match self {
            Self::Refused { since, why } if now - *since >= Span::from_secs(SECONDS) => {
                Some(format!(
                    "nobody has answered in {SECONDS} s: {why}; with --count or --duration neph goes \
                 on trying"
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
        let mut hope = Hope::default();
        assert_eq!(hope.lost(after(60)), None, "silence is no refusal");
        hope.event(EventKind::ConnectFailed, "refused", after(100));
        hope.event(EventKind::ConnectFailed, "unreachable", after(105));
        assert_eq!(hope.lost(after(109)), None);
        let why = hope.lost(after(110)).expect("its time is over");
        assert!(
            why.starts_with("nobody has answered in 10 s: unreachable"),
            "{why}"
        );
    }

    #[test]
    fn whoever_has_answered_once_may_come_back() {
        for connected in [true, false] {
            let mut hope = Hope::default();
            hope.event(EventKind::Refused, "not yet", after(0));
            if connected {
                hope.event(EventKind::Connected, "connection 1", after(1));
            } else {
                hope.answered();
            }
            hope.event(EventKind::ConnectFailed, "gone", after(2));
            assert_eq!(hope.lost(after(60)), None);
        }
    }
}
