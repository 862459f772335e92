//! Messages of the libraries besides their results: warnings and waiting times.
//!
//! Owns the subscriber, which prints messages on the terminal. Warnings are printed once, because
//! many links may cause the same one. Events, such as a connected agent, are printed each time. Lines
//! of a service start with their time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use neph_documents::wall_time;
use neph_model::Wall;
use neph_sys::clock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output;

/// Installs the subscriber. Lines of a service (`is_service`) start with their time, except in the
/// journal of systemd, which adds the time itself.
pub(crate) fn install_subscriber(is_service: bool) {
    let subscriber = LogSubscriber {
        has_times: is_service && std::env::var_os("JOURNAL_STREAM").is_none(),
        ..LogSubscriber::default()
    };
    // Fails if a subscriber exists, as in tests.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

#[derive(Debug, Default)]
struct LogSubscriber {
    has_times: bool,
    printed_warnings: Mutex<BTreeSet<String>>,
}

impl LogSubscriber {
    /// The sentence; `None` for a warning that was printed before.
    fn new_sentence(&self, event: &Event<'_>) -> Option<String> {
        let is_info = *event.metadata().level() == Level::INFO;
        let start = if is_info { "neph: " } else { "neph: warning: " };
        let mut sentence = Sentence(start.to_owned());
        event.record(&mut sentence);
        if is_info {
            return Some(sentence.0);
        }
        let mut printed_warnings = self
            .printed_warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        printed_warnings
            .insert(sentence.0.clone())
            .then_some(sentence.0)
    }
}

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("neph")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let Some(sentence) = self.new_sentence(event) else {
            return;
        };
        if self.has_times {
            let now = Wall::from_unix_nanos(clock::wall().0);
            output::say(&format!("{} {sentence}", wall_time::utc(now)));
        } else {
            output::say(&sentence);
        }
    }

    // No crate of neph has spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The text of an event, after the name of its source.
struct Sentence(String);

impl Visit for Sentence {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.push_str(&format!("{value:?}"));
        }
    }
}
