use std::collections::BTreeMap;

use neph_text::Source;
use proptest::prelude::*;

use super::*;
use crate::expand::scenarios;
use crate::plan::parse;

fn plan(blocks: u32, sizes: u32, tries: u32) -> Plan {
    let sizes: Vec<String> = (1..=sizes).map(|size| (100 * size).to_string()).collect();
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 1\nblocks = {blocks}\n\
         tries = {tries}\nrequest_size = [{}]\n[[endpoint]]\nname = \"a\"\nurl = \"ws://a\"\n",
        sizes.join(",")
    );
    parse(&Source::new("p.toml", text)).expect("no mistakes")
}

/// A store's content and the process that fills it.
struct SimulatedStore {
    plan: Plan,
    matrix: Vec<Scenario>,
    history: Vec<EndedExperiment>,
    agenda: Agenda,
}

impl SimulatedStore {
    fn new(plan: Plan) -> Self {
        let matrix = scenarios(&plan);
        let agenda = Agenda::new(&plan, &matrix, BlockOrder::Random, 7);
        Self {
            plan,
            matrix,
            history: Vec::new(),
            agenda,
        }
    }
    /// What a kill and a resume do: only the history survives.
    fn restart(&mut self) {
        self.agenda = Agenda::new(&self.plan, &self.matrix, BlockOrder::Random, 7);
        for ended in &self.history {
            self.agenda.record_end(*ended);
        }
        self.agenda.allow_retry();
    }
    fn run(&mut self, status: ExperimentStatus) -> Option<AgendaSlot> {
        let slot = self.agenda.next()?;
        let scenario = self.matrix[slot.scenario as usize].id;
        let ended = EndedExperiment {
            block: slot.block,
            scenario,
            status,
            is_permanent: false,
        };
        self.history.push(ended);
        self.agenda.record_end(ended);
        Some(slot)
    }
}

#[test]
fn scenarios_run_block_by_block_in_block_order() {
    let mut simulation = SimulatedStore::new(plan(3, 4, 3));
    let slots: Vec<AgendaSlot> =
        std::iter::from_fn(|| simulation.run(ExperimentStatus::Complete)).collect();
    let blocks: Vec<u32> = slots.iter().map(|slot| slot.block).collect();
    assert_eq!(blocks, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let order: Vec<u32> = slots[4..8].iter().map(|slot| slot.scenario).collect();
    assert_eq!(order, order_of_block(BlockOrder::Random, 7, 1, 4));
    assert!(
        slots
            .iter()
            .all(|slot| slot.attempt == 0 && slot.is_first_of_block == (slot.position == 0))
    );
    assert_eq!(
        simulation.agenda.progress(),
        CampaignProgress {
            total: 12,
            complete: 12,
            ..CampaignProgress::default()
        }
    );
}

#[test]
fn failed_experiments_are_retried_between_blocks_fewest_completed_first() {
    use ExperimentStatus::{Complete, Failed};
    let mut simulation = SimulatedStore::new(plan(3, 2, 3));
    let failing_scenario = simulation.run(Failed).expect("a slot").scenario;
    simulation.run(Complete);
    // Between block 0 and block 1: again, and again it fails; then block 1, where it fails too.
    let retry = simulation.run(Failed).expect("a slot");
    assert_eq!(
        (retry.block, retry.scenario, retry.attempt, retry.position),
        (0, failing_scenario, 1, 2)
    );
    for _ in 0..2 {
        let slot = simulation.agenda.next().expect("a slot");
        assert_eq!(slot.block, 1);
        simulation.run(if slot.scenario == failing_scenario {
            Failed
        } else {
            Complete
        });
    }
    // Now both blocks wait for it: the one that was tried less often comes first.
    assert_eq!(
        simulation
            .run(Complete)
            .map(|slot| (slot.block, slot.scenario)),
        Some((1, failing_scenario))
    );
    assert_eq!(
        simulation
            .run(Failed)
            .map(|slot| (slot.block, slot.scenario)),
        Some((0, failing_scenario))
    );
    // Block 0 has failed three times and is given up.
    assert_eq!(simulation.run(Complete).map(|slot| slot.block), Some(2));
    assert_eq!(simulation.run(Complete).map(|slot| slot.block), Some(2));
    assert_eq!(simulation.agenda.next(), None);
    let expected = CampaignProgress {
        total: 6,
        complete: 5,
        given_up: 1,
        open: 0,
    };
    assert_eq!(simulation.agenda.progress(), expected);
}

#[test]
fn repeated_experiments_keep_the_random_order_of_their_block() {
    let mut simulation = SimulatedStore::new(plan(2, 6, 1));
    while simulation.run(ExperimentStatus::Failed).is_some() {}
    simulation.restart();
    let repeated: Vec<AgendaSlot> =
        std::iter::from_fn(|| simulation.run(ExperimentStatus::Complete)).collect();
    for (block, slots) in (0..).zip(repeated.chunks(6)) {
        assert!(slots.iter().all(|slot| slot.block == block), "{slots:?}");
        let order: Vec<u32> = slots.iter().map(|slot| slot.scenario).collect();
        assert_eq!(order, order_of_block(BlockOrder::Random, 7, block, 6));
    }
    assert_eq!(repeated.len(), 12);
}

#[test]
fn experiments_refused_by_a_policy_run_once_per_block() {
    let mut simulation = SimulatedStore::new(plan(2, 1, 3));
    let mut tried_blocks = Vec::new();
    while let Some(slot) = simulation.agenda.next() {
        tried_blocks.push(slot.block);
        simulation.agenda.record_end(EndedExperiment {
            block: slot.block,
            scenario: simulation.matrix[0].id,
            status: ExperimentStatus::Failed,
            is_permanent: true,
        });
    }
    assert_eq!(tried_blocks, [0, 1]);
    assert_eq!(simulation.agenda.progress().given_up, 2);
}

#[test]
fn an_interrupted_experiment_is_retried_at_the_end_of_its_block() {
    use ExperimentStatus::{Complete, Interrupted};
    let mut simulation = SimulatedStore::new(plan(1, 3, 1));
    let interrupted_slot = simulation.run(Interrupted).expect("a slot");
    simulation.restart();
    let later_slots = [
        simulation.run(Complete),
        simulation.run(Complete),
        simulation.run(Complete),
    ];
    assert!(
        later_slots[..2]
            .iter()
            .flatten()
            .all(|slot| slot.scenario != interrupted_slot.scenario)
    );
    assert_eq!(
        later_slots[2].map(|slot| (slot.scenario, slot.attempt)),
        Some((interrupted_slot.scenario, 1))
    );
    assert_eq!(simulation.agenda.next(), None);
}

proptest! {
    /// 0..=5 complete, 6 and 7 fail, 8 is interrupted by ctrl-C, 9 is killed (and recovered as
    /// interrupted), 10 is killed before the experiment was in the catalog at all.
    #[test]
    fn no_experiment_is_skipped_or_repeated_after_kills_and_failures(
        blocks in 1..5_u32,
        sizes in 1..6_u32,
        tries in 1..4_u32,
        outcomes in prop::collection::vec(0..=10_u8, 0..120),
    ) {
        let mut simulation = SimulatedStore::new(plan(blocks, sizes, tries));
        let mut slots = Vec::new();
        for outcome in outcomes {
            let status = match outcome {
                0..=5 => ExperimentStatus::Complete,
                6 | 7 => ExperimentStatus::Failed,
                8 | 9 => ExperimentStatus::Interrupted,
                _ => { simulation.restart(); slots.push(None); continue; }
            };
            let Some(slot) = simulation.run(status) else { break };
            slots.push(Some((slot, status)));
            if status == ExperimentStatus::Interrupted {
                simulation.restart();
                slots.push(None);
            }
        }
        while let Some(slot) = simulation.run(ExperimentStatus::Complete) {
            slots.push(Some((slot, ExperimentStatus::Complete)));
        }
        let mut pairs: BTreeMap<(u32, u32), (u32, u32, u32)> = BTreeMap::new();
        let mut positions: BTreeMap<u32, u32> = BTreeMap::new();
        let mut first_attempt_blocks = Vec::new();
        for step in &slots {
            let Some((slot, status)) = step else {
                // Resuming allows all tries again.
                for (_, failed, _) in pairs.values_mut() {
                    *failed = 0;
                }
                continue;
            };
            let (tried, failed, complete) = pairs.entry((slot.block, slot.scenario)).or_default();
            prop_assert_eq!(slot.attempt, *tried, "attempts count up");
            prop_assert_eq!(*complete, 0, "nothing is tried after it is complete");
            prop_assert!(*failed < tries, "nothing is tried after its tries are used up");
            *tried += 1;
            *failed += u32::from(*status == ExperimentStatus::Failed);
            *complete += u32::from(*status == ExperimentStatus::Complete);
            let position = positions.entry(slot.block).or_default();
            prop_assert_eq!(slot.position, *position, "positions count up");
            *position += 1;
            if slot.attempt == 0 {
                first_attempt_blocks.push(slot.block);
            }
        }
        prop_assert!(first_attempt_blocks.is_sorted(), "blocks are begun in order, each gone through");
        prop_assert_eq!(pairs.len(), (blocks * sizes) as usize, "nothing is skipped");
        prop_assert!(pairs.values().all(|(_, failed, complete)| *complete == 1 || *failed == tries));
        let progress = simulation.agenda.progress();
        prop_assert_eq!((progress.open, progress.complete + progress.given_up), (0, progress.total));
    }
}
