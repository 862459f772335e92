pub(crate) mod pair;

use std::net::UdpSocket;
use std::time::Duration;

use crate::process;
use pair::in_namespace;

use super::*;
use crate::ppoll::{Awaited, wait};

fn with_loopback(test: &str, work: impl FnOnce() + Send) {
    let name = format!("nephring-{}", std::process::id());
    in_namespace(test, &name, || {
        let up = process::command("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.expect("the ip program").success());
        work();
    });
}

#[test]
fn frames_arrive_in_order_with_timestamps_and_slots_are_reused() {
    with_loopback(
        "frames_arrive_in_order_with_timestamps_and_slots_are_reused",
        || {
            let mut ring = PacketRing::open("lo", 1, RingMode::Wire).expect("ring");
            let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
            let target = socket.local_addr().expect("address");
            // More than the 512 slots of the ring, so that each is used again.
            let mut last = 0;
            for number in 0_u16..1300 {
                socket.send_to(&number.to_be_bytes(), target).expect("send");
                let mut awaited = [Awaited::readable(ring.as_fd())];
                wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
                let frame = ring.next_frame().expect("a frame waits");
                assert_eq!(frame.bytes()[42..44], number.to_be_bytes());
                assert_eq!(frame.wire_length(), 44);
                assert!(!frame.is_cut() && frame.stamp() > last);
                last = frame.stamp();
            }
            assert!(ring.next_frame().is_none());
            assert_eq!(
                ring.counts().expect("counts"),
                RingCounts {
                    packets: 1300,
                    dropped: 0
                }
            );
        },
    );
}

#[test]
fn a_missing_interface_is_reported_by_name() {
    let error = PacketRing::open("no-such-if0", 1, RingMode::Tap).expect_err("it does not exist");
    assert!(error.to_string().contains("no-such-if0"), "{error}");
}
