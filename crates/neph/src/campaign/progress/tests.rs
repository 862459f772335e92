//! Lines of the progress, and its warnings.

use super::*;

#[test]
fn several_pairs_report_their_lowest_and_highest_median() {
    let figures = |median, lost| RunningFigures {
        tally: neph_model::Tally {
            lost,
            ..neph_model::Tally::default()
        },
        median: Some(Span::from_millis(median)),
        ..RunningFigures::default()
    };
    let line = figures_line_of_all(&[figures(120, 2), figures(35, 1)]);
    assert_eq!(line, "medians 35.00 ms to 120.00 ms, 3 without a reply");
    assert_eq!(
        figures_line_of_all(&[RunningFigures::default(); 2]),
        "no reply"
    );
}

#[test]
fn a_route_with_silent_last_hops_has_a_maximum_length() {
    let hop = |ttl, answers| neph_model::Hop {
        ttl,
        addresses: vec![[10, 0, 0, 1].into(); answers],
        round_trips: Vec::new(),
    };
    let mut route = Traceroute {
        block: 0,
        endpoint: "udp".to_owned(),
        site: Some("client".to_owned()),
        destination: [10, 0, 0, 1].into(),
        started: neph_model::Wall::from_unix_nanos(0),
        hops: vec![hop(1, 1), hop(2, 0), hop(3, 1)],
        reached: true,
        failure: None,
    };
    let uncertain_text = "traceroute from client to udp: at most 3 hops";
    assert_eq!(route_line(&route), uncertain_text);
    route.hops[1] = hop(2, 1);
    assert_eq!(route_line(&route), "traceroute from client to udp: 3 hops");
    route.reached = false;
    let unreached_text = "traceroute from client to udp: 3 hops, not reached";
    assert_eq!(route_line(&route), unreached_text);
}

#[test]
fn the_reason_for_missing_echoes_is_printed_once() {
    let mut progress = ProgressReporter::new(true, AlarmReporter::new(None));
    let missing = |name: &str, reason: &str| Warning::EchoMissing {
        names: vec![name.to_owned()],
        reason: reason.to_owned(),
    };
    let (forbidden, unknown) = (missing("home", "forbidden"), missing("b", "unknown host"));
    assert_eq!(
        progress.warning_text(&forbidden),
        "  ! W014 echo-missing: no ICMP echo to home: forbidden"
    );
    let repeated = missing("metro", "forbidden");
    assert_eq!(
        progress.warning_text(&repeated),
        "  ! W014 echo-missing: no ICMP echo, as before"
    );
    assert_eq!(
        progress.warning_text(&unknown),
        "  ! W014 echo-missing: no ICMP echo to b: unknown host"
    );
    let other = Warning::FewMessages { replies: 1 };
    for _ in 0..2 {
        assert_eq!(
            progress.warning_text(&other),
            "  ! W011 few-messages: only 1 reply"
        );
    }
}
