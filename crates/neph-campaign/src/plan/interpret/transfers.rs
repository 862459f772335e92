//! Transfers in a plan: what contradicts them, and whether the endpoint's site serves them.

use neph_model::{Measure, Parameter, ParameterName, ReflectorSpec};
use neph_text::{Fault, Problems};

use super::super::model::{Axes, ExperimentLength};
use super::super::typed::{TypedEndpoint, TypedPlan};

/// Whether a transfer is among what is measured.
pub(super) fn has_transfer(axes: &Axes) -> bool {
    axes.values(Parameter::measure).any(Measure::is_transfer)
}

/// What contradicts itself, with the parameter at whose place it stands.
pub(super) fn contradiction(axes: &Axes) -> Option<(ParameterName, Fault)> {
    for service in [&THROUGHPUT, &MEDIA] {
        let is_needed = needed_services(axes)
            .iter()
            .any(|needed| needed.parameter == service.parameter);
        if !is_needed && axes.parameters.contains_key(&service.parameter) {
            let (port, purpose) = (service.parameter, service.purpose);
            let message = format!("'{port}' is for {purpose}, and 'measure' names none");
            let fault = Fault::new(message, format!("add them to measure, or remove {port}"));
            return Some((port, fault));
        }
    }
    if !has_transfer(axes) {
        return None;
    }
    if axes.parameters.contains_key(&ParameterName::Flows) {
        let message = "a fleet measures messages only, and 'measure' names a transfer";
        let remedy = "write an endpoint of its own for the transfer";
        return Some((ParameterName::Measure, Fault::new(message, remedy)));
    }
    if let ExperimentLength::Duration(span) = axes.length
        && (span < Measure::SECOND || span.nanos() % Measure::SECOND.nanos() != 0)
    {
        let message =
            format!("a transfer lasts at least 1 s, in whole seconds, and the duration is {span}");
        let fault = Fault::new(message, "write a duration in whole seconds");
        return Some((ParameterName::Measure, fault));
    }
    None
}

/// A service that transfers of some kind need, and how plans and reflectors name it.
struct NeededService {
    parameter: ParameterName,
    serves: fn(&ReflectorSpec) -> Option<Parameter>,
    purpose: &'static str,
    remedy: &'static str,
}

const THROUGHPUT: NeededService = NeededService {
    parameter: ParameterName::ThroughputPort,
    serves: |spec| spec.throughput.map(Parameter::ThroughputPort),
    purpose: "throughput tests",
    remedy: "add \"--throughput\" to its reflector, or throughput_port = 7420 here if neph throughput serve \
             runs there",
};

const MEDIA: NeededService = NeededService {
    parameter: ParameterName::MediaPort,
    serves: |spec| spec.media.map(Parameter::MediaPort),
    purpose: "media streams",
    remedy: "add \"--media\" to its reflector, or media_port = 8554 here if neph media serve runs there",
};

/// What the transfers among these measures need.
fn needed_services(axes: &Axes) -> Vec<&'static NeededService> {
    let measures: Vec<Measure> = axes.values(Parameter::measure).copied().collect();
    let needed_service = |measure: &Measure| match measure {
        Measure::Messages => None,
        Measure::Throughput(_) | Measure::Transactions(_) => Some(&THROUGHPUT),
        Measure::Media(_) => Some(&MEDIA),
    };
    let mut needed_services: Vec<&NeededService> = Vec::new();
    for needed in measures.iter().filter_map(needed_service) {
        if !needed_services
            .iter()
            .any(|known| known.parameter == needed.parameter)
        {
            needed_services.push(needed);
        }
    }
    needed_services
}

/// A transfer goes to the port at which the reflector of the endpoint's site serves it.
pub(super) fn set_service_ports(
    axes: &mut Axes,
    endpoint_site: Option<&str>,
    endpoint: &TypedEndpoint,
    typed: &TypedPlan,
    problems: &Problems<'_>,
) {
    let mut sites = typed.sections.agents.iter();
    let site = endpoint_site.and_then(|name| sites.find(|site| site.name.value == name));
    let Some(reflector) = site.and_then(|site| site.reflector.as_ref()) else {
        return;
    };
    for needed in needed_services(axes) {
        if axes.parameters.contains_key(&needed.parameter) {
            continue;
        }
        if let Some(port) = (needed.serves)(reflector) {
            axes.parameters.insert(needed.parameter, vec![port]);
            continue;
        }
        let (site, service) = (endpoint_site.unwrap_or_default(), needed.purpose);
        let message = format!("the reflector of site '{site}' serves no {service}");
        problems.add(endpoint.span.clone(), Fault::new(message, needed.remedy));
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Measure;
    use neph_text::Source;

    use crate::expand::scenarios;
    use crate::plan::parse;

    const PLAN: &str = "version = 1\nname = \"p\"\ninterval = [\"10ms\", \"100ms\"]\nduration = \"30s\"\n\
        tls = [\"1.2\", \"1.3\"]\nfrom = [\"ams\", \"lju\"]\n\
        measure = [\"messages\", \"tcp throughput\", \"udp throughput 100Mbit/s\"]\n\
        [[site]]\nname = \"ams\"\nagent = \"a\"\n\
        [[site]]\nname = \"lju\"\nagent = \"l\"\nreflector = [\"--tls\", \"--throughput=7421\"]\n\
        [[endpoint]]\nname = \"to lju\"\nurl = \"wss://lju:8080\"\n";

    #[test]
    fn a_transfer_has_one_scenario_however_message_parameters_vary() {
        let plan = parse(&Source::new("p.toml", PLAN)).expect("a good plan");
        let matrix = scenarios(&plan);
        let transfers: Vec<_> = matrix
            .iter()
            .filter(|scenario| scenario.measure().is_transfer())
            .collect();
        assert_eq!((matrix.len(), transfers.len()), (2 * 2 + 2, 2));
        for scenario in transfers {
            assert_eq!(
                (scenario.messages, scenario.interval),
                (30, Measure::SECOND)
            );
            assert_eq!(
                scenario.parameters.throughput_port().map(|p| p.get()),
                Some(7421)
            );
            assert_eq!(scenario.parameters.tls(), None);
            assert_eq!(scenario.site(), Some("ams"));
        }
        let labels: Vec<String> = matrix.iter().map(neph_model::Scenario::label).collect();
        assert!(
            labels.contains(&"to lju · tcp throughput · 30 s".to_owned()),
            "{labels:?}"
        );
    }

    #[test]
    fn a_plan_with_only_transfers_needs_no_interval() {
        let text = "version = 1\nname = \"p\"\nduration = \"10s\"\nmeasure = \"tcp throughput\"\n\
            [[endpoint]]\nname = \"e\"\nurl = \"udp://10.0.0.2\"\n";
        let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
        let matrix = scenarios(&plan);
        assert_eq!((matrix.len(), matrix[0].messages), (1, 10));
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
            ("\"tcp throughput\"", "\"throughput\"", "names nothing"),
            ("100Mbit/s", "", "max for the highest possible"),
            (", \"--throughput=7421\"", "", "serves no throughput tests"),
            ("--throughput=7421", "--throughput=0", "--throughput"),
            ("\"30s\"", "\"900ms\"", "lasts at least 1 s"),
            ("\"30s\"", "\"1500ms\"", "in whole seconds"),
            (
                "measure = [\"messages\", \"tcp throughput\", \"udp throughput 100Mbit/s\"]",
                "throughput_port = 7420",
                "'measure' names none",
            ),
        ] {
            let message = problem_after(from, to);
            assert!(message.contains(part), "{message}");
        }
        let fleet = "version = 1\nname = \"p\"\nduration = \"10s\"\ninterval = \"1s\"\nflows = 8\n\
            measure = \"tcp throughput\"\n[[endpoint]]\nname = \"e\"\nurl = \"udp://10.0.0.2\"\n";
        let problems = parse(&Source::new("p.toml", fleet)).expect_err("a mistake");
        assert!(problems[0].to_string().contains("an endpoint of its own"));
    }
}
