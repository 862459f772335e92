//! Coming up and going down: nothing stays, whatever happened in between.

use std::io::Read;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;

use neph_lab::{Lab, LabError, UpOptions};
use neph_sys::clock;
use neph_sys::deadline::{Deadline, Stopwatch};
use neph_sys::netns::with_namespace;
use neph_sys::process;

use crate::support::{
    chain, echo_round_trips, lab_lock, lab_name, leftovers, parse_shipped, two_sites, up,
};

#[test]
fn up_and_down_leave_nothing() {
    let Some(_lock) = lab_lock("up_and_down_leave_nothing") else {
        return;
    };
    let name = lab_name('a');
    let lab = up(&two_sites("delay = \"1ms\""), &name);
    assert_eq!(leftovers(&name).len(), 7, "{:?}", leftovers(&name));
    let lab_listing = Lab::find(&name).expect("readable").expect("listed");
    assert_eq!(lab_listing.owner, Some(std::process::id()));
    assert!(
        lab_listing.is_owner_alive && lab_listing.namespaces.len() == 2,
        "{lab_listing:?}"
    );
    let refusal = Lab::up(lab.topology(), &UpOptions::with_name(&name)).expect_err("taken");
    assert!(
        matches!(refusal, LabError::NameTaken { state: "up", .. }),
        "{refusal}"
    );
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
    Lab::down_by_name(&name).expect("down twice is fine");
}

#[test]
fn an_abandoned_lab_is_taken_down_by_name() {
    let Some(_lock) = lab_lock("an_abandoned_lab_is_taken_down_by_name") else {
        return;
    };
    let name = lab_name('b');
    up(&two_sites("delay = \"1ms\""), &name).abandon();
    assert!(!leftovers(&name).is_empty());
    Lab::down_by_name(&name).expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn taking_down_a_running_lab_ends_its_engines() {
    let Some(_lock) = lab_lock("taking_down_a_running_lab_ends_its_engines") else {
        return;
    };
    let name = lab_name('c');
    let lab = up(&chain(&["delay = \"1ms\"", "delay = \"1ms\""]), &name);
    assert!(lab.is_forwarding());
    Lab::down_by_name(&name).expect("down");
    assert_eq!(leftovers(&name), [].into());
    let deadline = Deadline::after(Duration::from_secs(5));
    while lab.is_forwarding() {
        assert!(
            !deadline.has_passed(),
            "the engines go on without interfaces"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_replaced_lab_does_not_remove_the_new_lab_of_its_name() {
    let test = "a_replaced_lab_does_not_remove_the_new_lab_of_its_name";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('r');
    let first = up(&two_sites("delay = \"1ms\""), &name);
    Lab::down_by_name(&name).expect("anybody may");
    let second = up(&two_sites("delay = \"1ms\""), &name);
    assert!(!first.is_up() && second.is_up());
    first.down().expect("there is nothing of it left");
    assert!(second.is_up() && second.is_forwarding());
    assert!(!leftovers(&name).is_empty());
    second.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn a_starting_lab_is_never_taken_for_an_abandoned_one() {
    let Some(_lock) = lab_lock("a_starting_lab_is_never_taken_for_an_abandoned_one") else {
        return;
    };
    let name = lab_name('q');
    let topology = two_sites("delay = \"1ms\"");
    std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            for _ in 0..5 {
                let lab = up(&topology, &name);
                assert!(lab.is_up(), "somebody took it down");
                lab.down().expect("down");
            }
        });
        while !starter.is_finished() {
            // What another neph does that finds this one coming up.
            if let Some(lab) = Lab::find(&name).expect("readable") {
                assert!(lab.is_owner_alive, "{lab:?}");
            }
            Lab::down_if_owner_ended(&name).expect("there is none");
        }
    });
    assert_eq!(leftovers(&name), [].into());
}

/// Two that start at once both see what a crash left; the slower one must not take down what the
/// faster one has made of the name since.
#[test]
fn an_orphaned_lab_is_removed_only_if_its_owner_has_ended() {
    let test = "an_orphaned_lab_is_removed_only_if_its_owner_has_ended";
    let Some(_lock) = lab_lock(test) else { return };
    let name = lab_name('t');
    let lab = up(&two_sites("delay = \"1ms\""), &name);
    Lab::down_if_owner_ended(&name).expect("nothing to do");
    assert!(lab.is_up() && lab.is_forwarding());
    lab.down().expect("down");
    // A folder without a journal is what a crash between two files leaves.
    let folder = format!("/run/neph/{name}");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(format!("{folder}/web.log"), "words").expect("a file");
    Lab::down_if_owner_ended(&name).expect("removed");
    assert_eq!(leftovers(&name), [].into());
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn a_failed_up_leaves_nothing_and_reports_the_reason() {
    let Some(_lock) = lab_lock("a_failed_up_leaves_nothing_and_reports_the_reason") else {
        return;
    };
    let name = lab_name('d');
    let mut topology = two_sites("delay = \"1ms\"");
    topology.sites[1]
        .sysctls
        .insert("net.ipv4.no_such_thing".into(), "1".into());
    let error = Lab::up(&topology, &UpOptions::with_name(&name)).expect_err("no such setting");
    assert!(
        error.to_string().contains("net.ipv4.no_such_thing"),
        "{error}"
    );
    assert_eq!(leftovers(&name), [].into());
    topology = two_sites("delay = \"1ms\"");
    topology.sites[0].congestion_control = Some("nonesuch".into());
    let error = Lab::up(&topology, &UpOptions::with_name(&name)).expect_err("no such algorithm");
    assert!(
        error
            .to_string()
            .contains("no congestion control 'nonesuch'"),
        "{error}"
    );
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn a_lab_killed_during_up_is_removed_by_down() {
    let Some(_lock) = lab_lock("a_lab_killed_during_up_is_removed_by_down") else {
        return;
    };
    let name = lab_name('e');
    let program = std::env::current_exe().expect("this test binary");
    for delay in [0, 2, 5, 8, 12, 16, 20, 25, 30, 40, 60, 100] {
        let mut victim = process::command(&program)
            .args(["--exact", "life::victim", "--ignored", "--nocapture"])
            .env("NEPH_LAB_VICTIM", &name)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("start the victim");
        // Its first byte says that it is about to begin.
        let mut output = victim.stdout.take().expect("piped");
        let mut received = Vec::new();
        while !received.ends_with(b"BEGIN") {
            let mut byte = [0];
            assert_eq!(
                output.read(&mut byte).expect("read"),
                1,
                "the victim ended early"
            );
            received.push(byte[0]);
        }
        clock::nap(Duration::from_millis(delay));
        victim.kill().expect("kill -9");
        victim.wait().expect("wait");
        Lab::down_by_name(&name).expect("down");
        assert_eq!(leftovers(&name), [].into(), "killed after {delay} ms");
    }
}

#[test]
#[ignore = "the process that the test above kills"]
fn victim() {
    let name = std::env::var("NEPH_LAB_VICTIM").expect("set by the test above");
    print!("BEGIN");
    std::io::Write::flush(&mut std::io::stdout()).expect("flush");
    let lab = up(&chain(&["delay = \"1ms\""; 6]), &name);
    lab.abandon();
    // Until it is killed; where the test is gone, this ends too.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn two_labs_with_the_same_topology_do_not_meet() {
    let Some(_lock) = lab_lock("two_labs_with_the_same_topology_do_not_meet") else {
        return;
    };
    let topology = two_sites("delay = \"1ms\"");
    let (first, second) = (up(&topology, &lab_name('f')), up(&topology, &lab_name('g')));
    for lab in [&first, &second] {
        assert_eq!(echo_round_trips(lab, "s0", "s1", IpAddr::is_ipv4), 5);
    }
    first.down().expect("down");
    assert_eq!(
        echo_round_trips(&second, "s0", "s1", IpAddr::is_ipv4),
        5,
        "the other goes on"
    );
    second.down().expect("down");
    assert_eq!(leftovers(&lab_name('f')), [].into());
    assert_eq!(leftovers(&lab_name('g')), [].into());
}

#[test]
fn sites_reach_each_other_over_routers_in_both_families() {
    let Some(_lock) = lab_lock("sites_reach_each_other_over_routers_in_both_families") else {
        return;
    };
    let name = lab_name('h');
    let lab = up(
        &chain(&["delay = \"2ms\"", "delay = \"3ms\"", "delay = \"0ms\""]),
        &name,
    );
    assert_eq!(echo_round_trips(&lab, "s0", "s3", IpAddr::is_ipv4), 5);
    assert_eq!(echo_round_trips(&lab, "s0", "s3", IpAddr::is_ipv6), 5);
    lab.down().expect("down");
}

/// Whether this machine's kernel and tc have netem, whatever neph says of them.
fn has_netem(namespace: &str) -> bool {
    let ip = |args: &str| {
        let ran = process::command("ip").args(args.split(' ')).output();
        ran.expect("the ip program").status.success()
    };
    assert!(ip(&format!("netns add {namespace}")), "netns add");
    let has = ip(&format!(
        "netns exec {namespace} tc qdisc add dev lo root netem delay 1ms"
    ));
    assert!(ip(&format!("netns del {namespace}")), "netns del");
    has
}

#[test]
fn netem_carries_a_link_or_is_named_as_missing() {
    let Some(_lock) = lab_lock("netem_carries_a_link_or_is_named_as_missing") else {
        return;
    };
    let name = lab_name('j');
    let topology = two_sites("kind = \"netem\"\ndelay = \"10ms\"");
    let up = Lab::up(&topology, &UpOptions::with_name(&name));
    if has_netem(&format!("neph-{name}-try")) {
        let lab = up.expect("the kernel has netem");
        assert!(lab.counters(0).is_none(), "no engine of ours");
        let stopwatch = Stopwatch::start();
        assert_eq!(echo_round_trips(&lab, "s0", "s1", IpAddr::is_ipv4), 5);
        let elapsed = stopwatch.elapsed();
        assert!(
            elapsed >= Duration::from_millis(100),
            "5 times 20 ms: {elapsed:?}"
        );
        lab.down().expect("down");
    } else {
        let message = up.expect_err("there is no netem").to_string();
        assert!(message.contains("no queue discipline 'netem'"), "{message}");
    }
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn a_site_uses_its_configured_congestion_control() {
    let Some(_lock) = lab_lock("a_site_uses_its_configured_congestion_control") else {
        return;
    };
    let text = include_str!("../../topologies/idle.toml");
    let lab = up(&parse_shipped(text), &lab_name('i'));
    let server = lab.addresses("server").expect("there")[0];
    let listener = with_namespace(&lab.namespace("server").expect("there"), || {
        TcpListener::bind((server, 0)).expect("bind")
    });
    let target = listener
        .as_ref()
        .expect("enter")
        .local_addr()
        .expect("address");
    let used = with_namespace(&lab.namespace("client").expect("there"), || {
        let _stream = TcpStream::connect(target).expect("connect");
        let ss = process::command("ss")
            .args(["-tinH"])
            .output()
            .expect("the ss program");
        let setting = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
        (
            String::from_utf8_lossy(&ss.stdout).into_owned(),
            std::fs::read_to_string(setting),
        )
    });
    let (used, setting) = used.expect("enter");
    assert!(used.contains("cubic"), "{used}");
    assert_eq!(setting.expect("readable").trim(), "1");
    lab.down().expect("down");
}
