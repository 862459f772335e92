//! The plan's `alarm`: rules that each experiment is evaluated by while it runs. They multiply nothing.
//!
//! Owns the key, whose rules hold where, and what no experiment can ever raise.

use neph_model::alarm::Rule;
use neph_model::{Parameter, Span};
use neph_text::{Fault, Fields, FromNode, Node, Problems, Spanned, Value};

use super::model::{Axes, Endpoint};
use super::typed::{TypedAxes, TypedPlan, WrittenValues};
use crate::alarm::parse;
use crate::alarm_evaluator::{AlarmQuantity, SUBJECTS};

/// Reads `alarm`, a rule or a list. An empty list is valid: the endpoint then has no alarms, and does
/// not take those of the top.
pub(super) fn read(fields: &mut Fields<'_>) -> WrittenValues<Rule<AlarmQuantity>> {
    let entry = fields.entry("alarm")?;
    if matches!(&entry.node.value, Value::List(rules) if rules.is_empty()) {
        return Some(Vec::new());
    }
    let rules = fields.one_or_list_with("alarm", rule);
    Some(rules.unwrap_or_default())
}

fn rule(node: &Node) -> Result<Rule<AlarmQuantity>, Fault> {
    let text = String::from_node(node)?;
    parse(&text, &SUBJECTS).map_err(|error| {
        let Fault { message, remedy } = error.value;
        Fault::new(format!("in this alarm {message}"), remedy)
    })
}

/// Those of an endpoint, else of the top.
pub(super) fn endpoint_alarms(
    endpoint_axes: &TypedAxes,
    top: &TypedAxes,
) -> Vec<Rule<AlarmQuantity>> {
    let written = endpoint_axes.alarms.as_ref().or(top.alarms.as_ref());
    let written = written.into_iter().flatten();
    written.map(|rule| rule.value.clone()).collect()
}

/// Notes every rule that no experiment which it holds for can break: it is too short, or has too few
/// messages.
pub(super) fn check(typed: &TypedPlan, endpoints: &[Endpoint], problems: &Problems<'_>) {
    let has_own_alarms = |endpoint: &&Endpoint| {
        let mut typed = typed.endpoints.iter();
        typed.any(|typed_endpoint| {
            let is_endpoint_name = |name: &Spanned<String>| name.value == endpoint.name;
            typed_endpoint.axes.alarms.is_some()
                && typed_endpoint.name.as_ref().is_some_and(is_endpoint_name)
        })
    };
    let (endpoints_with_own, inheriting_endpoints): (Vec<&Endpoint>, Vec<&Endpoint>) =
        endpoints.iter().partition(has_own_alarms);
    for rule in typed.axes.alarms.iter().flatten() {
        check_rule(rule, &inheriting_endpoints, problems);
    }
    for endpoint in &typed.endpoints {
        let name = endpoint.name.as_ref().map(|name| &name.value);
        let own_endpoints = endpoints_with_own.iter().copied();
        let own_endpoints: Vec<&Endpoint> = own_endpoints
            .filter(|endpoint| Some(&endpoint.name) == name)
            .collect();
        for rule in endpoint.axes.alarms.iter().flatten() {
            check_rule(rule, &own_endpoints, problems);
        }
    }
}

/// If it applies to no endpoint, another mistake has left none, or each has its own.
fn check_rule(
    rule: &Spanned<Rule<AlarmQuantity>>,
    endpoints: &[&Endpoint],
    problems: &Problems<'_>,
) {
    let mut faults = endpoints
        .iter()
        .map(|endpoint| unbreakable_fault(&rule.value, &endpoint.axes));
    let Some(first) = faults.next() else {
        return;
    };
    if let Some(fault) = first.filter(|_| faults.all(|fault| fault.is_some())) {
        problems.add(rule.span.clone(), fault);
    }
}

/// Why no experiment of an endpoint can break a rule; `None` where one can.
fn unbreakable_fault(rule: &Rule<AlarmQuantity>, axes: &Axes) -> Option<Fault> {
    let flows = axes.values(Parameter::flows).max();
    let flows = flows.map_or(1, |flows| u64::from(flows.get()));
    let maximum = |value_of: &dyn Fn(Span, u64) -> i64| {
        let counts = axes.intervals.iter();
        let counts = counts.map(|interval| value_of(*interval, axes.length.messages(*interval)));
        counts.max().unwrap_or(0)
    };
    let to_i64 = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let messages = maximum(&|_, messages| to_i64(messages.saturating_mul(flows)));
    let needs = rule.quantile.needs;
    if messages < to_i64(needs) {
        let name = rule.quantile.name;
        let message = format!("{name} needs {needs} messages, and an experiment has {messages}");
        let remedy = "write a lower quantile, or measure for longer";
        return Some(Fault::new(message, remedy));
    }
    let max_duration = maximum(&|interval, messages| interval.times(to_i64(messages)).nanos());
    let max_duration = Span::from_nanos(max_duration);
    (max_duration < rule.hold_duration).then(|| {
        let message = format!(
            "this alarm needs {}, but an experiment takes only {max_duration}",
            rule.hold_duration
        );
        Fault::new(
            message,
            "write a shorter time behind for, or measure for longer",
        )
    })
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::plan::{Plan, parse};

    /// A plan with this at the top and in its second endpoint.
    fn read(top: &str, other: &str) -> Result<Plan, Vec<String>> {
        let text = format!(
            "version = 1\nname = \"p\"\ninterval = \"10ms\"\nduration = \"1min\"\n{top}\n\
             [[endpoint]]\nname = \"a\"\nurl = \"udp://10.0.0.1\"\n\
             [[endpoint]]\nname = \"b\"\nurl = \"udp://10.0.0.2\"\n{other}\n"
        );
        let messages =
            |problems: Vec<neph_text::Problem>| problems.iter().map(ToString::to_string).collect();
        parse(&Source::new("p.toml", text)).map_err(messages)
    }

    fn texts(plan: &Plan) -> Vec<Vec<&str>> {
        let endpoints = plan.endpoints.iter();
        endpoints
            .map(|endpoint| {
                endpoint
                    .alarms
                    .iter()
                    .map(|rule| rule.text.as_str())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn alarms_of_an_endpoint_replace_those_of_the_plan() {
        let plan = read(
            "alarm = [\"round_trip > 2ms p99 for 30s\", \"network > 1ms p50\"]",
            "alarm = \"round_trip > 9ms p99\"",
        );
        let plan = plan.expect("a good plan");
        let top = vec!["round_trip > 2ms p99 for 30s", "network > 1ms p50"];
        assert_eq!(texts(&plan), [top, vec!["round_trip > 9ms p99"]]);
        assert_eq!(plan.endpoints[0].alarms[1].subject, AlarmQuantity::Network);
        assert!(plan.has_alarms());
        assert!(!read("", "").expect("a good plan").has_alarms());
    }

    #[test]
    fn an_empty_list_disables_the_top_level_alarms_of_an_endpoint() {
        let rule = "alarm = \"round_trip > 2ms p99\"";
        let plan = read(rule, "alarm = []").expect("a good plan");
        assert_eq!(texts(&plan), [vec!["round_trip > 2ms p99"], vec![]]);
        // A duration too short for the others is reported, although this endpoint has no rule.
        let long = "alarm = \"round_trip > 2ms p99 for 2min\"";
        let error = read(long, "duration = \"5min\"\nalarm = []").expect_err("never");
        assert!(error[0].contains("needs 120.000 s"), "{error:?}");
        // At the top an empty list means the default: no alarms.
        let plan = read("alarm = []", rule).expect("a good plan");
        assert_eq!(texts(&plan), [vec![], vec!["round_trip > 2ms p99"]]);
    }

    #[test]
    fn a_mistake_is_reported_at_its_position() {
        for (rule, printed) in [
            (
                "path > 2ms p99",
                "'path' is not what it is about; known here: round_trip, network",
            ),
            (
                "round_trip > 2ms p98",
                "in this alarm 'p98' is not a quantile",
            ),
            ("round_trip > 2ms p99.9 until 3ms", "more than"),
            (
                "",
                "is missing; write for example: round_trip > 2ms p99 for 30s",
            ),
            (
                "round_trip > 2ms p50 for 61s",
                "needs 61.000 s, but an experiment takes only 60",
            ),
        ] {
            let line = format!("alarm = \"{rule}\"");
            for (read, position) in [(read(&line, ""), "5:9"), (read("", &line), "12:9")] {
                let error = read.expect_err("a mistake");
                let prefix = format!("p.toml:{position}: ");
                let is_expected =
                    error.len() == 1 && error[0].starts_with(&prefix) && error[0].contains(printed);
                assert!(is_expected, "{rule}: {error:?}");
            }
        }
    }

    #[test]
    fn a_top_level_rule_may_apply_to_one_of_several_endpoints() {
        let rule = "alarm = \"round_trip > 2ms p99\"";
        let few = "messages = 99";
        assert!(read(rule, few).is_ok());
        let error = read("", &format!("{few}\n{rule}")).expect_err("never");
        assert!(
            error[0].contains("p99 needs 299 messages, and an experiment has 99"),
            "{error:?}"
        );
        // Those of all flows together.
        assert!(read("", &format!("{few}\nflows = [2, 8]\n{rule}")).is_ok());
    }
}
