use super::*;

#[test]
fn what_happened_once_is_told_in_the_singular() {
    let worst = Span::from_micros(80);
    let told = [
        Warning::ClockStepped { times: 1 },
        Warning::Reconnected { times: 2 },
        Warning::Reconnected { times: 3 },
        Warning::FewMessages { replies: 1 },
        Warning::FewMessages { replies: 0 },
        Warning::SizesNotApplied {
            request: ByteSize(64),
            response: ByteSize(1 << 20),
        },
        Warning::EchoMissing {
            names: vec!["metro".to_owned(), "dns".to_owned()],
            why: "not permitted".to_owned(),
        },
        Warning::MessagesRefused {
            messages: 40,
            per_second: 10,
        },
        Warning::ConnectionsRefused {
            connections: 1,
            at_a_time: 512,
        },
        Warning::ReflectorSlow {
            p99: Span::from_millis(4900),
            bound: Span::from_millis(100),
        },
        Warning::ReflectorDropped { packets: 1 },
        Warning::LinkLate { packets: 1, worst },
        Warning::LinkLate { packets: 2, worst },
        Warning::LinkBroke { packets: 1 },
    ];
    assert_eq!(
        told.map(|warning| warning.to_string()),
        [
            "the wall clock stepped once",
            "the connection was lost twice",
            "the connection was lost 3 times",
            "only 1 reply",
            "only 0 replies",
            "no reflector answers: requests of 64 B and replies of 1 MiB are not what was measured",
            "no ICMP echo to metro, dns: not permitted",
            "the reflector refused 40 messages in all from this address, beyond its cap of 10 a second from one address",
            "the reflector refused 1 connection in all from this address, beyond its cap of 512 at a time from one address, or of all",
            "the reflector was slow: requests stayed there for 4.900 s (p99), allowed 100.00 ms",
            "the reflector's host dropped 1 request unread, of all that it was sent",
            "the lab's link sent 1 packet late, by 80.0 us",
            "the lab's link sent 2 packets late, the worst by 80.0 us",
            "the lab's link lost 1 packet that it should have carried",
        ]
    );
}

#[test]
fn a_load_that_was_not_held_is_told_with_what_it_did() {
    let warning = |why: Option<&str>| Warning::LoadNotHeld {
        load: "vm2 80%".to_owned(),
        had: "worked 60.0 % of the time".to_owned(),
        had_percent: Some(75.0),
        why: why.map(str::to_owned),
    };
    let fact = "the load vm2 80% was not held (it worked 60.0 % of the time)";
    assert_eq!(warning(None).to_string(), fact);
    let with_why = warning(Some("too few, here"));
    assert_eq!(with_why.to_string(), format!("{fact}: too few, here"));
    assert_eq!(with_why.without_why(), fact);
    assert!((with_why.magnitude() - 25.0).abs() < 1e-9);
}
