use neph_model::{BitRate, ByteSize, Span};

use super::*;
use crate::gate::{Jitter, QueueLimit};

pub(super) const TWO_SITES: &str = r#"
version = 1

[[site]]
name = "client"
address = "10.0.0.1/24"
labels = { access = "home" }
sysctls = { "net.ipv4.tcp_slow_start_after_idle" = 0 }
congestion_control = "cubic"

[[site]]
name = "server"
address = "10.0.0.2/24"
address_v6 = "fd00::2/64"

[[link]]
a = "client"
b = "server"
delay = "6ms"
a_to_b = { rate = "3Mbit/s", queue = "64KiB" }
b_to_a = { delay = "7ms", loss = "1%", jitter = "uniform 1ms" }
"#;

pub(super) fn parse(text: &str) -> Result<Topology, Vec<Problem>> {
    Topology::parse(&Source::new("lab.toml", text))
}

fn single_mistake(text: &str) -> Problem {
    let mut mistakes = parse(text).expect_err("there is a mistake");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.remove(0)
}

#[test]
fn directions_override_the_values_of_a_link() {
    let topology = parse(TWO_SITES).expect("fine");
    let link = &topology.links[0];
    assert_eq!(link.name, "client-server");
    assert_eq!(link.a_to_b.wire.delay, Span::from_millis(6));
    assert_eq!(link.a_to_b.rate, Some(BitRate(3_000_000)));
    assert_eq!(link.a_to_b.queue, QueueLimit::Bytes(ByteSize(65_536)));
    assert_eq!(link.b_to_a.wire.delay, Span::from_millis(7));
    assert_eq!(link.b_to_a.rate, None);
    assert_eq!(
        link.b_to_a.wire.jitter,
        Jitter::Uniform(Span::from_millis(1))
    );
    let client = &topology.sites[0];
    assert_eq!(client.sysctls["net.ipv4.tcp_slow_start_after_idle"], "0");
    assert_eq!(client.labels["access"], "home");
    assert_eq!(client.congestion_control.as_deref(), Some("cubic"));
}

#[test]
fn an_unknown_key_is_reported_at_its_position_with_the_nearest_name() {
    let mistake = single_mistake(&TWO_SITES.replace("delay = \"6ms\"", "dealy = \"6ms\""));
    assert_eq!(
        mistake.to_string(),
        "lab.toml:19:1: 'dealy' is not known here; did you mean 'delay'?"
    );
}

#[test]
fn an_invalid_site_is_reported_once_and_not_at_its_links() {
    let mistake = single_mistake(&TWO_SITES.replace("10.0.0.2/24", "10.0.0.256"));
    assert_eq!(mistake.message, "\"10.0.0.256\" is no address");
}

#[test]
fn mistakes_are_reported_with_position_and_remedy() {
    for (from, to, position, part) in [
        ("\"6ms\"", "6", "19:9", "write a text in quotes"),
        ("\"3Mbit/s\"", "\"3 Mb\"", "20:19", "Mbit/s"),
        (
            "b = \"server\"",
            "b = \"sever\"",
            "18:5",
            "did you mean 'server'?",
        ),
        (
            "b = \"server\"",
            "b = \"client\"",
            "16:1",
            "name two different sites",
        ),
        ("10.0.0.2/24", "10.0.0.2/33", "13:11", "10.0.0.1/24"),
        ("10.0.0.2/24", "10.0.0.1/24", "11:1", "its own address"),
        (
            "delay = \"6ms\"",
            "kind = \"netm\"",
            "19:8",
            "did you mean 'netem'?",
        ),
        ("version = 1", "version = 2", "2:11", "write version = 1"),
        (
            "name = \"server\"",
            "name = \"wire\"\n",
            "12:8",
            "the lab's own",
        ),
        ("rate = \"3Mbit/s\", ", "", "20:20", "drop it"),
        ("\"net.ipv4.tcp", "\"kernel.tcp", "8:13", "below net."),
    ] {
        let text = TWO_SITES.replace(from, to);
        let mistakes = parse(&text).expect_err(to);
        let first = &mistakes[0];
        assert_eq!(first.position.to_string(), position, "{to}: {first}");
        assert!(first.remedy.contains(part), "{to}: {first}");
    }
}

#[test]
fn an_unreachable_site_is_refused() {
    let text = format!("{TWO_SITES}\n[[site]]\nname = \"island\"\naddress = \"10.0.0.3\"\n");
    let mistake = single_mistake(&text);
    assert_eq!(mistake.message, "'client' cannot reach 'island'");
}

#[test]
fn broken_syntax_and_a_missing_version_are_reported_with_position() {
    let mistake = single_mistake("version = 1\n[[site]\n");
    assert_eq!(mistake.position.line, 2, "{mistake}");
    let mistakes = parse(&TWO_SITES.replace("version = 1", "")).expect_err("no version");
    assert_eq!(mistakes[0].remedy, "begin the file with version = 1");
}

#[test]
fn the_shipped_topologies_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file");
        let read = parse(&text);
        assert!(read.is_ok(), "{}: {read:?}", path.display());
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let page = include_str!("../../../../../docs/topology-paths.md");
        let others = ["demo.toml", "idle.toml"];
        assert!(
            others.contains(&name.as_str()) || page.contains(&format!("`{name}`")),
            "{name} is on no page"
        );
        names.push(name);
    }
    assert!(names.len() >= 8, "{names:?}");
}

#[test]
fn sites_inside_another_site_have_no_ipv6() {
    let text = |extra_keys: &str| {
        format!(
            "version = 1\nnetwork_v6 = \"fd00::/64\"\n\
             site = [{{name = \"h\"}}, {{name = \"vm\", inside = \"h\"{extra_keys}}}, {{name = \"b\"}}]\n\
             link = [{{a = \"h\", b = \"b\"}}]\n\
             guest = [{{name = \"m\", kind = \"uml\", sites = [\"vm\"]}}]\n"
        )
    };
    let topology = Topology::parse(&Source::new("lab", text(""))).expect("fine");
    let v6 = |site: usize| topology.sites[site].v6.map(|v6| v6.address.to_string());
    assert_eq!(v6(0).as_deref(), Some("fd00::1"));
    assert_eq!(v6(1), None);
    assert_eq!(v6(2).as_deref(), Some("fd00::3"), "as it always was");
    let requested = text(", address_v6 = \"fd00::9\"");
    let mistakes = Topology::parse(&Source::new("lab", requested)).expect_err("no IPv6");
    let message = mistakes[0].to_string();
    assert!(message.starts_with("lab:3:"), "{message}");
    assert!(
        message.contains("has no IPv6") && message.contains("remove address_v6"),
        "{message}"
    );
}
