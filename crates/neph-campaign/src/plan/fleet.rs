//! A plan's fleets: the parameters that make one of a scenario, and what contradicts them.

use std::ops::Range;

use neph_model::{ProbeKind, Span};
use neph_probe::SYNS_A_SECOND_EACH;
use neph_text::{Fault, Nanos, Node, Placed, Problems, Take, parse_duration};

use super::Target;
use super::meaning::{Axes, Endpoint, FlowTracePlan, PairOrder, Plan};
use crate::{expand, together};

/// The most flows of a fleet: source ports that a host can give out without running dry.
const MOST_FLOWS: u32 = 50_000;
/// The most messages a second of a fleet: half of what one core sends.
pub(crate) const MOST_A_SECOND: u32 = 100_000;
/// What a fleet's flows cannot have, and why.
const NOT_FOR_FLEETS: [(&str, &str); 4] = [
    ("congestion", "its probes are too small for one to matter"),
    (
        "new_connection",
        "its flows keep their connections; renewal = \"30s\" begins new ones",
    ),
    ("spin", "it spins for none of its sends"),
    ("tls", "its probes are plain"),
];

/// Whether many flows can be carried by one thread to this target.
pub(crate) fn fits(target: &Target) -> bool {
    let carried = matches!(
        target.probe,
        ProbeKind::Udp | ProbeKind::Tcp | ProbeKind::Syn
    );
    carried && !target.secure
}

/// How many flows.
pub(crate) fn flows(node: &Node) -> Result<String, Fault> {
    match u32::take(node) {
        Ok(flows @ 1..=MOST_FLOWS) => Ok(flows.to_string()),
        _ => Err(Fault::new(
            "this is no number of flows",
            format!("write a number from 1 to {MOST_FLOWS}"),
        )),
    }
}

/// How many SYNs a second.
pub(crate) fn rate_cap(node: &Node) -> Result<String, Fault> {
    match u32::take(node) {
        Ok(rate @ 1..=MOST_A_SECOND) => Ok(rate.to_string()),
        _ => Err(Fault::new(
            "this is no number of SYNs a second",
            format!("write a number from 1 to {MOST_A_SECOND}"),
        )),
    }
}

/// How long a flow lives, as [`Span::exact`] writes it.
pub(crate) fn renewal(node: &Node) -> Result<String, Fault> {
    match Nanos::take(node)? {
        Nanos(0) => Err(Fault::new(
            "a flow cannot live for no time",
            "write for example \"30s\"; without 'renewal' flows are never renewed",
        )),
        Nanos(nanos) => Ok(Span::from_nanos(nanos).exact()),
    }
}

/// What contradicts itself among the values of one endpoint, and what to do.
pub(crate) fn contradiction(axes: &Axes) -> Option<Fault> {
    if most_flows(axes).is_none() {
        return axes.parameters.contains_key("renewal").then(|| {
            let what = "'renewal' is for fleets, and 'flows' is not given";
            Fault::new(what, "add flows = 512, or remove renewal")
        });
    }
    for (name, why) in NOT_FOR_FLEETS {
        if axes.parameters.contains_key(name) {
            let what = format!("a fleet has no '{name}': {why}");
            return Some(Fault::new(what, format!("remove {name} or flows")));
        }
    }
    let longest = axes.intervals.iter().max()?;
    let lives = axes.parameters.get("renewal").into_iter().flatten();
    let lives = lives.filter_map(|text| parse_duration(text).ok());
    let shortest_life = Span::from_nanos(lives.min()?);
    (shortest_life < *longest).then(|| {
        let (life, interval) = (shortest_life.exact(), longest.exact());
        let what = format!("flows that live {life} send nothing every {interval}");
        Fault::new(what, "write a longer renewal or a shorter interval")
    })
}

fn most_flows(axes: &Axes) -> Option<i64> {
    let flows = axes.parameters.get("flows")?.iter();
    flows.filter_map(|flows| flows.parse().ok()).max()
}

/// Why a fleet's shortest interval is too short for its flows, and what to do.
pub(crate) fn too_dense(target: &Target, axes: &Axes) -> Option<Fault> {
    let most = most_flows(axes)?;
    let allowed = axes.parameters.get("rate_cap").into_iter().flatten();
    let shortest = axes.intervals.iter().min()?;
    let rate = most.saturating_mul(1_000_000_000) / shortest.nanos().max(1);
    let allowed = allowed.filter_map(|cap| cap.parse::<i64>().ok());
    let cap = match target.probe {
        ProbeKind::Syn => allowed.min().unwrap_or_else(|| SYNS_A_SECOND_EACH.into()),
        _ => MOST_A_SECOND.into(),
    };
    if rate > cap && target.probe == ProbeKind::Syn {
        let what = format!(
            "{most} flows every {} are {rate} SYNs a second, which may be taken for an attack",
            shortest.exact()
        );
        let remedy = format!(
            "at most {cap}: fewer flows or a longer interval, or allow them with rate_cap = {rate}"
        );
        return Some(Fault::new(what, remedy));
    }
    (rate > cap).then(|| {
        let what = format!(
            "{most} flows every {} are {rate} messages a second",
            shortest.exact()
        );
        let remedy = format!("at most {MOST_A_SECOND}: fewer flows, or a longer interval");
        Fault::new(what, remedy)
    })
}

/// Whether there are endpoints, and none has a fleet.
fn without_fleets(endpoints: &[Endpoint]) -> bool {
    let has_fleet = |endpoint: &Endpoint| endpoint.axes.parameters.contains_key("flows");
    !endpoints.is_empty() && !endpoints.iter().any(has_fleet)
}

/// Only fleets take pairs at once.
pub(crate) fn check_pairs(
    pairs: Option<&Placed<PairOrder>>,
    endpoints: &[Endpoint],
    problems: &Problems<'_>,
) {
    if let Some(pairs) = pairs
        && without_fleets(endpoints)
    {
        let what = "'pairs' says how fleets take their pairs, and 'flows' is not given";
        let fault = Fault::new(what, "add flows = 512, or remove pairs");
        problems.add(pairs.span.clone(), fault);
    }
}

/// What runs at the same time is sent by one host.
pub(crate) fn check_rate(plan: &Plan, whole: &Range<usize>, problems: &Problems<'_>) {
    let rate = together::greatest_rate(plan, &expand::scenarios(plan));
    if rate > u64::from(MOST_A_SECOND) {
        let what = format!("the pairs that run at the same time are {rate} messages a second");
        let remedy = format!(
            "at most {MOST_A_SECOND}: fewer flows, a longer interval, or pairs = \"in turn\""
        );
        problems.add(whole.clone(), Fault::new(what, remedy));
    }
}

/// Only a fleet's flows are traced.
pub(crate) fn check_trace(
    trace: Option<&Placed<FlowTracePlan>>,
    endpoints: &[Endpoint],
    problems: &Problems<'_>,
) {
    if let Some(trace) = trace
        && without_fleets(endpoints)
    {
        let what = "[trace] traces the flows of fleets, and 'flows' is not given";
        let remedy = "add flows = 512, or write [traceroute] instead";
        problems.add(trace.span.clone(), Fault::new(what, remedy));
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::expand::scenarios;
    use crate::plan::parse;

    fn plan(lines: &str, url: &str) -> String {
        format!(
            "version = 1\nname = \"p\"\nduration = \"1min\"\n{lines}\n\
             [[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n"
        )
    }

    #[test]
    fn flow_sets_multiply_and_their_messages_are_counted() {
        let text = plan(
            "interval = \"200ms\"\nflows = [8, 512]\nrenewal = \"30s\"",
            "udp://a",
        );
        let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
        let scenarios = scenarios(&plan);
        let told: Vec<_> = scenarios
            .iter()
            .map(|s| (s.label(), s.flows(), s.messages, s.messages_of_all_flows()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "a · 8 flows · every 200 ms · 64 B".to_owned(),
                    Some(8),
                    300,
                    2_400
                ),
                (
                    "a · 512 flows · every 200 ms · 64 B".to_owned(),
                    Some(512),
                    300,
                    153_600
                ),
            ]
        );
        assert_eq!(scenarios[0].parameters["renewal"], "30 s");
    }

    #[test]
    fn more_syns_are_sent_where_they_are_allowed() {
        let text = plan(
            "interval = \"1s\"\nflows = 512\nrate_cap = 512",
            "syn://a:80",
        );
        parse(&Source::new("p.toml", text)).expect("a good plan");
    }

    fn told(lines: &str, url: &str) -> String {
        let found = parse(&Source::new("p.toml", plan(lines, url))).expect_err("wrong");
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        told.join("\n")
    }

    #[test]
    fn only_the_flows_of_fleets_are_traced() {
        let traced = |lines: &str| {
            let text = plan(&format!("interval = \"1s\"\n{lines}"), "udp://a");
            let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
            plan.flow_trace.map(|t| (t.flows, t.max_hops, t.queries))
        };
        assert_eq!(traced("flows = 8"), None);
        assert_eq!(traced("flows = 8\n[trace]"), Some((32, 30, 3)));
        assert_eq!(
            traced("flows = 8\n[trace]\nflows = 4\nmax_hops = 9\nqueries = 1"),
            Some((4, 9, 1))
        );
        assert_eq!(traced("[trace]\nenabled = false"), None);
        let wrong = told("interval = \"1s\"\n[trace]", "udp://a");
        assert!(
            wrong.contains("p.toml:5:1: [trace] traces the flows of fleets"),
            "{wrong}"
        );
        let wrong = told(
            "interval = \"1s\"\nflows = 8\n[trace]\nflows = 0",
            "udp://a",
        );
        assert!(wrong.contains("write a number from 1 to 1024"), "{wrong}");
    }

    #[test]
    fn what_runs_at_the_same_time_is_not_more_than_a_host_sends() {
        let lines = "interval = \"1ms\"\nflows = 60";
        let both = plan(lines, "udp://a") + "[[endpoint]]\nname = \"b\"\nurl = \"udp://b\"\n";
        let found = parse(&Source::new("p.toml", both.as_str())).expect_err("too many");
        let first = found[0].to_string();
        assert!(first.contains("are 120000 messages a second"), "{first}");
        assert!(first.contains("pairs = \"in turn\""), "{first}");
        let in_turn = both.replace("flows", "pairs = \"in turn\"\nflows");
        parse(&Source::new("p.toml", in_turn)).expect("a good plan");
        let wrong = told("interval = \"1s\"\npairs = \"at once\"", "udp://a");
        assert!(wrong.contains("p.toml:5:9: 'pairs' says how"), "{wrong}");
    }

    #[test]
    fn a_mistake_at_the_top_is_told_once_however_many_endpoints_follow() {
        let more = "[[endpoint]]\nname = \"b\"\nurl = \"udp://b\"\n";
        let told = |lines: &str| {
            let text = plan(lines, "udp://a") + more;
            let found = parse(&Source::new("p.toml", text)).expect_err("wrong");
            let each = found.iter().map(ToString::to_string);
            each.collect::<Vec<_>>()
        };
        for flows in ["90000", "\"many\""] {
            let lines = format!("interval = \"1s\"\nflows = {flows}\nrenewal = \"30s\"\n[trace]");
            let found = told(&lines);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("p.toml:5:9"), "{found:?}");
        }
        let found = told("interval = \"1us\"\nflows = 512");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("p.toml:4:12: 512 flows every 1 us"),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_no_fleet_is_told_where_it_stands() {
        let second = "interval = \"1s\"\n";
        for (lines, url, part) in [
            (
                format!("{second}flows = 0"),
                "udp://a",
                "p.toml:5:9: this is no number of flows",
            ),
            (
                format!("{second}flows = 50001"),
                "udp://a",
                "write a number from 1 to 50000",
            ),
            (
                format!("{second}flows = 8"),
                "ws://a",
                "'flows' fits no endpoint",
            ),
            (
                format!("{second}flows = 8\nrenewal = \"0s\""),
                "udp://a",
                "live for no time",
            ),
            (
                format!("{second}renewal = \"30s\""),
                "udp://a",
                "add flows = 512",
            ),
            (
                format!("{second}flows = 8\nrenewal = \"1ms\""),
                "udp://a",
                "send nothing every 1 s",
            ),
            (
                format!("{second}flows = 8\nnew_connection = true"),
                "tcp://a:1",
                "no 'new_connection'",
            ),
            (
                format!("{second}flows = 201"),
                "syn://a:80",
                "201 flows every 1 s are 201 SYNs a second, which may be taken for an attack",
            ),
            (
                "interval = \"1ms\"\nflows = 512".to_owned(),
                "udp://a",
                "512 flows every 1 ms are 512000 messages a second",
            ),
        ] {
            let told = told(&lines, url);
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}
