use super::*;
use crate::{Bytes, Nanos, Percent, Port, Source, parse_toml};

fn problems_of(text: &str, read: impl Fn(&mut Fields<'_>)) -> Vec<String> {
    let source = Source::new("p.toml", text);
    let problems = Problems::new(&source);
    let table = parse_toml(&problems);
    let mut fields = Fields::new(&table, 0..0, &problems);
    read(&mut fields);
    fields.finish();
    match problems.verdict(Some(())) {
        Ok(()) => Vec::new(),
        Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_mistake_is_reported_with_its_position_and_remedy() {
    let text = "interval = 25\nsize = \"10 KB\"\nprot = 80\nshare = \"200%\"\n";
    let problems = problems_of(text, |fields| {
        assert_eq!(fields.optional::<Nanos>("interval"), None);
        assert_eq!(fields.optional::<Bytes>("size"), None);
        assert_eq!(fields.optional::<Port>("port"), None);
        assert_eq!(fields.optional::<Percent>("share"), None);
        assert!(fields.required::<String>("name").is_none());
    });
    let expected = [
        "p.toml:1:1: 'name' is missing; add it",
        "p.toml:1:12: 25 has no unit; write for example \"25ms\" or \"25s\"",
        "p.toml:2:8: \"10 KB\" is not a size: 'KB' is none of B, kB, MB, GB, KiB, MiB, GiB; \
         write for example \"64B\", \"100kB\" or \"10KiB\"",
        "p.toml:3:1: 'prot' is not known here; did you mean 'port'?",
        "p.toml:4:9: \"200%\" is no share; write a share from 0% to 100% such as \"0.1%\"",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn a_single_value_is_parsed_like_a_list_of_one() {
    let text = "a = \"25ms\"\nb = [1, 2]\nc = [1, 2, 1]\nd = []\n";
    let problems = problems_of(text, |fields| {
        let a = fields.one_or_list::<Nanos>("a").expect("there");
        assert_eq!(
            (a.len(), a[0].value, a[0].span.clone()),
            (1, Nanos(25_000_000), 4..10)
        );
        let b = fields.one_or_list::<u32>("b").expect("there");
        assert_eq!(b.iter().map(|n| n.value).collect::<Vec<_>>(), [1, 2]);
        fields.one_or_list::<u32>("c");
        fields.one_or_list::<u32>("d");
        assert!(fields.one_or_list::<u32>("absent").is_none());
    });
    let expected = [
        "p.toml:3:12: 'c' holds this value twice; remove one of them",
        "p.toml:4:5: 'd' is an empty list; write at least one value",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn a_file_of_many_mistakes_reports_100_and_counts_the_rest() {
    let text = (0..250).fold(String::new(), |text, n| text + &format!("k{n} = 1\n"));
    let problems = problems_of(&text, |_| ());
    assert_eq!(problems.len(), 101);
    assert!(
        problems[100].contains("150 more mistakes"),
        "{}",
        problems[100]
    );
}

#[test]
fn problems_of_a_hostile_file_are_short_and_harmless() {
    let text = format!("\"a\\u001b[2J{}\" = 1\n", "x".repeat(10_000));
    let problems = problems_of(&text, |_| ());
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].len() < 800 && !problems[0].contains('\u{1b}'),
        "{}",
        problems[0]
    );
}

#[test]
fn an_excessively_long_list_is_refused() {
    let text = format!("a = [{}]", "1,".repeat(5_000));
    let problems = problems_of(&text, |fields| {
        fields.one_or_list::<u32>("a");
    });
    assert_eq!(
        problems,
        ["p.toml:1:5: 'a' holds 5000 values; write at most 4096"]
    );
}
