//! Flow sets: fleets, and media streams, that differ in their endpoint and site only, which are one order.
//! One with other flows, another interval or another season waits its turn. What else runs at the same time
//! where sites are agents, `rounds` decides. Pure.

use std::collections::BTreeMap;

use neph_model::{Measure, ParameterName, Scenario};

use crate::plan::{PairOrder, Plan};

/// The flow set of each scenario, by index; those of a set run at the same time. Sets are counted from 0
/// in the order of the matrix; a scenario without a fleet is a set of one.
pub fn groups(plan: &Plan, scenarios: &[Scenario]) -> Vec<u32> {
    let mut group_by_set: BTreeMap<String, u32> = BTreeMap::new();
    let mut next_group = 0;
    let mut groups = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        // Media streams of several sites begin together too: they share their server.
        let is_media = matches!(scenario.measure(), Measure::Media(_));
        let is_set = scenario.flows().is_some() || is_media;
        let group = if is_set && plan.pair_order == PairOrder::Concurrent {
            *group_by_set.entry(flow_set(scenario)).or_insert(next_group)
        } else {
            next_group
        };
        next_group += u32::from(group == next_group);
        groups.push(group);
    }
    groups
}

/// What a fleet measures, for any pair.
fn flow_set(scenario: &Scenario) -> String {
    let parameters = scenario.parameters.iter();
    let is_place = |name| matches!(name, ParameterName::Site | ParameterName::Circuit);
    let parameter_texts = parameters.filter(|parameter| !is_place(parameter.name()));
    let parameter_texts: Vec<String> = parameter_texts
        .map(|parameter| format!("{}={}", parameter.name(), parameter.text()))
        .collect();
    format!(
        "{} {} {} {} {} {}",
        scenario.probe(),
        scenario.interval.nanos(),
        scenario.request_size.bytes(),
        scenario.response_size.bytes(),
        scenario.messages,
        parameter_texts.join("\n")
    )
}

/// The same places, those that run at the same time together, each group where its first stands.
pub fn in_groups(order: &[u32], groups: &[u32]) -> Vec<Vec<u32>> {
    let mut positions: BTreeMap<u32, usize> = BTreeMap::new();
    let mut grouped: Vec<Vec<u32>> = Vec::new();
    for &scenario in order {
        let group = groups[scenario as usize];
        let index = *positions.entry(group).or_insert(grouped.len());
        if index == grouped.len() {
            grouped.push(Vec::new());
        }
        grouped[index].push(scenario);
    }
    grouped
}

/// The most messages a second that run at the same time.
pub(crate) fn max_rate(plan: &Plan, scenarios: &[Scenario]) -> u64 {
    let mut rates: BTreeMap<u32, u64> = BTreeMap::new();
    for (scenario, group) in scenarios.iter().zip(groups(plan, scenarios)) {
        let interval = u64::try_from(scenario.interval.nanos()).unwrap_or(1);
        let flows = u64::from(scenario.flows().unwrap_or(0));
        *rates.entry(group).or_default() += flows.saturating_mul(1_000_000_000) / interval.max(1);
    }
    rates.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use neph_model::Span;
    use neph_text::Source;

    use super::*;
    use crate::estimate::{time_of, trace_time};
    use crate::expand::scenarios;
    use crate::plan::parse;

    const PLAN: &str = r#"
version = 1
name = "p"
interval = "1s"
duration = "1min"
flows = [8, 512]
pause = "1s"
[[endpoint]]
name = "a"
url = "udp://10.0.0.1"
[[endpoint]]
name = "b"
url = "udp://10.0.0.2"
"#;

    fn read(text: &str) -> (Plan, Vec<Scenario>, Vec<u32>) {
        let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
        let matrix = scenarios(&plan);
        let groups = groups(&plan, &matrix);
        (plan, matrix, groups)
    }

    #[test]
    fn the_pairs_of_a_flow_set_form_one_group() {
        let (plan, matrix, groups) = read(PLAN);
        assert_eq!(groups, [0, 1, 0, 1]);
        let slots = (0..4).map(|scenario| (0, scenario));
        let time = time_of(slots, &plan, &matrix, &groups);
        assert_eq!(time, Span::from_secs(2 * 61));
        assert_eq!(max_rate(&plan, &matrix), 1_024);
        let sites = PLAN.to_owned()
            + "from = [\"x\", \"y\"]\n[lab]\ntopology = \"t.toml\"\nprober = \"x\"\n";
        assert_eq!(read(&sites).2, [0, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn the_traces_of_pairs_follow_each_other() {
        let text = PLAN.to_owned() + "[trace]\nflows = 10\nqueries = 5\n";
        let (plan, matrix, groups) = read(&text);
        // 8 of 8 flows and 10 of 512, each asked 5 times at each distance, 50 times a second.
        let expected = [1_800, 2_000, 1_800, 2_000].map(Span::from_millis);
        let trace_times: Vec<Span> = matrix
            .iter()
            .map(|scenario| trace_time(&plan, scenario).usual)
            .collect();
        assert_eq!(trace_times, expected);
        let slots = (0..4).map(|scenario| (0, scenario));
        let time = time_of(slots, &plan, &matrix, &groups);
        assert_eq!(time, Span::from_millis(2 * 61_000 + 7_600));
    }

    #[test]
    fn sequential_or_without_fleets_scenarios_run_one_at_a_time() {
        let in_turn = PLAN.replace("pause", "pairs = \"in turn\"\npause");
        assert_eq!(read(&in_turn).2, [0, 1, 2, 3]);
        let single = PLAN.replace("flows = [8, 512]", "request_size = [64, 128]");
        assert_eq!(read(&single).2, [0, 1, 2, 3]);
    }

    #[test]
    fn each_group_takes_the_place_of_its_first_scenario() {
        let grouped = in_groups(&[3, 0, 2, 1], &[0, 1, 0, 1]);
        assert_eq!(grouped, [vec![3, 1], vec![0, 2]]);
    }
}
