//! What is reported beside the messages: provenance, throughput checks, routes.

use std::collections::BTreeMap;

use neph_model::{
    BitRate, ExperimentId, Hop, HostFacts, Load, Provenance, Span, Throughput, ThroughputSecond,
    Traceroute, Wall,
};

use super::{START, Shape};

pub(super) fn provenance(experiment: ExperimentId) -> Provenance {
    Provenance {
        experiment,
        version: "0.1.0".into(),
        commit: "aecbb04".into(),
        plan_hash: "9f".repeat(32),
        site: Some("client".into()),
        host: HostFacts {
            host: "bench".into(),
            kernel: "6.18.0".into(),
            cpu: "Example CPU".into(),
            cores: 2,
            clock_source: "tsc".into(),
            clock_sync: "synchronised, error 120 us".into(),
            offloads: BTreeMap::from([("veth0.tso".into(), "on".into())]),
            sysctls: BTreeMap::from([("net.ipv4.tcp_slow_start_after_idle".into(), "1".into())]),
            congestion_control: Some("cubic".into()),
        },
        load: Some(Load {
            busy_percent: 31.0,
            steal_percent: 0.4,
            load_average: 0.7,
        }),
        lateness_p50: Some(Span::from_micros(4)),
        lateness_p99: Some(Span::from_micros(21)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]
pub(super) fn throughputs(shape: &Shape) -> Vec<Throughput> {
    let mut throughputs = Vec::new();
    for block in 0..shape.blocks {
        for link in &shape.links {
            let rate = BitRate((link.up_mbit * 940_000.0) as u64);
            let second = ThroughputSecond {
                goodput: rate,
                retransmissions: 3,
                spurious_retransmissions: 1,
                cwnd_segments: Some(88),
                srtt: Some(Span::from_millis(41)),
            };
            throughputs.push(Throughput {
                block,
                endpoint: link.name.into(),
                site: Some("client".into()),
                tool: "neph".into(),
                started: Wall::from_unix_nanos(START),
                seconds: vec![second; 5],
                goodput: rate,
                failure: None,
            });
        }
    }
    throughputs
}

pub(super) fn routes(shape: &Shape) -> Vec<Traceroute> {
    shape
        .links
        .iter()
        .map(|link| Traceroute {
            block: 0,
            endpoint: link.name.into(),
            site: Some("client".into()),
            destination: "192.0.2.7".parse().unwrap(),
            started: Wall::from_unix_nanos(START),
            hops: vec![
                Hop {
                    ttl: 1,
                    addresses: vec!["10.0.0.1".parse().unwrap()],
                    round_trips: vec![Span::from_micros(300)],
                },
                Hop {
                    ttl: 2,
                    addresses: Vec::new(),
                    round_trips: Vec::new(),
                },
                Hop {
                    ttl: 3,
                    addresses: vec!["192.0.2.7".parse().unwrap()],
                    round_trips: vec![Span::from_micros(4100), Span::from_micros(4200)],
                },
            ],
            reached: true,
            failure: None,
        })
        .collect()
}
