//! The network stage equals the link's delay, and does not contain the server processing time.

use neph_model::{ClockOffset, Ledger, Message, Span, Stage};

use crate::setup::{TwoSites, is_privileged, measure, median};
use crate::undisturbed::measure_undisturbed;

/// The bound: the median network stage within this of what the link really did, on a
/// machine whose stamps cost nothing and that is punctual. What they cost on this one is measured
/// without a link, and how late it is by the link's own record.
const MAX_ERROR: i64 = 20_000;

/// A hundredth of the shortest waiting: a calm machine keeps 50 us, one whose cores are woken by
/// its hypervisor 100.
const MAX_SHIFT: i64 = 200_000;

/// One-way delays of the answered messages, forward and reverse.
fn directions(messages: &[Message]) -> [Vec<i64>; 2] {
    let directions = messages
        .iter()
        .filter_map(|message| Ledger::directions(&message.marks, ClockOffset::SAME_CLOCK));
    let delays: Vec<[i64; 2]> = directions
        .map(|(forward, reverse)| [forward.delay.nanos(), reverse.delay.nanos()])
        .collect();
    [0, 1].map(|direction| delays.iter().map(|pair| pair[direction]).collect())
}

/// TCP's own estimates, which come with the stamps of what is sent: no less than the link's two delays,
/// and the smoothed one no less than the least.
fn assert_tcp_estimates_match_the_link(messages: &[Message], round_trip_micros: i64) {
    let states = messages.iter().filter_map(|message| message.tcp_at_ack);
    for tcp in states {
        let (min_rtt, smoothed) = (i64::from(tcp.min_rtt_us), i64::from(tcp.srtt_us));
        assert!(
            min_rtt >= round_trip_micros - 1 && smoothed >= min_rtt - 1,
            "{smoothed} us, least {min_rtt}, of {round_trip_micros}"
        );
    }
}

#[test]
fn the_network_stage_equals_the_link_delay_from_100_us_to_100_ms() {
    if !is_privileged("the_network_stage_equals_the_link_delay_from_100_us_to_100_ms") {
        return;
    }
    let (mut rows, mut late) = (Vec::new(), 0);
    println!("delay      probe  direction  link did      neph says     apart");
    for (delay, micros) in [
        ("100us", 100),
        ("1ms", 1_000),
        ("5ms", 5_000),
        ("20ms", 20_000),
        ("100ms", 100_000),
    ] {
        for scheme in ["ws", "udp"] {
            let lab = TwoSites::up(
                &format!("truth_{scheme}{micros}"),
                &format!("delay = \"{delay}\""),
            );
            let reflector = lab.reflector(Span::ZERO);
            let messages = measure(lab.flow(scheme, Span::from_millis(20), 60));
            let local_flow = lab.flow_without_link(scheme, Span::from_millis(20), 30);
            let local_delays = directions(&measure(local_flow));
            drop(reflector);
            for message in &messages {
                let ledger = message.ledger().expect("nothing is lost on this link");
                let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
                assert_eq!(sum, ledger.response_time(), "message {}", message.seq);
            }
            assert_tcp_estimates_match_the_link(&messages, 2 * micros);
            let [forward, reverse] = directions(&messages);
            assert!(
                forward.len() >= 55,
                "{} of 60 messages are complete",
                forward.len()
            );
            let [link_forward, link_reverse] = lab.delays(100);
            let [local_forward, local_reverse] = local_delays.map(median);
            let pair = [
                ("there", link_forward, forward, local_forward),
                ("back", link_reverse, reverse, local_reverse),
            ];
            for (name, link, measured, local) in pair {
                let (link, measured) = (median(link), median(measured));
                let difference = measured - link;
                println!(
                    "{delay:>6} {scheme:>9} {name:>10} {link:>11} {measured:>13} {difference:>9} ({local})"
                );
                late = late.max(link - micros * 1_000);
                let row = format!("{delay} {scheme} {name}");
                rows.push((row, difference.abs() - 2 * local));
            }
        }
    }
    // What makes the link itself late on this machine befalls each of the two crossings as well.
    let bound = MAX_ERROR + 2 * late;
    for (row, difference) in rows {
        assert!(
            difference < bound,
            "{row}: {difference} ns apart beyond two crossings, allowed {bound}"
        );
    }
}

#[test]
fn server_waiting_time_changes_only_the_server_stage() {
    if !is_privileged("server_waiting_time_changes_only_the_server_stage") {
        return;
    }
    let mut network = Vec::new();
    for processing_ms in [0, 20, 60] {
        let (messages, link_delay) = measure_undisturbed(|| {
            let lab = TwoSites::up(&format!("think{processing_ms}"), "delay = \"5ms\"");
            let reflector = lab.reflector(Span::from_millis(processing_ms));
            let messages = measure(lab.flow("ws", Span::from_millis(100), 30));
            drop(reflector);
            // The link itself is not equally late in every lab of a machine: its record says so.
            (messages, lab.delays(100).map(median).iter().sum::<i64>())
        });
        let median_of = |stage: Stage| {
            median(
                messages
                    .iter()
                    .filter_map(|m| m.ledger()?.stage(stage))
                    .map(Span::nanos)
                    .collect(),
            )
        };
        let (server_time, network_time) = (median_of(Stage::PeerApp), median_of(Stage::Network));
        println!(
            "think {processing_ms} ms: peer application {server_time} ns, network {network_time} ns"
        );
        assert!(
            (server_time - processing_ms * 1_000_000).abs() < 500_000,
            "{server_time}"
        );
        network.push(network_time - link_delay);
    }
    for shift in &network[1..] {
        assert!(
            (shift - network[0]).abs() < MAX_SHIFT,
            "the network moved: {network:?}"
        );
    }
}

#[test]
fn application_tcp_and_icmp_stand_in_the_expected_order() {
    if !is_privileged("application_tcp_and_icmp_stand_in_the_expected_order") {
        return;
    }
    let lab = TwoSites::up("order", "delay = \"2ms\"");
    let reflector = lab.reflector(Span::ZERO);
    let app = measure(lab.flow("ws", Span::from_millis(20), 60));
    let icmp = measure(lab.flow("icmp", Span::from_millis(20), 60));
    drop(reflector);
    let response = median(
        app.iter()
            .filter_map(|m| Some(m.ledger()?.response_time().nanos()))
            .collect(),
    );
    let tcp = median(
        app.iter()
            .filter_map(|m| Some(m.marks.tcp_round_trip()?.nanos()))
            .collect(),
    );
    let echo = median(
        icmp.iter()
            .filter_map(|m| Some(m.marks.network_and_peer_round_trip()?.nanos()))
            .collect(),
    );
    println!("application {response}, TCP {tcp}, ICMP {echo} ns");
    assert!(response > tcp && tcp + 10_000 > echo && echo > 4_000_000);
}
