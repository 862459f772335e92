//! Timetables against a checker that knows nothing of how they are made.

use std::collections::BTreeMap;

use neph_model::Span;
use proptest::prelude::*;

use super::*;
use crate::order::Generator;

const MINUTE: Span = Span::from_secs(60);

fn host(name: impl std::fmt::Display, mode: UseMode) -> Claim {
    Claim::new(Resource::Host(format!("{name}")), mode)
}

fn link(name: &str, mode: UseMode) -> Claim {
    Claim::new(Resource::Link(name.to_owned()), mode)
}

fn circuit(from: usize, to: usize, duration: Span) -> Task {
    Task::new(
        duration,
        [host(from, UseMode::Load), host(to, UseMode::Load)],
    )
}

/// Every pair of sites `times` times.
fn mesh(sites: usize, times: usize) -> Vec<Task> {
    let pairs = (0..sites).flat_map(|from| (0..from).map(move |to| (from, to)));
    let ends = pairs.flat_map(|(from, to)| std::iter::repeat_n((from, to), times));
    ends.map(|(from, to)| circuit(from, to, MINUTE)).collect()
}

/// Whether two modes exclude each other, independent of the code under test.
fn excludes(mode: UseMode, other: UseMode, is_host: bool) -> bool {
    use UseMode::{Background, Exclusive, Latency, Load};
    match [mode.min(other), mode.max(other)] {
        [Exclusive, _] | [Load, Load | Latency] => true,
        [Latency, Latency] => is_host,
        [Load | Latency, Background] | [Background, _] => false,
        other => unreachable!("{other:?}"),
    }
}

/// Why a timetable is wrong; nothing if it is right. By time and resource, not by what made it.
fn find_faults(tasks: &[Task], table: &Timetable) -> Vec<String> {
    let mut faults = Vec::new();
    let mut run_counts = vec![0; tasks.len()];
    let mut uses: BTreeMap<&Resource, Vec<(Span, Span, UseMode, usize)>> = BTreeMap::new();
    let mut last_end = Span::ZERO;
    for scheduled in table.scheduled_tasks() {
        let task = &tasks[scheduled.task];
        let end = scheduled.start + task.duration() + task.guard();
        run_counts[scheduled.task] += 1;
        last_end = last_end.max(end);
        for claim in task.claims() {
            let resource_uses = uses.entry(&claim.resource).or_default();
            resource_uses.push((scheduled.start, end, claim.mode, scheduled.task));
        }
    }
    if run_counts.iter().any(|count| *count != 1) {
        faults.push(format!("not each task once: {run_counts:?}"));
    }
    if last_end != table.makespan {
        faults.push(format!(
            "it ends at {last_end} and not at {}",
            table.makespan
        ));
    }
    if table.makespan < table.bound.span {
        faults.push("it is shorter than its bound".to_owned());
    }
    for (resource, uses) in &mut uses {
        uses.sort();
        for (index, usage) in uses.iter().enumerate() {
            let later = uses[index + 1..].iter();
            for other in later.take_while(|other| other.0 < usage.1) {
                if excludes(usage.2, other.2, matches!(resource, Resource::Host(_))) {
                    faults.push(format!("{} and {} overlap on {resource}", usage.3, other.3));
                }
            }
        }
    }
    faults.truncate(3);
    faults
}

fn checked_rounds(tasks: &[Task]) -> Timetable {
    let packed = pack_tasks(tasks);
    assert_eq!(find_faults(tasks, &packed), [""; 0]);
    let table = rounds(tasks);
    assert_eq!(find_faults(tasks, &table), [""; 0]);
    assert!(packed.makespan <= table.makespan);
    let is_consecutive = table
        .rounds
        .windows(2)
        .all(|pair| pair[0].start + pair[0].length == pair[1].start);
    assert!(is_consecutive, "rounds do not follow each other");
    table
}

/// Section 6.3 of the fifth source: six circuits of four sites, six measurements of two minutes each.
#[test]
fn the_example_of_72_minutes_takes_36() {
    let tasks: Vec<Task> = mesh(4, 6)
        .iter()
        .map(|task| Task::new(MINUTE.times(2), task.claims().to_vec()))
        .collect();
    let sequential_duration: Span = tasks.iter().map(Task::duration).sum();
    assert_eq!(sequential_duration, MINUTE.times(72));
    let table = checked_rounds(&tasks);
    assert_eq!((table.rounds.len(), table.makespan), (18, MINUTE.times(36)));
    assert_eq!(table.bound.span, MINUTE.times(36));
}

#[test]
fn a_mesh_takes_the_minimum_number_of_rounds() {
    // 21: a greedy takes 22.
    for sites in (4..=24).chain([49, 50, 99, 100]) {
        let table = checked_rounds(&mesh(sites, 1));
        let rounds = i64::try_from(sites - 1 + sites % 2).expect("few");
        assert_eq!(table.makespan, MINUTE.times(rounds), "{sites} sites");
        assert_eq!(table.makespan, table.bound.span, "{sites} sites");
    }
    let table = checked_rounds(&mesh(7, 2));
    assert_eq!(table.makespan, MINUTE.times(14));
}

#[test]
#[ignore = "in release it shows how long 19,900 circuits take: well below a second"]
fn a_mesh_of_200_sites_takes_199_rounds() {
    let table = rounds(&mesh(200, 1));
    assert_eq!(table.makespan, MINUTE.times(199));
}

#[test]
#[ignore = "in release it shows how long 15,000 circuits that are no mesh take"]
fn a_graph_of_200_sites_stays_within_10_percent_of_the_bound() {
    let table = rounds(&random_graph(200, 75, 1));
    assert!(table.ratio() <= 1.1, "{}", table.ratio());
}

#[test]
#[ignore = "in release it shows how long 19,000 tasks of all modes and several lengths take"]
fn mixed_tasks_of_200_sites_stay_near_the_bound() {
    let table = rounds(&mixed_tasks(200, 95, 1));
    assert!(table.ratio() <= 1.1, "{}", table.ratio());
}

#[test]
fn stars_paths_and_bipartite_graphs_take_the_minimum_number_of_rounds() {
    let star: Vec<Task> = (1..40).map(|to| circuit(0, to, MINUTE)).collect();
    assert_eq!(checked_rounds(&star).makespan, MINUTE.times(39));
    let list: Vec<Task> = (0..50)
        .map(|_| Task::new(MINUTE, [host("here", UseMode::Latency)]))
        .collect();
    assert_eq!(checked_rounds(&list).makespan, MINUTE.times(50));
    let disjoint: Vec<Task> = (0..50)
        .map(|index| circuit(2 * index, 2 * index + 1, MINUTE))
        .collect();
    assert_eq!(checked_rounds(&disjoint).makespan, MINUTE);
    let bipartite: Vec<Task> = (0..8)
        .flat_map(|from| (0..13).map(move |to| circuit(from, 100 + to, MINUTE)))
        .collect();
    assert_eq!(checked_rounds(&bipartite).makespan, MINUTE.times(13));
}

#[test]
fn tasks_without_claims_run_immediately_and_an_empty_timetable_takes_no_time() {
    assert_eq!(checked_rounds(&[]).makespan, Span::ZERO);
    let unclaimed = vec![Task::new(MINUTE, []); 3];
    let table = checked_rounds(&unclaimed);
    assert_eq!((table.rounds.len(), table.makespan), (1, MINUTE));
}

#[test]
fn modes_exclude_each_other_on_links_and_hosts() {
    let link_task = |mode| Task::new(MINUTE, [link("l", mode)]);
    let host_task = |mode| Task::new(MINUTE, [host("h", mode)]);
    for first_mode in UseMode::ALL {
        for second_mode in UseMode::ALL {
            let [excludes_on_link, excludes_on_host] =
                [false, true].map(|is_host| excludes(first_mode, second_mode, is_host));
            assert_eq!(
                link_task(first_mode).conflicts_with(&link_task(second_mode)),
                excludes_on_link,
                "{first_mode:?} {second_mode:?}"
            );
            assert_eq!(
                host_task(first_mode).conflicts_with(&host_task(second_mode)),
                excludes_on_host,
                "{first_mode:?} {second_mode:?}"
            );
        }
    }
    // Claimed twice: the strictest counts.
    let task = Task::new(
        MINUTE,
        [link("l", UseMode::Latency), link("l", UseMode::Load)],
    );
    assert!(task.conflicts_with(&link_task(UseMode::Latency)));
}

#[test]
fn a_shared_link_serialises_loads_but_not_latency_measurements() {
    let uplink_task = |from: usize, mode| {
        let hosts = [host(from, mode), host(from + 1, mode), link("uplink", mode)];
        Task::new(MINUTE, hosts)
    };
    let loads: Vec<Task> = (0..5)
        .map(|index| uplink_task(2 * index, UseMode::Load))
        .collect();
    let table = checked_rounds(&loads);
    assert_eq!(table.makespan, MINUTE.times(5));
    let reason = BoundReason::Busy(Resource::Link("uplink".to_owned()));
    assert_eq!(table.bound.reason, reason);
    let latency_tasks: Vec<Task> = (0..5)
        .map(|index| uplink_task(2 * index, UseMode::Latency))
        .collect();
    assert_eq!(checked_rounds(&latency_tasks).makespan, MINUTE);
}

#[test]
fn guard_intervals_are_part_of_the_makespan() {
    let tasks: Vec<Task> = mesh(4, 1)
        .into_iter()
        .map(|task| task.with_guard(Span::from_secs(2)))
        .collect();
    assert_eq!(checked_rounds(&tasks).makespan, Span::from_secs(3 * 62));
}

#[test]
fn the_reason_of_the_bound_is_reported_as_text() {
    let reason = |tasks: &[Task]| checked_rounds(tasks).bound.reason.to_string();
    assert_eq!(
        reason(&mesh(5, 1)),
        "at most 2 circuits run at a time between 5 hosts"
    );
    let star: Vec<Task> = (1..4).map(|to| circuit(0, to, MINUTE)).collect();
    assert_eq!(
        reason(&star),
        "measurements that use host 0 run one after the other"
    );
    let ring = [
        Task::new(MINUTE, [host("a", UseMode::Load), link("l", UseMode::Load)]),
        Task::new(MINUTE, [host("b", UseMode::Load), link("l", UseMode::Load)]),
        Task::new(MINUTE, [host("a", UseMode::Load), host("b", UseMode::Load)]),
    ];
    assert_eq!(reason(&ring), "3 measurements exclude each other");
}

/// Circuits between `sites` sites: each pair with this chance, of so many in 100.
fn random_graph(sites: usize, percent: u32, seed: u64) -> Vec<Task> {
    let mut generator = Generator::seeded(seed);
    let pairs = (0..sites).flat_map(|from| (0..from).map(move |to| (from, to)));
    let edges = pairs.filter(|_| generator.below(100) < percent);
    edges.map(|(from, to)| circuit(from, to, MINUTE)).collect()
}

/// The same with links that some circuits share, and lengths of one to four minutes.
fn mixed_tasks(sites: usize, percent: u32, seed: u64) -> Vec<Task> {
    let mut generator = Generator::seeded(!seed);
    let graph = random_graph(sites, percent, seed);
    let tasks = graph.into_iter().map(|task| {
        let mode = UseMode::ALL[generator.below(4) as usize];
        let mut claims = task.claims().to_vec();
        for claim in &mut claims {
            claim.mode = mode;
        }
        if generator.below(5) == 0 {
            claims.push(link(&format!("l{}", generator.below(3)), mode));
        }
        Task::new(MINUTE.times(1 + i64::from(generator.below(4))), claims)
    });
    tasks.collect()
}

const DENSITIES: [u32; 6] = [5, 10, 25, 50, 75, 95];

#[test]
fn random_graphs_stay_within_10_percent_of_the_bound() {
    for sites in [4, 7, 10, 15, 21, 40, 61] {
        for percent in DENSITIES {
            for seed in 0..4 {
                let tasks = random_graph(sites, percent, seed);
                let ratio = checked_rounds(&tasks).ratio();
                assert!(
                    ratio <= 1.1,
                    "{sites} sites, {percent} %, seed {seed}: {ratio}"
                );
            }
        }
    }
}

#[test]
fn the_same_tasks_have_the_same_timetable() {
    let tasks = mixed_tasks(12, 60, 3);
    assert_eq!(rounds(&tasks), rounds(&tasks));
    assert_eq!(pack_tasks(&tasks), pack_tasks(&tasks));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn conflicting_tasks_never_overlap(
        sites in 2_usize..14, percent in 1_u32..100, seed: u64
    ) {
        let table = checked_rounds(&mixed_tasks(sites, percent, seed));
        prop_assert!(table.makespan >= table.bound.span);
    }
}

/// Every mesh from 4 to 200 sites, and how near to the bound other graphs come, as a table. In release:
/// `cargo test --release -p neph-campaign timetable -- --ignored --nocapture`.
#[test]
#[ignore = "a minute in release; prints what docs/timetable.md reports"]
fn every_mesh_and_large_graphs_stay_within_10_percent_of_the_bound() {
    for sites in 4..=200 {
        let table = rounds(&mesh(sites, 1));
        assert_eq!(find_faults(&mesh(sites, 1), &table), [""; 0]);
        assert!(table.ratio() <= 1.0, "{sites} sites: {}", table.ratio());
    }
    println!("meshes of 4 to 200 sites: makespan / bound 1.000");
    for (kind, make_tasks) in [
        (
            "circuits, equal",
            random_graph as fn(usize, u32, u64) -> Vec<Task>,
        ),
        ("any modes, links, 1-4 min", mixed_tasks),
    ] {
        for sites in [10, 21, 50, 100, 200] {
            for percent in DENSITIES {
                let ratios = (0..5).map(|seed| {
                    let tasks = make_tasks(sites, percent, seed);
                    let table = checked_rounds(&tasks);
                    let packed = pack_tasks(&tasks);
                    (table.ratio(), packed.ratio())
                });
                let (round_ratios, packed_ratios): (Vec<f64>, Vec<f64>) = ratios.unzip();
                let worst = |ratios: &[f64]| ratios.iter().copied().fold(0.0, f64::max);
                let (worst_rounds, worst_packed) = (worst(&round_ratios), worst(&packed_ratios));
                println!(
                    "{kind:26} {sites:4} sites {percent:3} %: in step {worst_rounds:.3}, packed {worst_packed:.3}"
                );
                assert!(kind != "circuits, equal" || worst_rounds <= 1.1);
            }
        }
    }
}
