//! The examples of docs/topology.md are what they say they are.

use neph_text::Source;

use super::*;

const PAGE: &str = include_str!("../../../../../docs/topology.md");

const SITES: &str = "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.0.0.1\"\n\
                     [[site]]\nname = \"server\"\naddress = \"10.0.0.2\"\n";

/// The chapter on links, up to the next chapter.
fn links_chapter() -> &'static str {
    let start = PAGE.find("\n## Links").expect("the chapter on links");
    let chapter = &PAGE[start + 1..];
    let end = chapter.find("\n## ").unwrap_or(chapter.len());
    &chapter[..end]
}

#[test]
fn every_example_of_a_link_is_a_good_topology() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.csv"), "delay_ms\n4.2\n7\n").expect("write");
    let name = folder.path().join("docs.toml").display().to_string();
    let parts = links_chapter().split("```toml\n").skip(1);
    let examples: Vec<&str> = parts
        .map(|part| part.split("```").next().expect("split gives one"))
        .collect();
    assert!(examples.len() >= 8, "{}", examples.len());
    for example in examples {
        let source = Source::new(name.clone(), format!("{SITES}{example}"));
        let topology = Topology::parse(&source);
        assert!(topology.is_ok(), "{topology:?}\n{example}");
    }
}

#[test]
fn every_key_of_a_link_is_on_the_page() {
    let chapter = links_chapter();
    for key in [
        "delay",
        "jitter",
        "loss",
        "corrupt",
        "duplicate",
        "reorder",
        "rate",
        "queue",
        "discipline",
        "mtu",
        "kind",
        "at",
        "until",
        "every",
        "direction",
        "path",
        "weight",
        "reshuffle",
    ] {
        assert!(chapter.contains(&format!("| `{key}` |")), "{key}");
    }
}
