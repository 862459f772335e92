//! Draws labs: the same seed gives the same labs.

use std::collections::BTreeSet;

use neph_stats::Random;

use crate::causes::{CAUSES, Cause, can_share_endpoint};
use crate::decoys::DECOYS;
use crate::endpoint::Endpoint;
use crate::lab::Lab;

/// What measuring a lab may take, in seconds.
const MAX_SECONDS: f64 = 12.0;
/// More blocks do not fit, or tell no more.
const BLOCKS: u32 = 4;
const NAMES: [&str; 3] = ["oslo", "lyon", "bern"];

/// The first labs of a seed: by turns with one cause, two and none. Causes are dealt out of a
/// shuffled pack, so that all of them come about as often.
pub(crate) fn labs(seed: u64, count: usize) -> Vec<Lab> {
    let mut random = Random::new(seed);
    let mut undrawn: Vec<&Cause> = Vec::new();
    (0..count)
        .map(|number| {
            let mut causes: Vec<&Cause> = Vec::new();
            while causes.len() < [1, 2, 0][number % 3] {
                let cause = draw_cause(&mut undrawn, &mut random);
                if causes.iter().all(|other| other.rule != cause.rule) {
                    causes.push(cause);
                }
            }
            lab(number, &causes, &mut random)
        })
        .collect()
}

fn draw_cause<'c>(undrawn: &mut Vec<&'c Cause>, random: &mut Random) -> &'c Cause {
    if undrawn.is_empty() {
        undrawn.extend(&CAUSES);
    }
    undrawn.swap_remove(random.below(undrawn.len()))
}

fn lab(number: usize, causes: &[&Cause], random: &mut Random) -> Lab {
    let mut lab = Lab {
        number,
        endpoints: Vec::new(),
        slow_start_after_idle: causes
            .iter()
            .any(|cause| cause.rule == "slow-start-after-idle"),
        echo_interval_ms: 100,
        blocks: 1,
        causes: BTreeSet::new(),
    };
    let share_endpoint = match causes {
        [cause, other] => can_share_endpoint(cause, other) && random.below(2) == 0,
        _ => false,
    };
    if share_endpoint {
        add_endpoint(&mut lab, causes, random);
    } else {
        for cause in causes {
            add_endpoint(&mut lab, &[cause], random);
        }
    }
    for _ in 0..random.below(NAMES.len() + 1 - lab.endpoints.len()).max(1) {
        add_endpoint_without_cause(&mut lab, random);
    }
    while lab.blocks < BLOCKS
        && lab.seconds() / f64::from(lab.blocks) + lab.seconds() <= MAX_SECONDS
    {
        lab.blocks += 1;
    }
    if lab.endpoints.iter().any(|endpoint| endpoint.seconds < 0.8) {
        lab.echo_interval_ms = 50;
    }
    lab
}

/// Adds an endpoint with these causes.
fn add_endpoint(lab: &mut Lab, causes: &[&Cause], random: &mut Random) {
    let mut endpoint = healthy_endpoint(NAMES[lab.endpoints.len()], random);
    for cause in CAUSES
        .iter()
        .filter(|cause| causes.iter().any(|drawn| drawn.rule == cause.rule))
    {
        (cause.inject)(&mut endpoint, random);
        lab.causes.insert((cause.rule, endpoint.name));
    }
    lab.endpoints.push(endpoint);
}

/// Adds an endpoint without a cause, if it fits.
fn add_endpoint_without_cause(lab: &mut Lab, random: &mut Random) {
    if lab.endpoints.len() == NAMES.len() {
        return;
    }
    let mut endpoint = healthy_endpoint(NAMES[lab.endpoints.len()], random);
    DECOYS[random.below(DECOYS.len())](&mut endpoint, random);
    lab.endpoints.push(endpoint);
    // Large messages at long intervals would be a cause where the client forgets its window; and
    // two blocks are to fit.
    let last = lab.endpoints.last().expect("just pushed");
    let is_cause = lab.slow_start_after_idle && last.sizes[0] > 14_000 && last.interval_ms > 200;
    if is_cause || 2.0 * lab.seconds() > MAX_SECONDS {
        lab.endpoints.pop();
        let healthy_endpoint = healthy_endpoint(NAMES[lab.endpoints.len()], random);
        if 2.0 * (lab.seconds() + healthy_endpoint.seconds) <= MAX_SECONDS {
            lab.endpoints.push(healthy_endpoint);
        }
    }
}

/// An endpoint that nothing is wrong with: some jitter, a loss now and then.
fn healthy_endpoint(name: &'static str, random: &mut Random) -> Endpoint {
    // From 1 to 60 ms one way, short and long ones alike.
    let delay_ms = 60_f64.powf(random.unit());
    let jitter_us = 1e3 * (delay_ms / 20.0).min(0.3) * random.unit();
    let jitter = match random.below(4) {
        0 => "none".to_owned(),
        kind => format!(
            "{} {jitter_us:.0}us",
            ["uniform", "normal", "pareto"][kind - 1]
        ),
    };
    Endpoint {
        name,
        delay_ms,
        jitter,
        loss_percent: random_choice(random, &[0.0, 0.0, 0.01, 0.03]),
        corrupt_percent: 0.0,
        reorder_percent: 0.0,
        uplink: None,
        extra_paths: Vec::new(),
        bulk: None,
        balancer: None,
        processing_ms: 0.0,
        periodic_stop: None,
        scheme: "ws",
        tls: "",
        new_connection: false,
        ports: Vec::new(),
        sizes: vec![random_choice(random, &[64, 200, 700, 1_200])],
        reply: random_choice(random, &[64, 200, 1_000]),
        interval_ms: random_choice(random, &[20, 25, 33, 45]),
        seconds: random_choice(random, &[0.9, 1.0, 1.2]),
    }
}

pub(crate) fn random_between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

pub(crate) fn random_choice<T: Copy>(random: &mut Random, entries: &[T]) -> T {
    entries[random.below(entries.len())]
}
