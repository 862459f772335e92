use proptest::prelude::Strategy;

use super::*;
use crate::SCHEMES;

#[test]
fn targets_roundtrip_in_canonical_form() {
    for (text, shown) in [
        ("ws://h:8080/a?b=1", "ws://h:8080/a?b=1"),
        ("https://h", "https://h:443"),
        ("tcp://[::1]:9", "tcp://[::1]:9"),
        ("icmp://10.0.0.1", "icmp://10.0.0.1"),
        ("udp://h", "udp://h:862"),
        ("HTTP://h", "http://h:80"),
        (
            "https://b\u{fc}cher.example",
            "https://xn--bcher-kva.example:443",
        ),
        ("icmp://[fe80::1%eth0]", "icmp://[fe80::1%eth0]"),
        ("icmp://[fd00::1]", "icmp://[fd00::1]"),
        ("udp://[fe80::1%25eth0]:9", "udp://[fe80::1%eth0]:9"),
        ("https://me:secret@h/", "https://h:443"),
    ] {
        assert_eq!(Target::parse(text).expect(text).to_string(), shown);
    }
    let target = Target::parse("http://h:8080?x").expect("a query may follow the port");
    assert_eq!(
        (target.path(), target.host_header().as_str()),
        ("/?x", "h:8080")
    );
}

#[test]
fn a_bad_target_is_quoted_with_a_remedy() {
    for (text, part) in [
        (
            "h.example:80",
            "no scheme; write for example ws://h.example:80",
        ),
        ("ftp://h", "scheme 'ftp' is not known; use one of ws, wss"),
        ("ws://", "has no host"),
        ("ws://:80", "has no host"),
        (
            "tcp://h",
            "the port is missing; write it as tcp://host:port",
        ),
        ("udp://h:9191/path", "udp has no paths; drop '/path'"),
        ("syn://h:80?x", "syn has no paths; drop '?x'"),
        ("icmp://h:80", "icmp has no ports; drop ':80'"),
        ("icmp://[::1]:80", "icmp has no ports; drop ':80'"),
        ("ws://h:0", "'0' is no port"),
        ("ws://h:+1", "'+1' is no port"),
        ("ws://h:99999", "'99999' is no port"),
        (
            "ws://fd00::1",
            "more than one colon; write an IPv6 address in brackets",
        ),
        ("ws://[fd00::1", "not closed"),
        ("ws://[1.2.3.4]:1", "no IPv6 address in brackets"),
        ("http://h/a b", "percent-encode"),
        ("http://h/\u{fc}", "percent-encode"),
        ("http://h/#top", "never sent"),
        ("ws://a\u{7f}b.example", "is no host name"),
        ("ws://-a", "is no host name"),
        ("udp://me:secret@h", "udp has no user names"),
    ] {
        let message = Target::parse(text).expect_err(text).to_string();
        let quoted = without_credentials(text);
        assert!(
            message.contains(part) && message.contains(&quoted),
            "{message}"
        );
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn a_host_without_a_port_uses_the_default_port() {
    for (text, shown) in [
        ("127.0.0.1", "udp://127.0.0.1:8080"),
        ("h.example:9", "udp://h.example:9"),
        ("::1", "udp://[::1]:8080"),
        ("[::1]", "udp://[::1]:8080"),
        ("[::1]:9", "udp://[::1]:9"),
    ] {
        let target = Target::with_port("udp", text, 8080).expect(text);
        assert_eq!(target.to_string(), shown);
    }
    let error = Target::with_port("udp", "h:http", 8080).expect_err("no port");
    assert_eq!(error.text, "h:http", "the scheme was not typed");
}

#[test]
fn an_order_carries_credentials_that_are_never_displayed() {
    let target = Target::parse("https://me:secret@h/a").expect("a target");
    assert_eq!(
        Target::try_from(String::from(target.clone())),
        Ok(target.clone())
    );
    for shown in [format!("{target:?}"), target.to_string(), target.written()] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

proptest::proptest! {
    #[test]
    fn every_form_of_a_target_is_parsed_from_its_own_text(
        scheme in 0..SCHEMES.len(),
        host in proptest::prop_oneof![
            "[a-z][a-z0-9-]{0,20}(\\.[a-z]{1,5}){0,2}",
            proptest::prelude::any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
            proptest::prelude::any::<std::net::Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
            (proptest::prelude::any::<u64>(), "[a-z][a-z0-9.]{0,9}")
                .prop_map(|(low, zone)| format!("[fe80::{:x}%{zone}]", low & 0xffff)),
        ],
        port in 1_u16..,
        path in "(/[a-z0-9]{0,5}){0,3}(\\?[a-z]=[0-9])?",
    ) {
        let scheme = &SCHEMES[scheme];
        let port = if scheme.kind.has_ports() { format!(":{port}") } else { String::new() };
        let path = match scheme.kind.properties().path {
            PathRule::Http => path,
            PathRule::None => String::new(),
                PathRule::Checked { example, .. } => example.to_owned(),
        };
        let text = format!("{}://{host}{port}{path}", scheme.name);
        let target = Target::parse(&text).expect(&text);
        let shown = target.to_string();
        proptest::prop_assert_eq!(Target::parse(&shown).expect(&shown), target.clone());
        let rebuilt = Target::icmp(target.host()).expect("its host is one");
        proptest::prop_assert_eq!(rebuilt.host(), target.host());
    }
}
