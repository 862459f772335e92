//! The plan's `[[compare]]`: which endpoints are to be shown equivalent, and how far apart they may
//! be. Stated before anything is measured, as a test of equivalence wants it.

use std::ops::Range;

use neph_model::Span;
use neph_text::{Fault, Fields, Problems, Spanned, choice};

use super::sections::{Sections, positive_span};
use super::single_line_text::single_line_text;

/// Endpoints and the difference between their medians that begins to matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparePlan {
    /// At least two, or none for all of the plan.
    pub endpoints: Vec<Spanned<String>>,
    /// The medians of what.
    pub layer: ComparedLayer,
    /// Above zero.
    pub margin: Span,
    /// Where the plan writes it.
    pub span: Range<usize>,
}

/// What is to be equivalent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparedLayer {
    /// From the scheduled send time to the reply: what an application waits.
    #[default]
    Response,
    /// The network's round trip by kernel timestamps, without the time of the applications at both ends.
    Network,
}

const LAYERS: [(&str, ComparedLayer); 2] = [
    ("response", ComparedLayer::Response),
    ("network", ComparedLayer::Network),
];

/// Reads every `[[compare]]` of a plan.
pub(crate) fn read(fields: &mut Fields<'_>) -> Vec<ComparePlan> {
    fields
        .tables("compare")
        .into_iter()
        .filter_map(read_compare)
        .collect()
}

fn read_compare(mut fields: Fields<'_>) -> Option<ComparePlan> {
    let endpoints = fields.one_or_list_with("endpoints", single_line_text);
    let layer = fields.optional_with("layer", |node| choice(node, &LAYERS));
    let margin = fields.required_with("margin", positive_span);
    if let Some([only]) = endpoints.as_deref() {
        let message = "one endpoint cannot be compared";
        fields.fault(only.span.clone(), message, "name another one as well");
    }
    let span = fields.span();
    fields.finish();
    Some(ComparePlan {
        endpoints: endpoints.unwrap_or_default(),
        layer: layer.map_or_else(ComparedLayer::default, |layer| layer.value),
        margin: margin?.value,
        span,
    })
}

/// Notes every endpoint that the plan does not have, in comparisons and as the baseline.
pub(crate) fn check_sections(sections: &Sections, known: &[String], problems: &Problems<'_>) {
    check_compares(&sections.compares, known, problems);
    check_baseline(sections.baseline.as_ref(), known, problems);
}

fn check_compares(compares: &[ComparePlan], known: &[String], problems: &Problems<'_>) {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for compare in compares {
        let mut endpoints: Vec<&str> = compare
            .endpoints
            .iter()
            .map(|endpoint| &*endpoint.value)
            .collect();
        if endpoints.is_empty() {
            endpoints.clone_from(&known);
        }
        endpoints.sort_unstable();
        endpoints.dedup();
        // One that is named alone was refused where it was read.
        if endpoints.len() < 2 && compare.endpoints.len() != 1 {
            let message = "there are no two endpoints to compare";
            let fault = Fault::new(
                message,
                "name two endpoints of this plan, or remove [[compare]]",
            );
            problems.add(compare.span.clone(), fault);
        }
    }
    for name in compares.iter().flat_map(|compare| &compare.endpoints) {
        if !known.contains(&name.value.as_str()) {
            let message = format!("there is no endpoint '{}' to compare", name.value);
            problems.unknown(&name.value, name.span.clone(), message, || known.clone());
        }
    }
}

/// Notes a baseline that the plan does not have.
fn check_baseline(baseline: Option<&Spanned<String>>, known: &[String], problems: &Problems<'_>) {
    if let Some(name) = baseline.filter(|name| !known.contains(&name.value)) {
        let message = format!("there is no endpoint '{}' to compare with", name.value);
        problems.unknown(&name.value, name.span.clone(), message, || {
            known.iter().map(String::as_str).collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::plan::parse;

    const PLAN: &str = r#"
version = 1
name = "p"
interval = "1s"
messages = 1
[[endpoint]]
name = "one"
url = "ws://10.0.0.1"
[[endpoint]]
name = "other"
url = "ws://10.0.0.2"
"#;

    #[test]
    fn compare_sections_set_margin_endpoints_and_layer() {
        let text = format!("{PLAN}[[compare]]\nmargin = \"100us\"\n");
        let plan = parse(&Source::new("p.toml", text.clone())).expect("a good plan");
        assert_eq!(plan.compares[0].margin.nanos(), 100_000);
        assert!(plan.compares[0].endpoints.is_empty(), "all of them");
        assert_eq!(plan.compares[0].layer, ComparedLayer::Response);
        let text = format!("{text}layer = \"network\"\n");
        let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
        assert_eq!(plan.compares[0].layer, ComparedLayer::Network);
    }

    #[test]
    fn the_baseline_of_a_plan_is_parsed() {
        let parse_with_baseline = |name: &str| {
            let text = PLAN.replace(
                "[[endpoint]]\nname = \"one\"",
                &format!("baseline = \"{name}\"\n[[endpoint]]\nname = \"one\""),
            );
            parse(&Source::new("p.toml", text))
        };
        assert_eq!(
            parse_with_baseline("other")
                .expect("a good plan")
                .baseline
                .as_deref(),
            Some("other")
        );
        let message = parse_with_baseline("othr").expect_err("a mistake")[0].to_string();
        assert!(
            message.contains("there is no endpoint 'othr' to compare with"),
            "{message}"
        );
    }

    #[test]
    fn a_comparison_needs_two_different_endpoints() {
        let one_endpoint = PLAN
            .split("[[endpoint]]\nname = \"other\"")
            .next()
            .expect("text");
        let single_text = format!("{one_endpoint}[[compare]]\nmargin = \"1ms\"\n");
        let same_endpoint_text =
            format!("{PLAN}[[compare]]\nendpoints = [\"one\", \"one\"]\nmargin = \"1ms\"\n");
        for text in [single_text, same_endpoint_text] {
            let problems = parse(&Source::new("p.toml", text)).expect_err("a mistake");
            let message = problems[0].to_string();
            let refused = [
                "no two endpoints to compare",
                "one endpoint cannot be compared",
            ];
            assert!(
                refused.iter().any(|part| message.contains(part)),
                "{message}"
            );
        }
    }

    #[test]
    fn a_wrong_comparison_is_reported_at_its_position() {
        let text = format!(
            "{PLAN}[[compare]]\nendpoints = [\"one\", \"othr\"]\nmargin = \"1ms\"\n\
             [[compare]]\nendpoints = [\"one\"]\nmargin = \"0ms\"\nlayer = \"netwrk\"\n[[compare]]\n"
        );
        let problems = parse(&Source::new("p.toml", text)).expect_err("mistakes");
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let message = messages.join("\n");
        for part in [
            "there is no endpoint 'othr' to compare",
            "one endpoint cannot be compared",
            "this time is zero",
            "'margin' is missing",
            "netwrk",
        ] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }
}
