//! Whether what a timetable is made of can be: sites and endpoints by name, and a period of blocks.

use neph_model::Span;
use neph_text::{Fault, Problems, Spanned};

use super::super::sections::Sections;
use super::super::shared::PlannedCircuit;
use super::super::typed::{TypedPlan, TypedRunSettings};

/// Whether what a timetable is made of can be: names are known, and there are sites.
pub(super) fn check(typed: &TypedPlan, problems: &Problems<'_>) {
    let sections = &typed.sections;
    let sites: Vec<&str> = sections
        .agents
        .iter()
        .map(|site| site.name.value.as_str())
        .collect();
    let endpoints = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.name.as_ref());
    let endpoints: Vec<&str> = endpoints.map(|name| name.value.as_str()).collect();
    let endpoint_sites = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.site.as_ref());
    for (name, known, noun) in endpoint_sites
        .chain(sections.shared.iter().flat_map(|shared| &shared.sites))
        .map(|name| (name, &sites, "site"))
        .chain(
            sections
                .shared
                .iter()
                .flat_map(|shared| &shared.endpoints)
                .map(|name| (name, &endpoints, "endpoint")),
        )
    {
        check_name(name, known, noun, problems);
    }
    for circuit in sections.shared.iter().flat_map(|shared| &shared.circuits) {
        let PlannedCircuit { site, endpoint } = &circuit.value;
        for (name, known, noun) in [(site, &sites, "site"), (endpoint, &endpoints, "endpoint")] {
            let name = Spanned {
                value: name.clone(),
                span: circuit.span.clone(),
            };
            check_name(&name, known, noun, problems);
        }
    }
    check_sites(typed, problems);
}

fn check_name(name: &Spanned<String>, known: &[&str], noun: &str, problems: &Problems<'_>) {
    // Without any site, that is the mistake, and it is reported once.
    if known.is_empty() || known.contains(&name.value.as_str()) {
        return;
    }
    let message = format!("there is no {noun} '{}'", name.value);
    problems.unknown(&name.value, name.span.clone(), message, || known.to_vec());
}

/// Modes and links decide what runs at the same time, which needs agents.
fn check_sites(typed: &TypedPlan, problems: &Problems<'_>) {
    let Sections { agents, shared, .. } = &typed.sections;
    if !agents.is_empty() {
        return;
    }
    let modes = typed.endpoints.iter().map(|endpoint| &endpoint.mode);
    let modes = modes.chain([&typed.run_settings.mode]).flatten();
    let modes = modes.map(|mode| ("mode", mode.span.clone()));
    let sites = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.site.as_ref());
    let sites = sites.map(|site| ("at", site.span.clone()));
    let shared = shared.iter().map(|shared| {
        let names = shared
            .sites
            .iter()
            .chain(&shared.endpoints)
            .map(|name| name.span.clone());
        let circuits = shared.circuits.iter().map(|circuit| circuit.span.clone());
        let range = names.chain(circuits).next();
        ("a shared link", range.unwrap_or_else(|| typed.span.clone()))
    });
    for (key, span) in modes.chain(sites).chain(shared) {
        let message = format!(
            "{key} decides what runs at the same time at several sites, and there is no [[site]]"
        );
        let remedy = "add a [[site]] with an agent, or remove it";
        problems.add(span, Fault::new(message, remedy));
    }
}

/// The interval between blocks, and the period that no block may outlast, if there is one.
pub(super) fn interpret_period(
    run_settings: &TypedRunSettings,
    problems: &Problems<'_>,
) -> (Span, Option<Spanned<Span>>) {
    if let (Some(every), Some(_)) = (&run_settings.every, &run_settings.block_interval) {
        let message = "both every and block_interval are given";
        let remedy = "remove block_interval: every is one that no block may outlast";
        problems.add(every.span.clone(), Fault::new(message, remedy));
    }
    let interval = run_settings.block_interval.as_ref();
    let interval = interval.map(|interval| Span::from_nanos(interval.value.0));
    let every = run_settings.every.clone();
    let period = every.as_ref().map(|every| every.value);
    (period.or(interval).unwrap_or(Span::ZERO), every)
}

#[cfg(test)]
mod tests {
    use neph_model::Span;
    use neph_text::Source;

    use crate::plan::parse;
    use crate::timetable::{Resource, UseMode};

    const PLAN: &str = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 60\nevery = \"1h\"\n\
        mode = \"load\"\n[[site]]\nname = \"ams\"\nagent = \"a\"\n[[site]]\nname = \"lju\"\nagent = \"l\"\n\
        [[endpoint]]\nname = \"to lju\"\nurl = \"udp://10.0.0.2\"\nat = \"lju\"\nfrom = \"ams\"\n\
        [[endpoint]]\nname = \"web\"\nurl = \"ws://web\"\nmode = \"quiet\"\nfrom = [\"ams\", \"lju\"]\n\
        [[shared_link]]\nname = \"uplink\"\nsites = \"lju\"\n\
        [[shared_overlay]]\nname = \"weave\"\ncircuits = \"ams -> web\"\n";

    #[test]
    fn modes_links_and_periods_are_parsed() {
        let plan = parse(&Source::new("p.toml", PLAN)).expect("a good plan");
        let every = plan.strict_block_interval.as_ref().expect("a period");
        assert_eq!(
            (every.value, plan.block_interval),
            (Span::from_secs(3600), every.value)
        );
        let modes: Vec<UseMode> = plan
            .endpoints
            .iter()
            .map(|endpoint| endpoint.mode)
            .collect();
        assert_eq!(modes, [UseMode::Load, UseMode::Latency]);
        assert_eq!(plan.endpoints[0].site.as_deref(), Some("lju"));
        let [uplink, weave] = plan.shared.as_slice() else {
            panic!("{:?}", plan.shared);
        };
        assert_eq!(uplink.resource, Resource::Link("uplink".to_owned()));
        assert_eq!(weave.resource, Resource::Overlay("weave".to_owned()));
        assert!(uplink.is_used_by_circuit(Some("ams"), "to lju", Some("lju")));
        assert!(uplink.is_used_by_circuit(Some("lju"), "web", None));
        assert!(!uplink.is_used_by_circuit(Some("ams"), "web", None));
        assert!(weave.is_used_by_circuit(Some("ams"), "web", None));
        assert!(!weave.is_used_by_circuit(Some("lju"), "web", None));
    }

    #[test]
    fn mistakes_are_reported_with_a_remedy() {
        let problem_after = |from: &str, to: &str| {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN, "{from}");
            let problems = parse(&Source::new("p.toml", text)).expect_err("a mistake");
            assert_eq!(problems.len(), 1, "{problems:#?}");
            problems[0].to_string()
        };
        for (from, to, part) in [
            ("\"load\"", "\"loud\"", "did you mean 'load'"),
            ("at = \"lju\"", "at = \"lja\"", "there is no site 'lja'"),
            (
                "sites = \"lju\"",
                "sites = \"lux\"",
                "there is no site 'lux'",
            ),
            (
                "sites = \"lju\"",
                "",
                "no circuit uses this [[shared_link]]",
            ),
            ("ams -> web", "ams web", "'ams web' is no circuit"),
            ("ams -> web", "ams -> wib", "there is no endpoint 'wib'"),
            (
                "every = \"1h\"",
                "every = \"1h\"\nblock_interval = \"1h\"",
                "remove block_interval",
            ),
            ("every = \"1h\"", "every = \"0s\"", "this time is zero"),
        ] {
            let message = problem_after(from, to);
            assert!(message.contains(part), "{message}");
        }
        let text_without_site = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 60\nmode = \"load\"\n\
            [[endpoint]]\nname = \"e\"\nurl = \"udp://10.0.0.2\"\n";
        let problems = parse(&Source::new("p.toml", text_without_site)).expect_err("no site");
        assert!(
            problems[0].to_string().contains("add a [[site]]"),
            "{}",
            problems[0]
        );
    }
}
