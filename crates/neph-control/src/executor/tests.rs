//! Tests orders over a bus that loses and duplicates messages, with processes that are killed.

pub(super) mod agent;
mod campaign;
mod cancelled;
mod contract;
mod fake;
mod nats_server;
mod over_nats;
mod over_tls;
mod running;
mod wire;
mod world;

use std::collections::BTreeMap;

use world::ControllerWorld;

/// Number of runs, each with another seed.
const SEEDS: u64 = 300;

#[test]
fn each_result_is_stored_once_despite_loss_duplicates_and_kills() {
    let mut killed = BTreeMap::new();
    for seed in 1..=SEEDS {
        let mut world = ControllerWorld::new(seed);
        world.live(400);
        world.settle();
        world.check();
        for (event, count) in world.happened {
            *killed.entry(event).or_insert(0) += count;
        }
    }
    for event in [
        "agent killed",
        "controller killed",
        "power lost",
        "lost",
        "doubled",
        "cut off",
    ] {
        assert!(
            killed.get(event).is_some_and(|count| *count > SEEDS / 4),
            "{event}: {killed:?}"
        );
    }
}

#[test]
fn a_hostile_agent_cannot_alter_the_results_of_others() {
    let mut world = ControllerWorld::new(7);
    world.live(40);
    world.send_forged_messages();
    world.settle();
    world.check();
    assert!(world.controller().rejected() >= 6);
}
