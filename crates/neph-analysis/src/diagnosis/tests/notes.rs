//! Notes: what is reported in addition to root causes, and rules that could not be evaluated.

use neph_model::{BitRate, Outcome, ProbeKind, Span, Throughput, ThroughputSecond, Wall};

use super::world::World;
use super::{causes, number, only_cause, rules_of};
use crate::PlotSettings;
use crate::diagnosis::{Diagnoses, Diagnosis, diagnose};

fn diagnoses_of(world: &World) -> Diagnoses {
    diagnose(&world.campaign(), &PlotSettings::default())
}

#[test]
fn client_delays_are_a_note_and_a_root_cause_if_they_move_a_quantile() {
    for seed in 0..8 {
        let few = World {
            seed,
            client_delay_ms: 8.0,
            client_delay_share: 0.05,
            blocks: 1,
            ..World::default()
        };
        let diagnoses = diagnoses_of(&few);
        assert!(diagnoses.causes.is_empty(), "{:#?}", diagnoses.causes);
        let [note] = diagnoses.notes.as_slice() else {
            panic!("{:#?}", diagnoses.notes);
        };
        assert_eq!(note.rule, "starved-client");
        assert!(
            note.text.contains("the client host delayed"),
            "{}",
            note.text
        );
        assert!(
            note.text
                .contains("also those below 1 ms, p90 would be 20."),
            "{}",
            note.text
        );
        let is_reported = note
            .text
            .contains("no root cause, because the difference is below");
        assert!(
            is_reported && !note.text.contains("change"),
            "{}",
            note.text
        );
        let more_delays = World {
            client_delay_share: 0.3,
            ..few
        };
        let diagnoses = only_cause(&more_delays, "starved-client");
        assert!(
            diagnoses.cause.contains("changed p90 from 20"),
            "{}",
            diagnoses.cause
        );
        assert!(diagnoses_of(&more_delays).notes.is_empty());
    }
}

#[test]
fn unsent_messages_count_as_slower_than_every_reply() {
    let world = World {
        client_delay_ms: 8.0,
        client_delay_share: 0.05,
        blocks: 1,
        ..World::default()
    };
    let has_p90 = |diagnoses: &Diagnoses| diagnoses.notes[0].text.contains("p90 would be");
    assert!(has_p90(&diagnoses_of(&world)));
    let mut campaign = world.campaign();
    for experiment in &mut campaign.experiments {
        // One message of eight: 87.5 % have a reply, so p90 is unknown.
        for exchange in experiment.flows[0].exchanges.iter_mut().step_by(8) {
            exchange.outcome = Outcome::Failed;
            (exchange.response, exchange.service) = (None, None);
        }
    }
    let diagnoses = diagnose(&campaign, &PlotSettings::default());
    assert!(!has_p90(&diagnoses), "{}", diagnoses.notes[0].text);
}

#[test]
fn an_idle_client_host_has_no_note() {
    assert!(diagnoses_of(&World::default()).notes.is_empty());
}

#[test]
fn replies_held_behind_a_lost_segment_are_no_client_delays() {
    for interval in [5, 20] {
        let world = World {
            round_trip_ms: 30.0,
            intervals_ms: vec![interval],
            reply_retransmission_share: 0.06,
            ..World::default()
        };
        let diagnoses = diagnoses_of(&world);
        assert!(diagnoses.notes.is_empty(), "{:#?}", diagnoses.notes);
        assert!(!rules_of(&world).contains(&"starved-client"));
    }
}

#[test]
fn rules_that_were_not_evaluated_report_what_they_need() {
    let world = World::default();
    let not_evaluated = |diagnoses: &Diagnoses| -> Vec<&str> {
        diagnoses
            .not_evaluated
            .iter()
            .map(|rule| rule.rule)
            .collect()
    };
    assert_eq!(not_evaluated(&diagnoses_of(&world)), ["serialisation"]);
    let two_sizes = World {
        sizes: vec![256, 1024],
        ..world
    };
    let diagnoses = diagnoses_of(&two_sizes);
    assert!(
        diagnoses.not_evaluated.is_empty(),
        "{:#?}",
        diagnoses.not_evaluated
    );
    let text = diagnoses.no_cause();
    assert_eq!(text, "No root cause found by the 15 rules.");
    let mut data = two_sizes.campaign();
    for experiment in &mut data.experiments {
        experiment.flows.truncate(1);
        experiment.experiment.anchors.clear();
        experiment.flows[0].exchanges.truncate(9);
    }
    let diagnoses = diagnose(&data, &PlotSettings::default());
    let rules = ["head-of-line", "icmp-differs", "l7-proxy", "clock-step"];
    assert_eq!(not_evaluated(&diagnoses), rules);
    let text = diagnoses.no_cause();
    assert!(
        text.contains("by the 11 rules that were evaluated"),
        "{text}"
    );
    let not_evaluated = diagnoses.not_evaluated_text().join("\n");
    assert!(
        not_evaluated.contains("ICMP treated differently: needs ICMP echoes")
            && not_evaluated.contains(
                "head-of-line blocking at the sender, L7 proxy in the path: needs 10 replies"
            ),
        "{not_evaluated}"
    );
}

#[test]
fn another_sites_throughput_does_not_explain_the_queue() {
    let world = World::with_queue();
    // The messages ask for 164 kbit/s.
    let check = |site: Option<&str>| Throughput {
        block: 0,
        endpoint: "metro".into(),
        site: site.map(str::to_owned),
        tool: "neph".into(),
        started: Wall::from_unix_nanos(0),
        seconds: Vec::new(),
        goodput: BitRate(150_000),
        failure: None,
    };
    for (site, expected) in [
        (None, "The messages fill it"),
        (
            Some("elsewhere"),
            "Other traffic fills it: each reply arrives",
        ),
    ] {
        let mut data = world.campaign();
        data.throughputs = vec![check(site)];
        let diagnoses = causes(&data, "bufferbloat");
        let queue = diagnoses.first().unwrap();
        assert!(queue.cause.contains(expected), "{}", queue.cause);
    }
}

#[test]
fn only_a_check_well_above_the_message_rate_shows_what_fills_a_link() {
    // The messages ask for 164 kbit/s.
    for (rate, expected) in [
        (150_000, "Other traffic fills it: each reply arrives"),
        (3_276_800, "at most 5.0 % of the link's"),
    ] {
        let goodput = BitRate(rate);
        let second = ThroughputSecond {
            goodput,
            retransmissions: 0,
            spurious_retransmissions: 0,
            cwnd_segments: None,
            srtt: Some(Span::from_micros(1)),
        };
        let mut data = World::with_queue().campaign();
        data.throughputs = vec![Throughput {
            block: 0,
            endpoint: "metro".into(),
            site: None,
            tool: "neph".into(),
            started: Wall::from_unix_nanos(0),
            seconds: vec![second],
            goodput,
            failure: None,
        }];
        let diagnoses = causes(&data, "bufferbloat");
        let queue = diagnoses.first().unwrap();
        assert!(queue.cause.contains(expected), "{}", queue.cause);
    }
}

#[test]
fn a_slow_link_before_a_proxy_is_reported_with_its_rate() {
    for (quick_acks, proxy_ms) in [(0.0, 3.0), (0.15, 3.0), (0.0, 20.0)] {
        let world = World {
            round_trip_ms: 35.0,
            rate_mbit: 4.0,
            proxy_ms,
            quick_acks,
            sizes: vec![512, 10_240, 51_200],
            intervals_ms: vec![500],
            ..World::default()
        };
        assert!(rules_of(&world).contains(&"serialisation"), "{world:?}");
        let diagnoses = causes(&world.campaign(), "serialisation");
        let link = diagnoses.first().unwrap();
        assert!((number(link, "rate") / 4.0 - 1.0).abs() < 0.1, "{link:#?}");
    }
}

#[test]
fn one_rule_reports_two_causes_at_the_same_place() {
    let slow_echo = World {
        icmp_ms: 6.0,
        ..World::default()
    };
    let mut data = slow_echo.campaign();
    for experiment in &mut data.experiments {
        for echo in experiment.flows[1].exchanges.iter_mut().step_by(3) {
            echo.outcome = Outcome::Lost;
        }
    }
    let diagnoses = causes(&data, "icmp-differs");
    assert_eq!(diagnoses.len(), 2);
    let has_loss = |diagnosis: &&Diagnosis| diagnosis.cause.contains("echoes are lost");
    let loss = diagnoses.iter().find(has_loss).unwrap();
    let percent = number(loss, "share of echoes lost");
    assert!((25.0..45.0).contains(&percent), "{loss:#?}");
    let sent = number(loss, "echoes sent");
    let lost_echoes = number(loss, "echoes lost");
    assert!(
        (100.0 * lost_echoes / sent - percent).abs() < 1e-6,
        "{loss:#?}"
    );
    let lossy = World {
        loss: 0.01,
        probe: ProbeKind::Udp,
        intervals_ms: vec![20],
        ..World::default()
    };
    let mut data = lossy.campaign();
    for experiment in &mut data.experiments {
        for datagram in experiment.flows[0].exchanges.iter_mut().step_by(30) {
            datagram.reordered = true;
        }
    }
    let diagnoses = causes(&data, "random-loss");
    assert_eq!(diagnoses.len(), 2);
    let has_order = |diagnosis: &&Diagnosis| diagnosis.cause.contains("reorders packets");
    let reordered = diagnoses.iter().find(has_order).unwrap();
    let percent = number(reordered, "share of replies reordered");
    assert!((2.5..5.0).contains(&percent), "{reordered:#?}");
}
