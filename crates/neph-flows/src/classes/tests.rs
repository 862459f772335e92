//! Latency classes of a network whose paths lie nearer to each other than the tolerance.

use neph_model::Span;

use crate::world::World;

fn near(base: Span, micros: i64) -> bool {
    (base - Span::from_micros(micros)).abs() < Span::from_micros(100)
}

/// Three paths of which each is nearer to the next than the tolerance: by single linkage one class,
/// 0.95 ms wide, with no inflation.
#[test]
fn a_chain_of_similar_paths_has_one_class_per_path() {
    for (slots, jitter) in [(24, 30.0), (64, 30.0), (64, 300.0), (512, 300.0)] {
        let world = World {
            paths: vec![70_000, 70_475, 70_950],
            weights: vec![0.3, 0.4, 0.3],
            reshuffle_seconds: 0,
            slots,
            jitter,
            ..World::default()
        };
        let (digest, truth) = world.digest();
        let view = digest.view();
        let classes = &view.classes[0];
        assert_eq!(classes.len(), 3, "{slots} flows, {jitter}: {classes:?}");
        for (index, class) in classes.iter().enumerate() {
            let true_flows = truth.iter().filter(|steps| steps[0].1 == index).count();
            assert_eq!(class.flows as usize, true_flows, "{class:?}");
            assert!(near(class.base, world.paths[index]), "{class:?}");
        }
        let inflation = view.pairs[0].inflation.unwrap().ratio;
        assert!((inflation - 70.95 / 70.0).abs() < 0.001, "{inflation}");
    }
}

#[test]
fn a_chain_of_paths_with_flow_changes_has_one_class_per_path() {
    for jitter in [30.0, 300.0] {
        let world = World {
            paths: vec![70_000, 70_475, 70_950, 80_000],
            reshuffled_share: 0.3,
            slots: 256,
            jitter,
            ..World::default()
        };
        let (digest, _) = world.digest();
        let view = digest.view();
        let classes = &view.classes[0];
        assert_eq!(classes.len(), 4, "{jitter}: {classes:?}");
    }
}
