use neph_model::{BitRate, ByteSize, Span};

use super::*;
use crate::gate::{GilbertElliott, Jitter, Loss, QueueLimit, Share};

const TWO: &str = r#"
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

fn parse(text: &str) -> Result<Topology, Vec<Problem>> {
    Topology::parse(&Source::new("lab.toml", text))
}

fn only_mistake(text: &str) -> Problem {
    let mut mistakes = parse(text).expect_err("there is a mistake");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.remove(0)
}

#[test]
fn directions_override_what_is_said_for_both() {
    let topology = parse(TWO).expect("fine");
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

/// [`TWO`], with `features` for its link instead of its delay.
fn with(features: &str) -> String {
    TWO.replace("delay = \"6ms\"", features)
}

#[test]
fn bursts_damage_and_limits_are_read() {
    let loss = "loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"20%\", good = \"0.5%\" }";
    let rest = "corrupt = \"1%\"\nduplicate = \"2%\"\nreorder = \"3%\"\nmtu = 1400\n\
                delay = \"4ms\"\njitter = \"pareto 1ms\"\nqueue = \"50 packets\"";
    let topology = parse(&with(&format!("{loss}\n{rest}"))).expect("fine");
    let shape = &topology.links[0].a_to_b;
    let percent = |tenths: u32| Share::from_billionths(tenths * 1_000_000);
    let model = GilbertElliott {
        to_bad: percent(10),
        to_good: percent(200),
        loss_good: percent(5),
        loss_bad: Share::ALL,
    };
    assert_eq!(shape.wire.loss, Loss::GilbertElliott(model));
    assert_eq!(shape.wire.corrupt, percent(10));
    assert_eq!(shape.wire.duplicate, percent(20));
    assert_eq!(shape.wire.reorder, percent(30));
    assert_eq!(shape.mtu, Some(1400));
    assert_eq!(shape.wire.jitter, Jitter::Pareto(Span::from_millis(1)));
    let back = &topology.links[0].b_to_a;
    assert_eq!(back.queue, QueueLimit::Packets(50));
    assert_eq!(back.wire.loss, Loss::Random(percent(10)));
}

#[test]
fn a_trace_is_found_beside_the_topology() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.txt"), "1ms\n2ms\n").expect("write");
    let name = folder.path().join("lab.toml").display().to_string();
    let read = |file: &str| {
        let text = with(&format!("jitter = \"trace {file}\""));
        Topology::parse(&Source::new(name.clone(), text))
    };
    let topology = read("day.txt").expect("fine");
    let Jitter::Trace(trace) = &topology.links[0].a_to_b.wire.jitter else {
        panic!("{topology:?}");
    };
    assert_eq!(trace.delays(), [Span::from_millis(1), Span::from_millis(2)]);
    let mistakes = read("night.txt").expect_err("there is none");
    assert!(mistakes[0].what.contains("night.txt cannot be read"));
    assert_eq!(mistakes[0].place.to_string(), "19:10");
}

#[test]
fn what_the_features_of_a_link_cannot_be_is_placed() {
    let burst = "loss = { model = \"gilbert\", p = \"1%\" }";
    for (features, place, part) in [
        (burst, "19:18", "known here: gilbert-elliott"),
        (burst, "19:8", "add it"),
        ("queue = \"0 packets\"", "19:9", "from 1 to 1000000"),
        ("mtu = 9000", "19:7", "from 576 to 1500"),
        ("corrupt = \"101%\"", "19:11", "from 0% to 100%"),
    ] {
        let mistakes = parse(&with(features)).expect_err(features);
        let found = mistakes
            .iter()
            .any(|it| it.place.to_string() == place && it.remedy.contains(part));
        assert!(found, "{features}: {mistakes:?}");
    }
}

#[test]
fn what_a_kind_of_link_cannot_do_is_placed_where_it_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.txt"), "1ms\n").expect("write");
    let text = with("kind = \"netem\"").replace("uniform 1ms", "trace day.txt");
    let name = folder.path().join("lab.toml").display().to_string();
    let mistakes = Topology::parse(&Source::new(name, text)).expect_err("netem has no traces");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert_eq!(mistakes[0].place.to_string(), "21:49");
    assert!(mistakes[0].what.contains("\"netem\" cannot follow a trace"));
}

#[test]
fn an_unknown_key_is_placed_and_the_nearest_name_offered() {
    let mistake = only_mistake(&TWO.replace("delay = \"6ms\"", "dealy = \"6ms\""));
    assert_eq!(
        mistake.to_string(),
        "lab.toml:19:1: 'dealy' is not known here; did you mean 'delay'?"
    );
}

#[test]
fn a_site_that_cannot_be_read_is_not_told_again_at_its_links() {
    let mistake = only_mistake(&TWO.replace("10.0.0.2/24", "10.0.0.256"));
    assert_eq!(mistake.what, "\"10.0.0.256\" is no address");
}

#[test]
fn mistakes_are_placed_with_a_remedy() {
    for (from, to, place, part) in [
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
        let text = TWO.replace(from, to);
        let mistakes = parse(&text).expect_err(to);
        let first = &mistakes[0];
        assert_eq!(first.place.to_string(), place, "{to}: {first}");
        assert!(first.remedy.contains(part), "{to}: {first}");
    }
}

#[test]
fn an_island_is_refused() {
    let text = format!("{TWO}\n[[site]]\nname = \"island\"\naddress = \"10.0.0.3\"\n");
    let mistake = only_mistake(&text);
    assert_eq!(mistake.what, "'client' cannot reach 'island'");
}

#[test]
fn a_broken_syntax_and_a_missing_version_are_placed() {
    let mistake = only_mistake("version = 1\n[[site]\n");
    assert_eq!(mistake.place.line, 2, "{mistake}");
    let mistakes = parse(&TWO.replace("version = 1", "")).expect_err("no version");
    assert_eq!(mistakes[0].remedy, "begin the file with version = 1");
}

#[test]
fn the_shipped_topologies_are_right() {
    for text in [
        include_str!("../../../topologies/demo.toml"),
        include_str!("../../../topologies/idle.toml"),
    ] {
        parse(text).expect("shipped");
    }
}
