//! `neph watch`: questions and answers outside of TCP.

use std::net::UdpSocket;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::watches::{Watch, lines, lines_of_kind, with_loopback};

/// Three questions to a name server of ours, each answered.
pub(crate) fn ask_names() {
    let (client, server) = (bind_udp("127.0.0.1:0"), bind_udp("127.0.0.1:53"));
    let mut buffer = [0; 64];
    for number in 0..3 {
        for (from, to, flags) in [(&client, &server, 1), (&server, &client, 0x81)] {
            let address = to.local_addr().expect("address");
            let sent = from.send_to(&[0, number, flags, 0], address);
            assert_eq!(sent.expect("send"), 4);
            assert_eq!(to.recv(&mut buffer).expect("receive"), 4);
        }
    }
}

fn bind_udp(address: &str) -> UdpSocket {
    UdpSocket::bind(address).expect("bind")
}

#[test]
fn requests_outside_of_tcp_are_reported_per_period() {
    with_loopback("asked", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--format", "ndjson", "--every", "50ms"]);
        let text = Watch::begin(&folder, &["--every", "50ms"]);
        ask_names();
        let (ran, text) = (watch.interrupt(), text.interrupt());
        let lines = lines(&ran.out);
        let periods = lines_of_kind(&lines, "exchange_period");
        let count = |of: &Value| of["n"].as_u64().unwrap_or(0);
        let sum_of = |of: &dyn Fn(&Value) -> u64| periods.iter().map(|line| of(line)).sum::<u64>();
        assert_eq!(sum_of(&|line| count(&line["round_trips"]["server"])), 3);
        assert_eq!(
            sum_of(&|line| line["requests"].as_u64().expect("a count")),
            3
        );
        assert!(periods.iter().all(|line| line["server"] == "127.0.0.1:53"));
        let of_kinds = lines_of_kind(&lines, "period");
        let entries = of_kinds.iter().map(|line| &line["exchanges"]["dns"]);
        let round_trips: u64 = entries
            .map(|dns| count(&dns["round_trips"]["server"]))
            .sum();
        assert_eq!(round_trips, 3);
        let of_all = lines_of_kind(&lines, "exchange");
        assert_eq!(of_all[0]["answered"], 3, "{}", ran.out);
        let shown = text.out.lines().filter(|line| line.starts_with("dns"));
        assert!(
            shown.count() >= 2,
            "in a period and at the end: {}",
            text.out
        );
    });
}
