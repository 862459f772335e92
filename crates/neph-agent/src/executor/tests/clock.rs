//! The timestamps of a reflector that runs on this host.

use neph_model::Message;

use super::*;

/// Kernel timestamps are in disorder by less than this.
const ERROR: Span = Span::from_micros(100);

#[test]
fn timestamps_of_a_reflector_on_this_host_count_from_the_same_start() {
    let reflector = reflector();
    let mut order = order(&format!("ws://{}/", reflector.address()));
    order.scenario.messages = 20;
    let ran = run(&order);
    let prepared = ran.prepared[0].as_ref().expect("a reflector is there");
    assert!(prepared.flows[0].same_clock);
    let started = prepared.started.unix_nanos();
    let messages: &[Message] = &ran.records[0].messages;
    assert_eq!(messages.len(), 20);
    for message in messages {
        let marks = &message.marks;
        let sent = marks.nic_tx.or(marks.app_send).expect("sent").nanos();
        let read = marks.peer.app_rx.expect("a reflector reports it").nanos();
        let answered = marks.peer.app_tx.expect("a reflector reports it").nanos();
        let returned = marks.app_recv.expect("answered").nanos();
        assert!(
            sent < read + ERROR.nanos() && answered < returned,
            "{marks:?}"
        );
        let wall = answered + message.peer_wall_offset.expect("a reflector reports it");
        let apart = wall - (started + answered);
        assert!(apart.abs() < Span::from_millis(10).nanos(), "{apart} ns");
    }
}
