//! Words of a command line that mean nothing: exit status 2, one sentence, nothing is sent.

use crate::neph::neph;

#[test]
fn an_invalid_number_is_refused_in_one_sentence() {
    let cases: [(&[&str], &str); 5] = [
        (
            &["flows", "::1", "-n", "-5"],
            "'-5' is no value for -n: numbers and times",
        ),
        (&["ping", "::1", "-i", "-1s"], "are not below zero"),
        (&["flows", "::1", "-n", "2.5"], "give a whole number"),
        (&["trace", "::1", "--queries", "x"], "give a whole number"),
        (
            &["lab", "up", "x.toml", "--every", "0"],
            "give a whole number, at least 1",
        ),
    ];
    for (args, part) in cases {
        let ran = neph(args.iter().copied());
        assert_eq!((ran.status, ran.err.lines().count()), (2, 1), "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

#[test]
fn a_target_with_an_unsuitable_part_is_refused() {
    let cases: [(&[&str], &str); 14] = [
        (
            &["flows", "127.0.0.1:9191/path"],
            "udp has no paths; drop '/path'",
        ),
        (
            &["ping", "icmp://127.0.0.1:80"],
            "icmp has no ports; drop ':80'",
        ),
        (
            &["flows", "127.0.0.1:9", "udp://127.0.0.1:9"],
            "is there twice",
        ),
        (&["flows", "224.0.0.1:9"], "a multicast address"),
        (&["flows", "255.255.255.255:9"], "the broadcast address"),
        (
            &["flows", "127.0.0.1:9", "[::1]:9"],
            "has an IPv4 address and udp://[::1]:9 an IPv6 one",
        ),
        (
            &["flows", "tcp://127.0.0.1:9", "--stamp-key", "env:PATH"],
            "--stamp-key: tcp flows do not use STAMP",
        ),
        (
            &["flows", "127.0.0.1:9", "-n", "0"],
            "'0' for --flows <N>: write a number from 1 to 50000",
        ),
        (
            &["flows", "127.0.0.1:9", "--renew", "1ms"],
            "give a longer --renew, or a shorter --interval",
        ),
        (
            &["flows", "127.0.0.1:9", "--quorum", "3", "--window", "2"],
            "give a lower --quorum, or a larger --window",
        ),
        (&["trace", "224.0.0.1"], "a multicast address"),
        (&["trace", "255.255.255.255"], "the broadcast address"),
        (
            &["trace", "udp://[ff02::1]:9"],
            "give the address of one host",
        ),
        (
            &["trace", "syn://127.0.0.1:80", "--no-raw"],
            "drop it, or use udp://",
        ),
    ];
    for (args, part) in cases {
        let ran = neph(args.iter().copied());
        assert_eq!((ran.status, ran.err.lines().count()), (2, 1), "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}
