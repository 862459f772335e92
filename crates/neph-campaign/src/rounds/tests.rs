use neph_text::Source;

use super::*;
use crate::expand::scenarios;
use crate::plan::parse;

fn plan(top: &str, endpoints_text: &str) -> (Plan, Vec<Scenario>) {
    let site = |name| format!("[[site]]\nname = \"{name}\"\nagent = \"{name}\"\n");
    let sites = ["ams", "lju", "mil"].map(site).concat();
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"1s\"\nduration = \"1min\"\npause = \"1s\"\n{top}\n\
         {sites}{endpoints_text}"
    );
    let plan = parse(&Source::new("p.toml", text)).unwrap_or_else(|reason| panic!("{reason:?}"));
    let matrix = scenarios(&plan);
    (plan, matrix)
}

fn endpoint(name: &str, more: &str) -> String {
    format!("[[endpoint]]\nname = \"{name}\"\nurl = \"udp://{name}\"\n{more}\n")
}

fn rounds_of(top: &str, endpoints_text: &str) -> Vec<Vec<u32>> {
    let (plan, matrix) = plan(top, endpoints_text);
    let plan_rounds = rounds(&plan, &matrix);
    assert_eq!(
        plan_rounds
            .scenarios()
            .map(|round| round.len())
            .sum::<usize>(),
        matrix.len()
    );
    plan_rounds.scenarios().collect()
}

#[test]
fn circuits_without_a_common_site_run_concurrently() {
    let all_sites = "from = [\"ams\", \"lju\"]";
    let endpoints_text = endpoint("x", all_sites) + &endpoint("y", all_sites);
    // ams -> x, lju -> x, ams -> y, lju -> y.
    let mut scenario_rounds = rounds_of("", &endpoints_text);
    scenario_rounds.sort();
    assert_eq!(scenario_rounds, [[0, 3], [1, 2]]);
    let (plan, matrix) = plan("", &endpoints_text);
    let plan_rounds = rounds(&plan, &matrix);
    assert_eq!(plan_rounds.table.makespan, Span::from_secs(122));
    assert_eq!(plan_rounds.sequential_duration, Span::from_secs(244));
    let names: Vec<String> = plan_rounds
        .usage
        .iter()
        .map(|usage| usage.resource.to_string())
        .collect();
    assert_eq!(names, ["host ams", "host lju", "host x", "host y"]);
    let usage_of_x = &plan_rounds.usage[2];
    assert_eq!(usage_of_x.busy_time, Span::from_secs(120));
    let bytes = matrix[0].request_size.bytes();
    assert_eq!(usage_of_x.request_bytes, ByteSize(2 * 60 * bytes));
}

#[test]
fn an_endpoint_at_a_site_shares_that_host() {
    let endpoints_text =
        endpoint("x", "from = \"ams\"\nat = \"lju\"") + &endpoint("y", "from = \"lju\"");
    assert_eq!(rounds_of("", &endpoints_text).len(), 2);
    let without_site = endpoints_text.replace("at = \"lju\"", "");
    assert_eq!(rounds_of("", &without_site).len(), 1);
}

#[test]
fn loads_over_a_shared_link_run_sequentially_and_latency_probes_concurrently() {
    let link = "[[shared_link]]\nname = \"uplink\"\nsites = [\"ams\", \"lju\"]\n";
    let endpoints_text = endpoint("x", "from = \"ams\"") + &endpoint("y", "from = \"lju\"") + link;
    assert_eq!(rounds_of("mode = \"load\"", &endpoints_text).len(), 2);
    assert_eq!(rounds_of("mode = \"quiet\"", &endpoints_text).len(), 1);
    assert_eq!(rounds_of("mode = \"alone\"", &endpoints_text).len(), 2);
    assert_eq!(rounds_of("mode = \"background\"", &endpoints_text).len(), 1);
}

#[test]
fn background_pairs_share_a_round_at_one_site_but_fleets_do_not() {
    let endpoints_text = endpoint("x", "from = \"ams\"") + &endpoint("y", "from = \"ams\"");
    assert_eq!(
        rounds_of("mode = \"background\"", &endpoints_text),
        [[0, 1]]
    );
    assert_eq!(rounds_of("", &endpoints_text).len(), 2);
    let fleets =
        endpoint("x", "from = \"ams\"\nflows = 8") + &endpoint("y", "from = \"ams\"\nflows = 16");
    assert_eq!(rounds_of("mode = \"background\"", &fleets).len(), 2);
}

#[test]
fn the_fleets_of_a_flow_set_stay_one_task() {
    let fleets = endpoint("x", "from = [\"ams\", \"lju\"]") + &endpoint("y", "from = \"mil\"");
    let (plan, matrix) = plan("flows = 8", &fleets);
    let plan_rounds = rounds(&plan, &matrix);
    assert_eq!(plan_rounds.tasks, [[0, 1, 2]]);
    assert_eq!(groups(&plan, &matrix), [0, 0, 0]);
}

#[test]
fn scenarios_of_different_seasons_share_no_round() {
    let seasons = "[[season]]\nname = \"day\"\nhours = \"08:00-20:00\"\n\
        [[season]]\nname = \"night\"\nhours = \"20:00-08:00\"\n";
    let endpoints_text =
        endpoint("x", "from = \"ams\"") + &endpoint("y", "from = \"lju\"") + seasons;
    let (plan, matrix) = plan("", &endpoints_text);
    let plan_rounds = rounds(&plan, &matrix);
    assert_eq!(plan_rounds.table.rounds.len(), 2);
    for round in plan_rounds.scenarios() {
        let seasons: std::collections::BTreeSet<_> = round
            .iter()
            .map(|index| matrix[*index as usize].season())
            .collect();
        assert_eq!(seasons.len(), 1);
    }
    assert_eq!(plan_rounds.table.makespan, Span::from_secs(122));
    assert_eq!(plan_rounds.table.bound.span, Span::from_secs(122));
}

#[test]
fn without_agents_each_endpoint_has_its_own_round() {
    let text = "version = 1\nname = \"p\"\ninterval = \"1s\"\nduration = \"1min\"\n\
        [[endpoint]]\nname = \"a\"\nurl = \"ws://a\"\n[[endpoint]]\nname = \"b\"\nurl = \"ws://b\"\n";
    let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
    let matrix = scenarios(&plan);
    assert_eq!(groups(&plan, &matrix), [0, 1]);
    assert_eq!(rounds(&plan, &matrix).table.rounds.len(), 2);
}
