//! Unreadable messages.

use std::collections::VecDeque;

use neph_model::Stop;

use super::hostile::{POLICY, UnusedExecutor};
use super::*;
use crate::remote::{FromAgent, Link, LinkLost, Worker, serve};

/// Brings these, one after the other, and then nothing.
#[derive(Debug)]
struct Script(VecDeque<Result<Option<ToAgent>, LinkLost>>);

impl Link for Script {
    fn send(&mut self, _: FromAgent) -> Result<(), LinkLost> {
        Ok(())
    }
    fn receive(&mut self, _: Span) -> Result<Option<ToAgent>, LinkLost> {
        self.0
            .pop_front()
            .unwrap_or_else(|| Err(LinkLost::new("over")))
    }
}

#[test]
fn an_unreadable_message_ends_the_connection_and_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let control = open_admission(folder.path(), &key, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", control).expect("writable");
    for times in 1..=3 {
        let mut link = Script([Err(LinkLost::unreadable("too long"))].into());
        serve(&mut worker, &mut link, &Stop::new()).expect_err("it is over");
        assert_eq!(worker.refusals()["unreadable"], times);
    }
}
