//! What holds of every text that is read as a plan.

use std::collections::BTreeSet;

use neph_campaign::estimate::estimate;
use neph_campaign::expand::scenarios;
use neph_campaign::order::order_of_block;
use neph_campaign::plan::{self, Plan};
use neph_model::{Scenario, Span};
use neph_text::Source;

#[path = "problems.rs"]
mod problems;

/// Reads `text` under `name`, whose ending decides on the format.
pub fn check(name: &str, text: &str) {
    let source = Source::new(name, text);
    match plan::read(&source) {
        Ok(plan) => assert_plan_invariants(&plan),
        Err(found) => problems::check(&source, &found),
    }
}

fn assert_plan_invariants(plan: &Plan) {
    let scenarios = scenarios(plan);
    assert!(
        (1..=10_000).contains(&scenarios.len()),
        "{}",
        scenarios.len()
    );
    assert!(plan.blocks >= 1 && plan.tries >= 1 && plan.timeout > Span::ZERO);
    let ids: BTreeSet<_> = scenarios.iter().map(|scenario| scenario.id).collect();
    assert_eq!(ids.len(), scenarios.len(), "two scenarios are the same");
    for (index, scenario) in (0..).zip(&scenarios) {
        assert_eq!(scenario.index, index);
        assert_scenario_invariants(scenario);
    }
    let cost = estimate(plan, &scenarios);
    assert_eq!(
        cost.experiments,
        u64::from(plan.blocks) * scenarios.len() as u64
    );
    assert!(cost.experiments <= 1_000_000);
    assert!(
        cost.block >= Span::ZERO && cost.total >= cost.block,
        "{cost:?}"
    );
    let count = u32::try_from(scenarios.len()).expect("at most 10000");
    let order = order_of_block(plan.order, plan.seed.unwrap_or(1), plan.blocks - 1, count);
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), scenarios.len());
    assert_eq!(plan.hash().len(), 64);
}

fn assert_scenario_invariants(scenario: &Scenario) {
    assert!(scenario.interval > Span::ZERO);
    assert!(scenario.messages >= 1, "an experiment without a message");
    assert!(!scenario.label().is_empty());
    // The identity is a hash over lines: none may be forged by a value that holds a line break.
    let text = neph_campaign::expand::canonical_text(scenario);
    let named_parameters = usize::from(scenario.parameters.response_size().is_some());
    assert_eq!(
        text.lines().count(),
        8 + scenario.parameters.iter().count() - named_parameters,
        "{text:?}"
    );
}
