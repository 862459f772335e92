//! Valid `[[link]]` tables, and the messages for faults.

use neph_model::{BitRate, Span};

use super::tests::{TWO_SITES, parse};
use super::*;
use crate::direction::Direction;
use crate::gate::{
    ChangeAction, CoDel, Discipline, GilbertElliott, Jitter, Loss, QueueLimit, ReservedProtocol,
    Share,
};

/// [`TWO_SITES`], with `features` for its link instead of its delay.
fn with_features(features: &str) -> String {
    TWO_SITES.replace("delay = \"6ms\"", features)
}

#[test]
fn burst_loss_bit_errors_and_limits_are_read() {
    let loss = "loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"20%\", good = \"0.5%\" }";
    let rest = "corrupt = \"1%\"\nduplicate = \"2%\"\nreorder = \"3%\"\nmtu = 1400\n\
                delay = \"4ms\"\njitter = \"pareto 1ms\"\nqueue = \"50 packets\"";
    let topology = parse(&with_features(&format!("{loss}\n{rest}"))).expect("fine");
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
    let reverse = &topology.links[0].b_to_a;
    assert_eq!(reverse.queue, QueueLimit::Packets(50));
    assert_eq!(reverse.wire.loss, Loss::Random(percent(10)));
}

#[test]
fn a_discipline_is_a_name_or_a_table_with_times() {
    let parse_discipline = |discipline: &str| {
        let text = with_features(&format!("rate = \"1Mbit/s\"\ndiscipline = {discipline}"));
        parse(&text).map(|topology| topology.links[0].b_to_a.discipline)
    };
    assert_eq!(parse_discipline("\"drop-tail\""), Ok(Discipline::DropTail));
    assert_eq!(
        parse_discipline("\"codel\""),
        Ok(Discipline::CoDel(CoDel::default()))
    );
    let requested = CoDel {
        target: Span::from_millis(1),
        ..CoDel::default()
    };
    let given = parse_discipline("{ name = \"codel\", target = \"1ms\" }");
    assert_eq!(given, Ok(Discipline::CoDel(requested)));
    for (wrong, part) in [
        ("\"red\"", "known here"),
        ("{ name = \"codel\", target = \"1us\" }", "from 10us"),
        ("{ name = \"codel\", target = \"100ms\" }", "for example"),
    ] {
        let mistakes = parse_discipline(wrong).expect_err(wrong);
        assert!(mistakes[0].remedy.contains(part), "{mistakes:?}");
    }
}

#[test]
fn a_trace_file_is_found_in_the_folder_of_the_topology() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.txt"), "1ms\n2ms\n").expect("write");
    let name = folder.path().join("lab.toml").display().to_string();
    let read = |file: &str| {
        let text = with_features(&format!("jitter = \"trace {file}\""));
        Topology::parse(&Source::new(name.clone(), text))
    };
    let topology = read("day.txt").expect("fine");
    let Jitter::Trace(trace) = &topology.links[0].a_to_b.wire.jitter else {
        panic!("{topology:?}");
    };
    assert_eq!(trace.delays(), [Span::from_millis(1), Span::from_millis(2)]);
    let mistakes = read("night.txt").expect_err("there is none");
    assert!(mistakes[0].message.contains("night.txt cannot be read"));
    assert_eq!(mistakes[0].position.to_string(), "19:10");
}

#[test]
fn invalid_link_features_are_reported_with_their_position() {
    let burst = "loss = { model = \"gilbert\", p = \"1%\" }";
    for (features, position, part) in [
        (burst, "20:18", "known here: gilbert-elliott"),
        (burst, "20:8", "add it"),
        ("queue = \"0 packets\"", "20:9", "from 1 to 1000000"),
        ("mtu = 9000", "20:7", "from 576 to 1500"),
        ("mtu = 1279", "20:7", "drop an 'address_v6'"),
        ("corrupt = \"101%\"", "20:11", "from 0% to 100%"),
    ] {
        let both_v6 = with_features(features)
            .replace("10.0.0.1/24\"", "10.0.0.1/24\"\naddress_v6 = \"fd00::1\"");
        let mistakes = parse(&both_v6).expect_err(features);
        let found = mistakes.iter().any(|mistake| {
            mistake.position.to_string() == position && mistake.remedy.contains(part)
        });
        assert!(found, "{features}: {mistakes:?}");
    }
}

#[test]
fn an_unsupported_link_feature_is_reported_at_its_position() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("day.txt"), "1ms\n").expect("write");
    let text = with_features("kind = \"netem\"").replace("uniform 1ms", "trace day.txt");
    let name = folder.path().join("lab.toml").display().to_string();
    let mistakes = Topology::parse(&Source::new(name, text)).expect_err("netem has no traces");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert_eq!(mistakes[0].position.to_string(), "21:49");
    assert!(
        mistakes[0]
            .message
            .contains("\"netem\" cannot follow a trace")
    );
}

const PATHS_TOML: &str = r#"
[[link.path]]
name = "short"
weight = 3
delay = "8ms"
[[link.path]]
b_to_a = { delay = "20ms", loss = "1%" }
"#;

#[test]
fn paths_override_link_features_separately_per_direction() {
    let features = "delay = \"16ms\"\nduplicate = \"1%\"";
    let topology = parse(&(with_features(features) + PATHS_TOML)).expect("fine");
    let link = &topology.links[0];
    let path_rows = |shape: &crate::gate::Shape| -> Vec<(String, u32, Span)> {
        let paths = shape.paths.iter();
        paths
            .map(|path| (path.name.clone(), path.weight, path.wire.delay))
            .collect()
    };
    let path_row = |name: &str, weight, ms| (name.to_owned(), weight, Span::from_millis(ms));
    assert_eq!(
        path_rows(&link.a_to_b),
        [path_row("short", 3, 8), path_row("path2", 1, 16)]
    );
    assert_eq!(
        path_rows(&link.b_to_a),
        [path_row("short", 3, 8), path_row("path2", 1, 20)]
    );
    let reverse_wire = &link.b_to_a.paths[1].wire;
    assert_eq!(
        reverse_wire.loss,
        Loss::Random(Share::from_billionths(10_000_000))
    );
    assert_eq!(reverse_wire.duplicate, Share::from_billionths(10_000_000));
}

#[test]
fn a_path_may_be_reserved_for_a_protocol_but_not_every_path() {
    let reserved = |text: &str, only: &str| text.replace("weight = 3", only);
    let only = |text: &str| {
        let topology = parse(text)?;
        let paths = topology.links[0].b_to_a.paths.iter();
        Ok(paths.map(|path| path.only).collect::<Vec<_>>())
    };
    let two_paths = TWO_SITES.to_owned() + PATHS_TOML;
    for (name, reserved_for) in [
        ("icmp", ReservedProtocol::Icmp),
        ("tcp", ReservedProtocol::Tcp),
        ("udp", ReservedProtocol::Udp),
    ] {
        let text = reserved(&two_paths, &format!("only = \"{name}\""));
        assert_eq!(only(&text), Ok(vec![Some(reserved_for), None]));
    }
    for (text, part) in [
        (reserved(&two_paths, "only = \"imcp\""), "icmp"),
        (
            reserved(PATHS_TOML, "only = \"tcp\"").replace("b_to_a", "only = \"udp\"\nb_to_a"),
            "without 'only'",
        ),
    ] {
        let text = if text.contains("version") {
            text
        } else {
            TWO_SITES.to_owned() + &text
        };
        let mistakes: Vec<neph_text::Problem> = only(&text).expect_err(part);
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].remedy.contains(part), "{mistakes:?}");
    }
}

const SCHEDULE: &str = r#"
[[link.schedule]]
at = "15s"
until = "40s"
direction = "a_to_b"
rate = "1Mbit/s"
delay = "80ms"
[[link.schedule]]
at = "10s"
every = "10s"
reshuffle = true
[[link.schedule]]
at = "30s"
until = "60s"
every = "1min"
path = "short"
weight = 0
loss = "100%"
"#;

#[test]
fn a_schedule_is_read_with_all_its_entries() {
    let text = TWO_SITES.to_owned() + PATHS_TOML + SCHEDULE;
    let topology = parse(&text).expect("fine");
    let [first, second, third] = &topology.links[0].schedule[..] else {
        panic!("three");
    };
    assert_eq!(first.direction, Some(Direction::AToB));
    assert_eq!(
        (first.at, first.until),
        (Span::from_secs(15), Some(Span::from_secs(40)))
    );
    let ChangeAction::Override(partial_shape) = &first.action else {
        panic!("{first:?}");
    };
    assert_eq!(partial_shape.rate, Some(BitRate(1_000_000)));
    assert_eq!(partial_shape.wire.delay, Some(Span::from_millis(80)));
    assert_eq!(
        (&second.action, second.every),
        (&ChangeAction::Reshuffle, Some(Span::from_secs(10)))
    );
    let ChangeAction::OverridePath(0, Some(0), wire) = &third.action else {
        panic!("{third:?}");
    };
    assert_eq!(wire.loss, Some(Loss::Random(Share::ALL)));
}

#[test]
fn invalid_schedules_are_refused_with_a_remedy() {
    for (from, to, part) in [
        (
            "until = \"40s\"",
            "until = \"15s\"",
            "write a time after 'at'",
        ),
        ("until = \"60s\"", "", "add 'until'"),
        (
            "every = \"1min\"",
            "every = \"30s\"",
            "longer than from 'at' to 'until'",
        ),
        ("every = \"10s\"", "every = \"1ms\"", "at least 10ms"),
        ("every = \"10s\"", "until = \"11s\"", "drop 'until'"),
        ("reshuffle = true", "reshuffle = false", "give an action"),
        (
            "reshuffle = true",
            "reshuffle = true\nmtu = 600",
            "of its own",
        ),
        (
            "path = \"short\"",
            "path = \"shrot\"",
            "did you mean 'short'?",
        ),
        ("weight = 0\nloss", "weight = 1001\nloss", "from 0 to 1000"),
        (
            "weight = 0\nloss",
            "rate = \"1Mbit/s\"\nloss",
            "say it of the link",
        ),
        ("direction = \"a_to_b\"", "direction = \"a\"", "a_to_b"),
        ("at = \"10s\"", "at = \"31d\"", "at most 30d"),
        ("name = \"short\"", "name = \"path2\"", "another 'name'"),
    ] {
        let text = TWO_SITES.to_owned() + PATHS_TOML + &SCHEDULE.replace(from, to);
        let text = if from.starts_with("name") {
            text.replace(from, to)
        } else {
            text
        };
        let mistakes = parse(&text).expect_err(to);
        let found = mistakes.iter().any(|mistake| mistake.remedy.contains(part));
        assert!(found, "{to}: {mistakes:?}");
    }
    let unsplit = parse(&(TWO_SITES.to_owned() + "[[link.schedule]]\nreshuffle = true\n"));
    let mistakes = unsplit.expect_err("one path only");
    assert!(
        mistakes[0].remedy.contains("add [[link.path]]"),
        "{mistakes:?}"
    );
}

#[test]
fn netem_has_neither_paths_nor_schedules() {
    let text = with_features("kind = \"netem\"") + PATHS_TOML + SCHEDULE;
    let error: Vec<String> = parse(&text)
        .expect_err("netem cannot")
        .into_iter()
        .map(|mistake| mistake.message)
        .collect();
    assert_eq!(
        error,
        [
            "a link of kind \"netem\" cannot have several paths",
            "a link of kind \"netem\" cannot change in time",
        ]
    );
}

#[test]
fn a_queue_needs_a_rate_in_the_link_or_its_schedule() {
    let text = TWO_SITES.replace("rate = \"3Mbit/s\", ", "");
    assert!(parse(&text).is_err());
    let later = "[[link.schedule]]\nat = \"1s\"\nrate = \"1Mbit/s\"\n";
    assert!(parse(&(text + later)).is_ok());
}

/// tc refuses these: reported before anything is brought up.
#[test]
fn netem_jitter_and_reordering_need_a_delay() {
    for (features, part) in [
        ("jitter = \"normal 1ms\"", "vary normally around no delay"),
        ("reorder = \"1%\"", "reorder packets without a delay"),
    ] {
        let link = |delay: &str| {
            let text = format!(
                "version = 1\nsite = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\na = \"a\"\n\
                 b = \"b\"\nkind = \"netem\"\ndelay = \"{delay}\"\n{features}\n"
            );
            Topology::parse(&Source::new("lab.toml", text))
        };
        let mistakes = link("0s").expect_err("netem cannot");
        assert!(mistakes[0].message.contains(part), "{mistakes:?}");
        assert!(link("5ms").is_ok());
    }
}
