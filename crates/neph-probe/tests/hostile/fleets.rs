//! A hostile peer of a fleet: what does not repeat the request is no reply, and times at the peer that cannot
//! be true are left out; both are counted.

use neph_model::{FleetMessage, Span};

use super::{ECHOED, Lie, SECOND, Server};
use crate::fleet::{Reported, fleet, measure};

/// Where an open reply repeats the identifier of the session.
const SSID: std::ops::Range<usize> = 14..16;

/// Measures four flows of five messages each against a reflector whose times `lie` changes and whose reply
/// bytes `spoil` changes.
fn measured(lie: Lie, spoil: fn(&mut [u8])) -> Reported {
    let server = Server::begin(lie, spoil);
    let mut spec = fleet(server.address, 4, 5);
    spec.request_size = 200;
    let result = measure(spec);
    server.end();
    result
}

fn stays(result: &Reported) -> Vec<Span> {
    let replies = result.messages.iter().filter_map(FleetMessage::reply);
    let peer_report = replies.filter_map(|reply| reply.peer_report);
    peer_report.map(|peer| peer.residence).collect()
}

#[test]
fn honest_replies_of_a_fleet_are_believed_also_those_of_a_reflector_without_sessions() {
    let result = measured(|_, _| {}, |_| {});
    assert_eq!(
        (result.tally.replies, result.tally.implausible_replies),
        (20, 0)
    );
    assert_eq!(stays(&result), [Span::ZERO; 20]);
    let result = measured(|_, _| {}, |reply| reply[SSID].fill(0));
    assert_eq!(result.tally.replies, 20, "RFC 8762 alone has no identifier");
}

#[test]
fn times_at_the_peer_that_cannot_be_are_left_out_of_a_fleet_and_counted() {
    let lies: [Lie; 3] = [
        |_, fields| fields.timestamps.app_tx = Some(3_600 * SECOND),
        |_, fields| fields.timestamps.app_tx = Some(-1),
        |_, fields| {
            (fields.timestamps.rx, fields.timestamps.app_tx) = (Some(i64::MIN), Some(i64::MAX));
        },
    ];
    for lie in lies {
        let result = measured(lie, |_| {});
        assert_eq!(
            (result.tally.replies, result.tally.implausible_replies),
            (20, 20)
        );
        assert!(stays(&result).is_empty());
    }
}

#[test]
fn a_fleet_ignores_replies_that_do_not_echo_the_request() {
    let spoilt: [fn(&mut [u8]); 4] = [
        |reply| reply[ECHOED].fill(0),
        |reply| reply[ECHOED.start + 6] ^= 1,
        |reply| reply[ECHOED.end - 1] ^= 1,
        |reply| reply[SSID.start] ^= 1,
    ];
    for spoil in spoilt {
        let result = measured(|_, _| {}, spoil);
        assert_eq!((result.tally.replies, result.tally.lost), (0, 20));
    }
}
