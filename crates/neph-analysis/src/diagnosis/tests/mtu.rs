//! Full packets that never come through are a cause of their own, and a dead server is none.

use neph_model::{Outcome, ProbeKind};

use super::world::World;
use crate::diagnosis::{Level, diagnose};
use crate::{CampaignData, PlotSettings};

/// A world of which no message of this size or more is replied to, nor acknowledged.
fn without_replies_from(world: &World, size: u64) -> CampaignData {
    let mut data = world.campaign();
    for experiment in &mut data.experiments {
        if data.scenarios[experiment.scenario].request_size.bytes() < size {
            continue;
        }
        for exchange in &mut experiment.flows[0].exchanges {
            exchange.outcome = Outcome::Lost;
            (exchange.response, exchange.service, exchange.ack) = (None, None, None);
        }
    }
    data
}

fn black_holes(data: &CampaignData) -> Vec<(&'static str, Level)> {
    let causes = diagnose(data, &PlotSettings::default()).causes;
    let black_holes = causes
        .iter()
        .map(|diagnosis| (diagnosis.rule, diagnosis.confidence.level));
    black_holes
        .filter(|(rule, _)| *rule == "path-mtu-black-hole")
        .collect()
}

#[test]
fn lost_large_messages_and_received_small_ones_are_a_path_mtu_black_hole() {
    for probe in [ProbeKind::Ws, ProbeKind::Udp] {
        let world = World {
            probe,
            sizes: vec![200, 1_400],
            reply_bytes: 200,
            ..World::default()
        };
        let diagnoses = black_holes(&without_replies_from(&world, 1_400));
        assert_eq!(diagnoses.len(), 1, "{probe}");
        assert!(diagnoses[0].1 >= Level::Likely);
        assert_eq!(black_holes(&world.campaign()), [], "{probe}: all pass");
        assert_eq!(
            black_holes(&without_replies_from(&world, 100)),
            [],
            "{probe}: nothing passes"
        );
    }
}

#[test]
fn large_requests_alone_need_received_echoes_and_no_acknowledgement() {
    let world = World {
        sizes: vec![4_000],
        ..World::default()
    };
    assert_eq!(
        black_holes(&without_replies_from(&world, 4_000)),
        [("path-mtu-black-hole", Level::Likely)]
    );
    // A server application that hangs: its kernel acknowledges.
    let mut hung = without_replies_from(&world, 4_000);
    for exchange in &mut hung.experiments[0].flows[0].exchanges {
        exchange.ack = Some(neph_model::Span::from_millis(20));
    }
    assert_eq!(black_holes(&hung), []);
}
