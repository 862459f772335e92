//! What runs in a lab, as it is written: services and traffic.

use neph_text::{Problem, Source};

use super::*;
use crate::topology::Topology;

/// Two sites and a switch, and what is said of them from line 6 on.
fn parse(extra_toml: &str) -> Result<Topology, Vec<Problem>> {
    let text = format!(
        "version = 1\nsite = [{{name = \"a\", congestion_control = \"cubic\"}}, {{name = \"b\"}}]\n\
         switch = [{{name = \"sw\"}}]\nlink = [{{a = \"a\", b = \"sw\"}}, {{a = \"sw\", b = \"b\"}}]\n\n\
         {extra_toml}\n"
    );
    Topology::parse(&Source::new("lab.toml", text))
}

#[test]
fn a_service_is_read_with_defaults() {
    let text = "[[service]]\nname = \"web\"\nsite = \"b\"\ncommand = [\"nginx\", \"-g\", \"daemon off;\"]\n\
                environment = { LANG = \"C\", THREADS = 2 }\nready = { tcp = 80 }\n";
    let topology = parse(text).expect("fine");
    let service = &topology.services[0];
    assert_eq!(topology.sites[service.site].name, "b");
    assert_eq!(service.environment["THREADS"], "2");
    let ready = service.ready.as_ref().expect("there");
    assert_eq!(
        (&ready.check, ready.timeout),
        (&ReadyCheck::Tcp(80), DEFAULT_READY_TIMEOUT)
    );
    assert_eq!((service.grace, &service.log), (DEFAULT_STOP_TIMEOUT, &None));
}

#[test]
fn mistakes_in_services_and_traffic_are_reported_at_their_token() {
    let service = "[[service]]\nname = \"web\"\nsite = \"b\"\n";
    let traffic = "[[traffic]]\nfrom = \"a\"\nto = \"b\"\n";
    for (head, rest, position, part) in [
        (service, "command = \"nginx\"", "9:11", "write a list"),
        (service, "command = []", "9:11", "write a list"),
        (service, "comand = [\"nginx\"]", "6:1", "add it"),
        (
            service,
            "command = [\"x\"]\nready = {}",
            "10:9",
            "either { tcp",
        ),
        (
            service,
            "command = [\"x\"]\nready = { tcp = 0 }",
            "10:17",
            "from 1",
        ),
        (traffic, "at = \"5s\"\nuntil = \"5s\"", "10:9", "after 'at'"),
        (traffic, "until = \"5s\"\nstreams = 65", "10:11", "1 to 64"),
        (
            traffic,
            "until = \"5s\"\ncongestion = \"bbr\"",
            "10:14",
            "congestion_control there",
        ),
        (
            "[[traffic]]\nfrom = \"sw\"\nto = \"b\"\n",
            "until = \"1s\"",
            "7:8",
            "a site or a router",
        ),
        (
            "[[traffic]]\nfrom = \"b\"\nto = \"b\"\n",
            "until = \"1s\"",
            "6:1",
            "two different",
        ),
    ] {
        let mistakes = parse(&format!("{head}{rest}")).expect_err(rest);
        assert_eq!(
            mistakes[0].position.to_string(),
            position,
            "{rest}: {mistakes:?}"
        );
        assert!(mistakes[0].remedy.contains(part), "{rest}: {mistakes:?}");
    }
    let web_service = "[[service]]\nname = \"web\"\nsite = \"b\"\ncommand = [\"x\"]\n";
    let mistakes = parse(&format!("{web_service}{web_service}")).expect_err("twice");
    assert_eq!(mistakes[0].message, "two services are called 'web'");
    let proxy = "[[balancer]]\nname = \"web\"\nkind = \"haproxy\"\nsite = \"a\"\nlisten = 80\n\
                 to = \"b:80\"\n";
    let mistakes = parse(&format!("{web_service}{proxy}")).expect_err("one log for two");
    assert_eq!(mistakes[0].message, "a service is called 'web' too");
}
