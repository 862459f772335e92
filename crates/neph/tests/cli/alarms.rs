//! Alarms of plans: what is reported, kept and posted, and the exit status.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::thread::{self, JoinHandle};

use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use neph_sys::clock::wall;
use serde_json::Value;

use crate::labs::privileged;
use crate::neph::{RunOutput, TestFolder, send_signal, start_and_read_line};

fn plan(target: &str, extra_lines: &str) -> String {
    format!(
        "version = 1\nname = \"judged\"\ninterval = \"20ms\"\nmessages = 60\n{extra_lines}\n\n\
         [[endpoint]]\nname = \"b\"\nurl = \"udp://{target}\"\n"
    )
}

/// A place with this plan, and the arguments that carry it out.
fn folder_with_plan(plan: &str) -> (TestFolder, [&'static str; 3]) {
    let folder = TestFolder::empty();
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    (folder, ["run", "plan.toml", "--no-report"])
}

/// Takes so many posts and gives what each told.
fn receive_posts(posts: usize) -> (SocketAddr, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("an address");
    let received = thread::spawn(move || {
        let entry = |_| {
            let (mut peer, _) = listener.accept().expect("a post");
            let mut text = Vec::new();
            while !text.ends_with(b"}") {
                let mut some = [0; 1024];
                let n = peer.read(&mut some).expect("read");
                text.extend_from_slice(&some[..n]);
            }
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                .expect("answer");
            let text = String::from_utf8(text).expect("text");
            let body = text.split("\r\n\r\n").nth(1).expect("a body");
            serde_json::from_str(body).expect("JSON")
        };
        (0..posts).map(entry).collect()
    });
    (address, received)
}

/// The alarm events of the only experiment: kinds, and milliseconds since its start.
fn events(folder: &TestFolder) -> Vec<(String, i64)> {
    let ran = folder.neph(["list", "last", "--format", "json"]);
    let listed: Value = serde_json::from_str(&ran.out).expect("JSON");
    let id = listed[0]["id"].as_str().expect("an id").to_owned();
    let ran = folder.neph(["show", &id, "--format", "json"]);
    let shown: Value = serde_json::from_str(&ran.out).expect("JSON");
    let events = shown["events"].as_array().expect("events").iter();
    let kind = |event: &Value| event["kind"].as_str().expect("a kind").to_owned();
    events
        .map(|event| {
            (
                kind(event),
                event["at_ns"].as_i64().expect("when") / 1_000_000,
            )
        })
        .filter(|(kind, _)| kind.starts_with("alarm"))
        .collect()
}

#[test]
fn a_campaign_ends_with_how_many_of_its_experiments_are_flagged() {
    let reflector = Reflector::start(&ReflectorSpec::at(([127, 0, 0, 1], 0).into()));
    let reflector = reflector.expect("a reflector");
    let target = reflector.address().to_string();
    let few_messages = plan(&target, "").replace("messages = 60", "messages = 1\nblocks = 3");
    let (folder, run) = folder_with_plan(&few_messages);
    let ran = folder.neph(run);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let expected = "campaign complete: 3 experiments, 3 with warnings; neph list ";
    let line = ran
        .err
        .lines()
        .find(|line| line.starts_with("campaign complete"));
    let line = line.expect(&ran.err);
    assert!(
        line.starts_with(expected) && line.ends_with(" shows them"),
        "{line}"
    );
    let list = line.split(' ').skip_while(|word| *word != "list").take(2);
    let listed = folder.neph(list);
    assert_eq!(
        listed.out.matches("only 1 reply").count(),
        3,
        "{}",
        listed.out
    );
    let ran = folder.neph(run.into_iter().chain(["--quiet"]));
    assert!(!ran.err.contains("campaign complete"), "{}", ran.err);
}

#[test]
fn an_alarm_of_a_plan_is_printed_stored_posted_and_exits_with_3() {
    let reflector = Reflector::start(&ReflectorSpec::at(([127, 0, 0, 1], 0).into()));
    let reflector = reflector.expect("a reflector");
    let target = reflector.address().to_string();
    let rules = "alarm = [\"round_trip > 1ns p50\", \"round_trip > 100s p50\"]";
    let (folder, run) = folder_with_plan(&plan(&target, rules));
    let (address, received) = receive_posts(1);
    let url = format!("http://{address}/hook");
    let ran = folder.neph(run.into_iter().chain(["--quiet", "--webhook", &url]));
    assert_eq!(ran.status, 3, "{}", ran.err);
    let alarm_lines: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.contains("ALARM"))
        .collect();
    assert_eq!(alarm_lines.len(), 1, "{}", ran.err);
    assert!(
        alarm_lines[0].contains("round_trip > 1ns p50; of the last"),
        "{}",
        ran.err
    );
    let posted = received.join().expect("heard");
    let field = |key: &str| posted[0][key].as_str().expect("text").to_owned();
    assert_eq!(
        (field("state"), field("rule")),
        ("raised".into(), "round_trip > 1ns p50".into())
    );
    let stored = events(&folder);
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].0, "alarm_raised");
    // It is complete: there is nothing to go on with, and nothing new to tell.
    assert_eq!(folder.neph(["resume"]).status, 0);
    let (folder, run) = folder_with_plan(&plan(&target, "alarm = \"round_trip > 100s p50\""));
    assert_eq!(folder.neph(run).status, 0);
}

#[test]
fn invalid_alarms_are_refused_before_measuring() {
    for (alarm, printed) in [
        (
            "segment > 2ms p99",
            "plan.toml:5:9: in this alarm 'segment' is not",
        ),
        (
            "round_trip > 2ms p99",
            "p99 needs 299 messages, and an experiment has 60",
        ),
    ] {
        let (folder, run) = folder_with_plan(&plan("192.0.2.1", &format!("alarm = \"{alarm}\"")));
        for arguments in [&["check", "plan.toml"][..], &run] {
            let ran = folder.neph(arguments.iter().copied());
            assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
            assert!(ran.err.contains(printed), "{}", ran.err);
        }
        assert_eq!(folder.files(), ["plan.toml"]);
    }
    let (folder, run) = folder_with_plan(&plan("192.0.2.1", ""));
    let ran = folder.neph(run.into_iter().chain(["--webhook", "http://127.0.0.1:9/"]));
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(
        ran.err.contains("the plan has no alarm; add"),
        "{}",
        ran.err
    );
}

/// From 2 s to 5 s after the cue the way there is 60 ms longer.
const LAB: &str = "version = 1\n\
    [[site]]\nname = \"a\"\naddress = \"10.82.0.1/24\"\n\
    [[site]]\nname = \"b\"\naddress = \"10.82.0.2/24\"\n\
    [[link]]\nname = \"path\"\na = \"a\"\nb = \"b\"\ndelay = \"2ms\"\n\
    [[link.schedule]]\nat = \"2s\"\nuntil = \"5s\"\ndirection = \"a_to_b\"\ndelay = \"62ms\"\n";

#[test]
fn a_link_that_is_slow_for_some_seconds_raises_an_alarm_and_ends_it() {
    if !privileged("a_link_that_is_slow_for_some_seconds_raises_an_alarm_and_ends_it") {
        return;
    }
    let rule = "messages = 450\nalarm = \"network > 40ms p50 for 1s until 20ms\"";
    let plan = plan("10.82.0.2:8080", rule).replacen("messages = 60\n", "", 1);
    let plan = plan
        + "\n[lab]\ntopology = \"lab.toml\"\nprober = \"a\"\n\n[[lab.reflector]]\nsite = \"b\"\n";
    let (folder, run) = folder_with_plan(&plan);
    fs::write(folder.path("lab.toml"), LAB).expect("a file");
    let (address, received) = receive_posts(2);
    let url = format!("http://{address}/hook");
    let ran = folder.neph(run.into_iter().chain(["--webhook", &url]));
    assert_eq!(ran.status, 3, "{}", ran.err);
    // By the messages' own times: within what the rule says and a second of counting.
    let stored = events(&folder);
    let [(raised, from), (over, until)] = &stored[..] else {
        panic!("{stored:?}");
    };
    assert_eq!(
        (raised.as_str(), over.as_str()),
        ("alarm_raised", "alarm_over")
    );
    assert!((3_000..=4_000).contains(from), "{stored:?}");
    assert!((6_000..=7_000).contains(until), "{stored:?}");
    let received = received.join().expect("heard");
    let states: Vec<&Value> = received.iter().map(|entry| &entry["state"]).collect();
    assert_eq!(states, ["raised", "over"]);
}

fn lines_of_kind<'a>(lines: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["kind"] == kind)
}

/// A lab that is up as long as this is there.
struct LabGuard<'a>(&'a TestFolder, String);

impl Drop for LabGuard<'_> {
    fn drop(&mut self) {
        self.0.neph(["lab", "down", &self.1]);
    }
}

/// What hops says of both ends of the link, of pings for 18 s, each a line; and to people, each line with
/// the nanoseconds since 1970 when it came.
fn record_both_ends(
    folder: &TestFolder,
    lab: &str,
    rule: &[&str],
) -> (Vec<Value>, Vec<(i64, String)>) {
    let [near_end, far_end] = ["a", "b"].map(|site| format!("neph-{lab}-{site}"));
    let ping = format!("ping icmp://10.82.0.2 --site {near_end} -i 20ms -w 24s -q");
    let mut ping = folder.command(ping.split(' '));
    let mut ping = ping.stdout(Stdio::null()).spawn().expect("it runs");
    let hops = format!(
        "hops a=iface:path@{near_end} b=iface:path@{far_end} -w 18s --format ndjson --packets --alarm"
    );
    let mut hops = folder.command(hops.split(' ').chain(rule.iter().copied()));
    let (child, printed, _) = start_and_read_line(hops.stdout(Stdio::piped()));
    let received = thread::spawn(move || {
        let stamped = printed.lines().map_while(Result::ok);
        stamped.map(|line| (wall().0, line)).collect()
    });
    let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
    let received: Vec<(i64, String)> = received.join().expect("heard");
    send_signal("INT", ping.id());
    ping.wait().expect("it ends");
    assert_eq!(ran.status, 3, "{received:?}");
    let lines = ran.out.lines();
    let lines = lines.map(|line| serde_json::from_str(line).expect("JSON"));
    (lines.collect(), received)
}

#[test]
fn a_segment_that_is_slow_while_live_points_record_raises_an_alarm_at_once_and_ends_it() {
    if !privileged(
        "a_segment_that_is_slow_while_live_points_record_raises_an_alarm_at_once_and_ends_it",
    ) {
        return;
    }
    let folder = TestFolder::empty();
    // For 3 s of each 8 s, whenever the recording begins.
    let lab = LAB.replace("direction", "every = \"8s\"\ndirection");
    fs::write(folder.path("lab.toml"), lab).expect("a file");
    let name = format!("alarm{}", std::process::id());
    let ran = folder.neph(["lab", "up", "lab.toml", "--name", &name, "--detach"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let up = LabGuard(&folder, name);
    let (address, posts) = receive_posts(1);
    let url = format!("http://{address}/hook");
    let rule = "a - b forward > 40ms p50 for 1s until 20ms";
    let (lines, received) = record_both_ends(&folder, &up.1, &[rule, "--webhook", &url]);
    let states = lines_of_kind(&lines, "alarm").filter_map(|entry| entry["state"].as_str());
    let states: Vec<&str> = states.collect();
    assert!(states.starts_with(&["raised", "over"]), "{states:?}");
    for alarm in lines_of_kind(&lines, "alarm") {
        // What the last second before was like, packet by packet.
        let at = alarm["since_ns"].as_i64().expect("when");
        let before = at - 1_000_000_000..at;
        let latest = lines_of_kind(&lines, "packet").filter(|packet| {
            let since = packet["since_ns"].as_i64().expect("when");
            packet["direction"] == "forward" && before.contains(&since)
        });
        let delays = latest.filter_map(|latest| latest["segments"][0]["ns"].as_i64());
        let delays: Vec<i64> = delays.collect();
        let slow = delays.iter().filter(|delay| **delay > 40_000_000).count();
        assert!(delays.len() >= 6, "{alarm}");
        let is_raised = alarm["state"] == "raised";
        assert_eq!(slow * 2 > delays.len(), is_raised, "{alarm}: {delays:?}");
    }
    assert_reported_at_once(&lines, &received, rule);
    let posted = posts.join().expect("heard");
    assert_eq!(posted[0], lines[0], "the first of all");
}

/// Each alarm is reported once; the first while points record, late by what a window takes.
#[expect(clippy::print_stdout, reason = "a test tells what it measured")]
fn assert_reported_at_once(lines: &[Value], received: &[(i64, String)], rule: &str) {
    let alarm_lines: Vec<_> = received
        .iter()
        .filter(|(_, line)| line.contains(rule))
        .collect();
    assert_eq!(
        alarm_lines.len(),
        lines_of_kind(lines, "alarm").count(),
        "{received:#?}"
    );
    let first = &lines[0];
    assert_eq!(
        (&first["state"], &first["evaluated_on"]),
        (&"raised".into(), &"live".into())
    );
    let (received_at, line) = alarm_lines[0];
    let is_end = |(_, line): &&(i64, String)| line.starts_with("neph hops: a: ");
    let (ended, _) = received.iter().find(is_end).expect("the recording ends");
    let late = received_at - first["at_unix_ns"].as_i64().expect("when");
    println!(
        "{line}: {} ms late, {} ms before the end",
        late / 1_000_000,
        (ended - received_at) / 1_000_000
    );
    // A window of 2 s, 1.08 s for packets under way, half a second until they are written; and what a
    // machine takes that is busy with other tests.
    assert!((0..8_000_000_000).contains(&late), "{late} ns");
    assert!(received_at < ended, "{received:#?}");
}
