use proptest::prelude::*;

use super::*;
use crate::{Fields, Source};

fn read(text: &str) -> (Node, Vec<String>) {
    let source = Source::new("s.yaml", text);
    let problems = Problems::new(&source);
    let node = parse_yaml(&problems);
    let mistakes = problems.verdict(Some(())).err().unwrap_or_default();
    (node, mistakes.iter().map(ToString::to_string).collect())
}

#[test]
fn lists_of_tables_and_scalars_keep_their_positions() {
    let text = "# größe\nruns: 24\nendpoints:\n- name: \"ü\"\n  ip: 1.2.3.4\n- name: b\nok: true\n";
    let source = Source::new("s.yaml", text);
    let problems = Problems::new(&source);
    let node = parse_yaml(&problems);
    let mut fields = Fields::of(&node, &problems).expect("a table");
    let runs = fields.required::<u32>("runs").expect("there");
    assert_eq!((runs.value, &text[runs.span]), (24, "24"));
    assert!(fields.required::<bool>("ok").expect("there").value);
    let mut endpoints = fields.tables("endpoints");
    let ip = endpoints[0].required::<String>("ip").expect("there");
    assert_eq!(
        (ip.value.as_str(), &text[ip.span.clone()]),
        ("1.2.3.4", "1.2.3.4")
    );
    assert_eq!(source.position(ip.span).to_string(), "5:7");
    assert_eq!(endpoints.len(), 2);
}

#[test]
fn refused_yaml_is_reported_with_its_position() {
    let (_, mistakes) = read("a: 1\na: 2\n");
    assert_eq!(
        mistakes,
        ["s.yaml:2:1: 'a' is given twice; remove one of them"]
    );
    let (_, mistakes) = read("a: &x 1\nb: *x\n");
    assert_eq!(
        mistakes,
        ["s.yaml:2:4: aliases are not taken; write the value out"]
    );
    let (_, mistakes) = read(&"[".repeat(40));
    assert!(mistakes[0].contains("nested deeper"), "{mistakes:?}");
    let (_, mistakes) = read("a: [1, 2\nb: 3\n");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    let (_, mistakes) = read("a: 1\n---\nb: 2\n");
    assert!(
        mistakes[0].starts_with("s.yaml:2:1: a second document"),
        "{mistakes:?}"
    );
}

#[test]
fn scalars_follow_the_core_schema() {
    for (text, value) in [
        ("0x1F", Value::Integer(31)),
        ("-12", Value::Integer(-12)),
        ("1.5", Value::Real(1.5)),
        ("\"80\"", Value::Text("80".into())),
        ("~", Value::Nothing),
        ("inf", Value::Text("inf".into())),
        ("203.0.113.5:8080", Value::Text("203.0.113.5:8080".into())),
    ] {
        assert_eq!(read(text).0.value, value, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[a-c\\[\\]{}:,?|>&*!%@`\"'\\n\\t 0-9_#ü-]{0,80}") {
        read(&text);
    }
}
