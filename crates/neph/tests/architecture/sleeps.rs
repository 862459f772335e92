//! Tests wait for facts (`wait_until` of neph-sys), they do not sleep: a sleep is too short on a busy
//! machine and too long on any other.

use std::collections::BTreeMap;

use super::{code_lines, sources};

/// Files whose tests sleep, how often in the text, and why no fact could be waited for. A number may
/// only fall.
const ALLOWED_SLEEPS: &[(&str, usize, &str)] = &[
    (
        "crates/neph-lab/src/verify/exchange.rs",
        2,
        "a sleep that is stopped is what the test is about",
    ),
    (
        "crates/neph-lab/tests/lab/accuracy.rs",
        1,
        "sends by a schedule",
    ),
    (
        "crates/neph-lab/tests/lab/features.rs",
        1,
        "paces what it sends, so that it fits the receiving socket",
    ),
    (
        "crates/neph-lab/tests/lab/life.rs",
        1,
        "a moment at which a process is killed",
    ),
    (
        "crates/neph-lab/tests/lab/paths.rs",
        1,
        "sends by a schedule",
    ),
    (
        "crates/neph-lab/tests/lab/traffic.rs",
        1,
        "nothing is sent for a while, which is no event",
    ),
    (
        "crates/neph-lab/tests/lab/undisturbed.rs",
        1,
        "measures how late a thread wakes",
    ),
    (
        "crates/neph-load/src/workload/tests.rs",
        1,
        "a service that stalls is what the test is about",
    ),
    (
        "crates/neph-probe/tests/abuse/memory.rs",
        1,
        "a peer that takes its time for a body is what the test is about",
    ),
    (
        "crates/neph-probe/tests/mqtt/mod.rs",
        2,
        "pieces of a packet, and a server that takes its time, are what the tests are about",
    ),
    (
        "crates/neph-store/src/workspace.rs",
        1,
        "another process holds the lock for a moment, which its waiter does not show",
    ),
    (
        "crates/neph-sys/src/clock.rs",
        1,
        "sleeping is what the test is about",
    ),
    (
        "crates/neph/tests/cli/metrics_live.rs",
        1,
        "paces what it sends, so that live points can follow",
    ),
    (
        "crates/neph/tests/cli/pings.rs",
        1,
        "a reply must come after the sending flow has noticed ctrl-C, which nothing shows",
    ),
    (
        "crates/neph/tests/cli/privileges.rs",
        1,
        "threads that begin later have no more rights; whether one begins depends on the command",
    ),
    (
        "crates/neph/tests/cli/stalls.rs",
        2,
        "how long a peer stands still is what the test is about",
    ),
    (
        "crates/neph/tests/cli/stresses.rs",
        1,
        "a load runs for a part of its time before its peer stops; nothing shows how much it sent",
    ),
    (
        "crates/neph/tests/lab/clocks.rs",
        2,
        "TCP repeats a segment after 200 ms, and tcpdump forgets what it has not read when it ends",
    ),
    (
        "crates/neph/tests/lab/hops_offload.rs",
        1,
        "paces what it sends",
    ),
    (
        "crates/neph/tests/lab/kills.rs",
        1,
        "a moment at which a process is killed",
    ),
];

const SLEEP_FUNCTIONS: [&str; 3] = ["nap(", "sleep(", "sleep_until("];

/// The part of a file that is tests.
fn test_code<'t>(path: &str, text: &'t str) -> &'t str {
    let is_test_file =
        path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/contract");
    if is_test_file {
        return text;
    }
    let inline = "#[cfg(test)]\nmod tests {";
    text.split_once(inline)
        .map_or("", |(_, test_code)| test_code)
}

/// How often a name stands in the text as a whole word.
fn count_calls(text: &str, name: &str) -> usize {
    let is_word_start = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    };
    text.match_indices(name)
        .map(|(at, _)| at)
        .filter(is_word_start)
        .count()
}

#[test]
fn only_listed_tests_sleep() {
    let mut found = BTreeMap::new();
    for (path, text) in sources() {
        if path.ends_with("architecture/sleeps.rs") {
            continue;
        }
        let lines = code_lines(test_code(&path, &text));
        let sleeps: usize = lines
            .filter(|(_, line)| !line.trim_start().starts_with("use ") && !line.contains("fn "))
            .map(|(_, line)| {
                SLEEP_FUNCTIONS
                    .iter()
                    .map(|name| count_calls(line, name))
                    .sum::<usize>()
            })
            .sum();
        if sleeps > 0 {
            found.insert(path, sleeps);
        }
    }
    let allowed: BTreeMap<String, usize> = ALLOWED_SLEEPS
        .iter()
        .map(|(path, sleeps, _)| ((*path).to_owned(), *sleeps))
        .collect();
    assert_eq!(
        found, allowed,
        "wait for a fact; if there is none, say why in MAY_SLEEP"
    );
}
