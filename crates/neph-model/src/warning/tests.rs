use super::*;

#[test]
fn each_warning_starts_with_its_code_and_contains_its_values() {
    let worst = Span::from_micros(80);
    let warnings = [
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
            reason: "not permitted".to_owned(),
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
        Warning::LinkLostPackets { packets: 1 },
    ];
    assert_eq!(
        warnings.map(|warning| warning.to_string()),
        [
            "W004 clock-stepped: the wall clock stepped 1 time",
            "W006 reconnected: the connection was lost 2 times",
            "W006 reconnected: the connection was lost 3 times",
            "W011 few-messages: only 1 reply",
            "W011 few-messages: only 0 replies",
            "W013 sizes-not-applied: no reflector answers, so the sizes of the plan were not applied (request 64 B, reply 1 MiB)",
            "W014 echo-missing: no ICMP echo to metro, dns: not permitted",
            "W016 messages-refused: the reflector refused 40 messages from this address (limit 10 per second)",
            "W017 connections-refused: the reflector refused 1 connection from this address (limit 512 at the same time, or the limit for all addresses)",
            "W018 reflector-slow: requests stayed at the reflector for 4.900 s at p99 (limit 100.00 ms)",
            "W019 requests-dropped: the reflector's host dropped 1 request of all clients",
            "W012 late-link: an emulated link delivered 1 packet too late (by up to 80.0 us)",
            "W012 late-link: an emulated link delivered 2 packets too late (by up to 80.0 us)",
            "W022 lossy-link: emulated links lost 1 packet beyond their configured loss",
        ]
    );
}

#[test]
fn a_load_that_missed_its_target_is_reported_with_what_it_achieved() {
    let warning = |why: Option<&str>| Warning::LoadTargetMissed {
        load: "vm2 80%".to_owned(),
        achieved: "worked 60.0 % of the time".to_owned(),
        achieved_percent: Some(75.0),
        reason: why.map(str::to_owned),
    };
    let fact = "W021 load-missed-target: background load vm2 80% missed its target (it worked 60.0 % of the time)";
    assert_eq!(warning(None).to_string(), fact);
    let with_why = warning(Some("too few, here"));
    assert_eq!(with_why.to_string(), format!("{fact}: too few, here"));
    assert_eq!(with_why.without_why(), fact);
    assert!((with_why.magnitude() - 25.0).abs() < 1e-9);
}

#[test]
fn old_warning_names_are_accepted() {
    let read = |text: &str| serde_json::from_str::<Warning>(text).expect("a warning");
    assert_eq!(
        read(r#"{"warning":"stamps_missing","percent":2.0}"#),
        Warning::TimestampsMissing { percent: 2.0 }
    );
    assert_eq!(
        read(
            r#"{"warning":"load_not_held","load":"cpu","had":"worked","had_percent":50.0,"why":null}"#
        ),
        Warning::LoadTargetMissed {
            load: "cpu".to_owned(),
            achieved: "worked".to_owned(),
            achieved_percent: Some(50.0),
            reason: None,
        }
    );
    assert_eq!(
        read(r#"{"warning":"guests_stood_in","guests":["a"],"why":"no /dev/kvm"}"#),
        Warning::NamespaceFallback {
            guests: vec!["a".to_owned()],
            reason: "no /dev/kvm".to_owned(),
        }
    );
    assert_eq!(
        read(r#"{"warning":"link_broke","packets":1}"#),
        Warning::LinkLostPackets { packets: 1 }
    );
    assert_eq!(
        read(r#"{"warning":"several_backends","machines":2,"apart":5}"#),
        Warning::SeveralBackends {
            machines: 2,
            clock_difference: Span::from_nanos(5),
        }
    );
}
