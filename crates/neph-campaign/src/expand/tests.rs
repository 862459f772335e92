use neph_text::Source;

use super::*;
use crate::plan::parse;

fn plan(text: &str) -> Plan {
    parse(&Source::new("p.toml", text)).expect("no mistakes")
}

const TWO_ENDPOINTS: &str = r#"
version = 1
name = "two"
interval = ["25ms", "100ms"]
request_size = [64, "1KiB"]
duration = "1s"
[[endpoint]]
name = "a"
url = "wss://a"
tls = ["1.2", "1.3"]
[[endpoint]]
name = "b"
url = "udp://b"
"#;

#[test]
fn the_matrix_has_every_parameter_combination_in_order() {
    let scenarios = scenarios(&plan(TWO_ENDPOINTS));
    assert_eq!(scenarios.len(), 2 * 2 * 2 + 2 * 2);
    let labels: Vec<String> = scenarios.iter().map(Scenario::label).collect();
    assert_eq!(labels[0], "a · every 25 ms · 64 B · tls 1.2");
    assert_eq!(labels[1], "a · every 25 ms · 64 B · tls 1.3");
    assert_eq!(labels[2], "a · every 25 ms · 1 KiB · tls 1.2");
    assert_eq!(labels[11], "b · every 100 ms · 1 KiB");
    assert_eq!((scenarios[0].messages, scenarios[11].messages), (40, 10));
    assert_eq!(
        scenarios[11].response_size,
        ByteSize(1024),
        "STAMP replies are symmetric"
    );
    assert!(scenarios.iter().map(|scenario| scenario.index).eq(0..12));
    let ids: BTreeSet<ScenarioId> = scenarios.iter().map(|scenario| scenario.id).collect();
    assert_eq!(ids.len(), 12);
}

#[test]
fn a_scenario_id_depends_only_on_its_parameter_values() {
    let expanded = scenarios(&plan(TWO_ENDPOINTS));
    // The same scenarios in a plan that varies less: other index, other labels, same identity.
    let from_smaller_plan = scenarios(&plan(
        &TWO_ENDPOINTS
            .replace("[\"1.2\", \"1.3\"]", "\"1.3\"")
            .replace("two", "x"),
    ));
    assert_eq!(from_smaller_plan[0].id, expanded[1].id);
    assert_eq!(
        (from_smaller_plan[0].varied.len(), expanded[1].varied.len()),
        (0, 1)
    );
    let with_slower_interval = scenarios(&plan(&TWO_ENDPOINTS.replace("100ms", "101ms")));
    assert_eq!(
        (
            with_slower_interval[0].id,
            with_slower_interval[11].id == expanded[11].id
        ),
        (expanded[0].id, false)
    );
}

#[test]
fn an_identity_never_changes_between_versions() {
    let first = &scenarios(&plan(TWO_ENDPOINTS))[0];
    assert_eq!(
        canonical_text(first),
        "nephoscope scenario 1\nendpoint=a\ntarget=wss://a\nprobe=ws\ninterval_ns=25000000\n\
         request_bytes=64\nresponse_bytes=64\nmessages=40\nparameter timeout=5.000 s\n\
         parameter tls=1.2\n"
    );
    // sha256sum of the text above begins with these 16 digits.
    assert_eq!(first.id.to_string(), "9d99e0e4950e1183");
}

#[test]
fn skips_exclude_matching_scenarios() {
    let text = TWO_ENDPOINTS.to_owned()
        + "[[skip]]\nendpoint = \"a\"\ninterval = \"25ms\"\ntls = \"1.2\"\n\
           [[skip]]\nrequest_size = \"1KiB\"\nendpoint = [\"b\"]\n";
    let scenarios = scenarios(&plan(&text));
    assert_eq!(scenarios.len(), 12 - 2 - 2);
    assert!(scenarios.iter().map(|scenario| scenario.index).eq(0..8));
}

#[test]
fn several_reply_sizes_appear_in_scenario_labels() {
    let scenarios = scenarios(&plan(
        &TWO_ENDPOINTS.replace("duration", "response_size = [64, 128]\nduration"),
    ));
    assert_eq!(
        scenarios[0].label(),
        "a · every 25 ms · 64 B · response_size 64 B (neph reflector: 68 B) · tls 1.2"
    );
    assert_eq!(
        scenarios.last().expect("some").label(),
        "b · every 100 ms · 1 KiB"
    );
    // Sizes that round to the same text are still several.
    let scenarios = self::scenarios(&plan(
        &TWO_ENDPOINTS.replace("duration", "response_size = [1472, 1473]\nduration"),
    ));
    assert!(scenarios[0].label().contains("response_size 1472 B"));
    assert!(
        scenarios
            .iter()
            .any(|scenario| scenario.label().contains("response_size 1473 B"))
    );
}

/// Different requested sizes with one size on the wire are measured once, under the true size.
#[test]
fn udp_sizes_are_raised_to_the_size_on_the_wire_with_a_note() {
    let text = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 10\n\
                request_size = [16, 44, 56, 104, 1472]\n[[endpoint]]\nname = \"u\"\n\
                url = \"udp://192.0.2.1\"\n[[skip]]\nrequest_size = [1472]\n";
    let plan = crate::plan::parse(&neph_text::Source::new("p.toml", text)).expect("a good plan");
    let sizes: Vec<u64> = scenarios(&plan)
        .iter()
        .map(|scenario| scenario.request_size.bytes())
        .collect();
    assert_eq!(sizes, [104, 44]);
    let message = plan.notes.join("\n");
    assert!(
        message.contains("endpoint 'u': udp: 16 B is raised to 104 B"),
        "{message}"
    );
    assert!(
        message.contains("56 B is raised to 104 B") && !message.contains("44 B is raised"),
        "{message}"
    );
}

/// A plan with loads; `stress` is its list.
fn plan_with_loads(stress: &str) -> String {
    format!(
        "version = 1\nname = \"loaded\"\ninterval = \"25ms\"\nrequest_size = 64\nduration = \"1s\"\n\
         stress = {stress}\n[[endpoint]]\nname = \"a\"\nurl = \"udp://10.0.0.1:80\"\n\
         [lab]\ntopology = \"t.toml\"\nprober = \"client\"\n"
    )
}

#[test]
fn a_named_load_has_the_same_scenario_id_with_its_name_as_label() {
    let named_loads = "[\"none\", { name = \"busy neighbour\", load = \"vm1  80%, vm2 9%\" }]";
    let (named_plan, plain_plan) = (
        plan(&plan_with_loads(named_loads)),
        plan(&plan_with_loads("[\"none\", \"vm1 80%, vm2 9%\"]")),
    );
    let (named_scenarios, plain_scenarios) = (scenarios(&named_plan), scenarios(&plain_plan));
    let labels = Scenario::labels_apart(&named_scenarios);
    assert_eq!(labels, ["stress none", "busy neighbour"]);
    let ids = |scenarios: &[Scenario]| {
        scenarios
            .iter()
            .map(|scenario| scenario.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&named_scenarios), ids(&plain_scenarios));
    let load = named_scenarios[1].parameters.stress().expect("a load");
    let requested = crate::stress::parse("vm1 80%, vm2 9%").expect("a load");
    assert_eq!(load.loads(), requested.loads());
}

#[test]
fn a_skip_matches_a_named_load_by_its_specification() {
    let text = plan_with_loads("[\"none\", { name = \"busy\", load = \"vm1 80%\" }]")
        + "[[skip]]\nstress = \"vm1 80%\"\n";
    assert_eq!(scenarios(&plan(&text)).len(), 1);
}

#[test]
fn ambiguous_or_invalid_load_names_are_refused() {
    for (stress, message) in [
        (
            "[{ name = \"a\", load = \"vm1 8%\" }, { name = \"a\", load = \"vm1 9%\" }]",
            "'a' names",
        ),
        (
            "[{ name = \"a\", load = \"vm1 8%\" }, { name = \"b\", load = \"vm1 8%\" }]",
            "is called 'a' and 'b'",
        ),
        (
            "[{ name = \"a\", load = \"vm1 8%\" }, \"vm1 8%\"]",
            "is called 'a' and no name",
        ),
        (
            "[{ name = \"none\", load = \"vm1 8%\" }]",
            "is no name of a load",
        ),
        (
            "[{ name = \"\", load = \"vm1 8%\" }]",
            "is no name of a load",
        ),
        (
            "[{ name = \"a = b\", load = \"vm1 8%\" }]",
            "is no name of a load",
        ),
        ("[{ name = \"a\" }]", "lacks its name or its load"),
        (
            "[{ name = \"a\", load = \"vm1 8%\", x = 1 }]",
            "has no key 'x'",
        ),
        ("[{ name = \"a\", load = \"vm1\" }]", "is no load"),
        ("[\"a = vm1 8%\"]", "is no load"),
    ] {
        let problems = parse(&Source::new("p.toml", plan_with_loads(stress))).expect_err(stress);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages.len(), 1, "{stress}: {messages:#?}");
        assert!(messages[0].contains(message), "{stress}: {messages:#?}");
    }
}
