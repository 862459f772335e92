//! Checks the examples of docs/topology.md and its sub-pages. The test `docs` of neph checks their keys.

use neph_text::Source;

use super::*;

const PAGE: &str = include_str!("../../../../../docs/topology.md");

const SERVICES: &str = include_str!("../../../../../docs/topology-services.md");

const OVERLAYS: &str = include_str!("../../../../../docs/topology-overlays.md");

const GUESTS: &str = include_str!("../../../../../docs/topology-guests.md");

const PATHS: &str = include_str!("../../../../../docs/topology-paths.md");

const SITES: &str = "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.0.0.1\"\n\
                     [[site]]\nname = \"server\"\naddress = \"10.0.0.2\"\n";

/// The chapter on links, up to the next chapter.
fn links_chapter() -> &'static str {
    let start = PAGE.find("\n## Links").expect("the chapter on links");
    let chapter = &PAGE[start + 1..];
    let end = chapter.find("\n## ").unwrap_or(chapter.len());
    &chapter[..end]
}

fn examples(chapter: &str) -> impl Iterator<Item = &str> {
    let parts = chapter.split("```toml\n").skip(1);
    parts.map(|part| part.split("```").next().expect("split gives one"))
}

#[test]
fn every_example_of_nodes_and_shapes_is_a_valid_topology() {
    let nodes = PAGE.split("\n## Links").next().expect("split gives one");
    assert_eq!(examples(nodes).count(), 7);
    for example in examples(nodes) {
        // The next chapter explains how nodes are connected; here the test connects them.
        let version = if example.contains("version") {
            ""
        } else {
            "version = 1\n"
        };
        let links = match example {
            _ if example.contains("[[switch]]") => {
                "[[site]]\nname = \"a\"\n[[link]]\na = \"a\"\nb = \"core\"\n\
                 [[link]]\na = \"core\"\nb = \"rack\"\n"
            }
            _ => "",
        };
        let source = Source::new("docs.toml", format!("{version}{example}{links}"));
        let topology = Topology::parse(&source);
        assert!(topology.is_ok(), "{topology:?}\n{example}");
    }
}

#[test]
fn every_example_of_services_is_a_valid_topology() {
    assert_eq!(examples(SERVICES).count(), 3);
    for example in examples(SERVICES) {
        let extra_toml = "[[site]]\nname = \"one\"\n[[site]]\nname = \"two\"\n\
                    [[generate]]\nshape = \"star\"\nnames = [\"x\"]\n";
        let links = ["client", "server", "one", "two"]
            .map(|site| format!("[[link]]\na = \"{site}\"\nb = \"hub\"\n"));
        let text = format!("{SITES}{extra_toml}{}{example}", links.concat());
        let topology = Topology::parse(&Source::new("docs.toml", text));
        assert!(topology.is_ok(), "{topology:?}\n{example}");
    }
}

#[test]
fn every_example_of_a_link_is_a_valid_topology() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.csv"), "delay_ms\n4.2\n7\n").expect("write");
    let name = folder.path().join("docs.toml").display().to_string();
    let examples: Vec<&str> = examples(links_chapter()).collect();
    assert!(examples.len() >= 8, "{}", examples.len());
    for example in examples {
        let source = Source::new(name.clone(), format!("{SITES}{example}"));
        let topology = Topology::parse(&source);
        assert!(topology.is_ok(), "{topology:?}\n{example}");
    }
}

#[test]
fn every_example_of_an_overlay_or_a_proxy_is_a_valid_topology() {
    let examples: Vec<&str> = examples(OVERLAYS).collect();
    let [pods, vxlan, bridge, docker, proxies] = examples[..] else {
        panic!("{} examples", examples.len())
    };
    let hosts = "version = 1\n[[generate]]\nshape = \"star\"\n\
                 names = [\"paris\", \"milan\", \"mesh\", \"edge\", \"server\"]\n";
    for parts in [[pods, vxlan], [pods, bridge], ["", docker], ["", proxies]] {
        let text = format!("{hosts}{}", parts.concat());
        let topology = Topology::parse(&Source::new("docs.toml", text));
        assert!(topology.is_ok(), "{topology:?}\n{parts:?}");
    }
}

#[test]
fn every_overlay_and_balancer_is_documented() {
    let kinds = crate::links::OVERLAY_KINDS
        .iter()
        .chain(crate::links::BALANCER_KINDS);
    for kind in kinds {
        let name = kind.name();
        let spellings = [format!("`{name}`"), format!("kind = \"{name}\"")];
        let is_reported = |page: &str| spellings.iter().any(|spelling| page.contains(spelling));
        assert!(is_reported(OVERLAYS) || is_reported(SERVICES), "{name}");
    }
}

#[test]
fn the_guest_example_is_valid_and_every_guest_kind_is_documented() {
    let examples: Vec<&str> = examples(GUESTS).collect();
    let [guest_kind] = examples[..] else {
        panic!("{} examples", examples.len())
    };
    let read = |text: String| Topology::parse(&Source::new("docs.toml", text));
    let topology = read(format!("version = 1\n{guest_kind}"));
    assert!(topology.is_ok(), "{topology:?}");
    let kinds = crate::links::GUEST_KINDS.iter().map(|kind| kind.name());
    for word in kinds {
        assert!(GUESTS.contains(&format!("| `{word}` |")), "{word}");
    }
}

#[test]
fn settings_that_do_not_reach_a_guest_kernel_are_refused_with_a_remedy() {
    let guest = examples(GUESTS).next().expect("one");
    let service = "[[service]]\nname = \"x\"\nsite = \"vm1\"\ncommand = [\"true\"]\n";
    let traffic = "[[traffic]]\nfrom = \"host\"\nto = \"vm1\"\nuntil = \"1s\"\n";
    let setting = guest.replace("cpus = [1]", "sysctls = { \"net.ipv4.tcp_sack\" = 0 }");
    for (text, part) in [
        (format!("{guest}{service}"), "service 'x' is at 'vm1'"),
        (
            format!("{guest}{traffic}"),
            "ends at 'vm1', which is a guest",
        ),
        (setting, "'sysctls' does not reach its kernel"),
        (guest.replace("inside", "# "), "is not inside another site"),
        (
            guest.replace("bandwidth", "memory = \"1MiB\" #"),
            "no memory for a guest",
        ),
    ] {
        let text = format!("version = 1\n{text}");
        let problems = Topology::parse(&Source::new("t", text)).expect_err(part);
        let is_reported = problems
            .iter()
            .any(|problem| problem.message.contains(part));
        assert!(is_reported, "{part}: {problems:?}");
    }
}

#[test]
fn the_paths_page_has_valid_examples_and_every_key() {
    assert_eq!(examples(PATHS).count(), 3);
    for example in examples(PATHS) {
        let version = if example.contains("version") {
            ""
        } else {
            SITES
        };
        let topology = Topology::parse(&Source::new("docs.toml", format!("{version}{example}")));
        assert!(topology.is_ok(), "{topology:?}\n{example}");
    }
    for key in [
        "splitting",
        "season",
        "every",
        "swing",
        "period",
        "preference",
        "demand",
        "direction",
        "site",
        "reshuffle",
    ] {
        assert!(PATHS.contains(&format!("| `{key}` |")), "{key}");
    }
}
