//! `--user`: every command becomes the user that was named, in all threads, and has no right to files
//! that this user has not.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use crate::labs::privileged;
use crate::neph::{RunOutput, TIMEOUT, TestFolder, command, eventually, neph, run_ip};
use crate::privileges::{
    ADMIN, BPF, LOCK, NICE, NOBODY, RAW, Reflector, assert_capabilities, check_restricted, threads,
    unprivileged_neph, with_connections,
};
use crate::watches::with_loopback;

/// `CAP_SYS_ADMIN` of linux/capability.h.
const SYSTEM: u64 = 1 << 21;

/// Whether a thread of the process is scheduled first in, first out (proc(5), field 41 of `stat`).
fn has_real_time(pid: u32) -> bool {
    const FIFO: &str = "1";
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let stats = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("stat")));
    stats.flatten().any(|text| {
        // The name, the second field, may have blanks.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(38) == Some(FIFO)
    })
}

/// Fails unless every thread of the process has the user and the group of nobody, and no other group.
fn assert_user_nobody(pid: u32) {
    let ids = [NOBODY; 4].join("\t");
    for thread in threads(pid) {
        assert_eq!((&thread["Uid"], &thread["Gid"]), (&ids, &ids));
        assert_eq!(thread["Groups"], NOBODY);
    }
}

#[test]
fn a_reflector_becomes_the_user_that_was_named_in_all_threads() {
    if !privileged("a_reflector_becomes_the_user_that_was_named") {
        return;
    }
    with_loopback("user", || {
        for user in ["nobody", NOBODY] {
            let reflector = Reflector::begin(command(), &["--user", user]);
            let wanted = format!("user {user}, no capabilities");
            assert!(reflector.report.contains(&wanted), "{}", reflector.report);
            with_connections(&reflector, |pid| {
                assert_capabilities(pid, 0, "reflect --user");
                assert_user_nobody(pid);
            });
            assert_eq!(reflector.end(), 0);
        }
    });
}

#[test]
fn every_command_becomes_the_user_that_was_named() {
    if !privileged("every_command_becomes_the_user_that_was_named") {
        return;
    }
    with_loopback("users", || {
        let reflector = Reflector::begin(command(), &[]);
        let (at, folder) = (reflector.address.as_str(), TestFolder::empty());
        let (tcp, udp) = (format!("tcp://{at}"), format!("udp://{at}"));
        // Nobody answers: the trace lasts.
        run_ip("route add 192.0.2.0/24 dev lo");
        let here = format!("nephwatch-{}-users", std::process::id());
        let watching = RAW | NICE | ADMIN | BPF | LOCK;
        let commands: [(&[&str], u64); 10] = [
            (&["ping", &tcp], RAW | NICE),
            (&["ping", &tcp, "--site", &here], RAW | NICE),
            (&["watch", "lo", "--site", &here], watching | SYSTEM),
            (&["flows", &udp, "-n", "8"], RAW | NICE | ADMIN | BPF),
            (&["clock", at], NICE),
            (&["watch", "lo"], watching),
            (&["hops", "a=iface:lo", "b=iface:lo"], RAW | NICE | LOCK),
            (&["stress", "flow", at], 0),
            (&["stress", "cpu", "--cores", "1", "--target", "5%"], 0),
            (&["trace", "192.0.2.1"], RAW),
        ];
        for (arguments, capabilities) in commands {
            let with_user = [arguments, &["--user", "nobody"]].concat();
            check_restricted(&with_user, &folder, |pid| {
                assert_capabilities(pid, capabilities, arguments[0]);
                assert_user_nobody(pid);
                if arguments[0] == "ping" {
                    eventually("a thread has real-time priority", TIMEOUT, || {
                        has_real_time(pid)
                    });
                }
            });
        }
        assert_eq!(reflector.end(), 0);
    });
}

#[test]
fn results_measured_as_a_named_user_belong_to_that_user() {
    if !privileged("what_a_named_user_measures_is_written") {
        return;
    }
    with_loopback("owner", || {
        let reflector = Reflector::begin(command(), &[]);
        let folder = TestFolder::empty();
        let target = format!("udp://{}", reflector.address);
        let commands = [
            ["ping", &target, "-c", "3", "-i", "50ms", "-o", "ping.txt"],
            ["flows", &target, "-c", "3", "-n", "4", "-o", "flows.txt"],
        ];
        let run = |arguments: [&str; 8]| {
            let mut neph = folder.command(arguments);
            neph.args(["--user", "nobody"]);
            RunOutput::from(neph.output().expect("it runs"))
        };
        // The folder is root's alone, and nobody gets no right to it.
        for arguments in commands {
            let ran = run(arguments);
            assert_eq!(ran.status, 2, "{}", ran.err);
            assert!(
                ran.err.contains("user nobody may not write to"),
                "{}",
                ran.err
            );
            assert!(!folder.path(arguments[7]).exists());
        }
        let nobody = NOBODY.parse().ok();
        chown(folder.path(""), nobody, nobody).expect("root may");
        for arguments in commands {
            let ran = run(arguments);
            assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
            let file = fs::metadata(folder.path(arguments[7])).expect("it is written");
            assert_eq!(file.uid().to_string(), NOBODY);
            assert!(file.len() > 0);
        }
        assert_eq!(reflector.end(), 0);
    });
}

#[test]
fn points_by_ssh_keep_their_user() {
    let ran = neph(["hops", "a=iface:lo", "b=ssh:u@h/lo", "--user", "nobody"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("leave out --user"), "{}", ran.err);
}

/// A workspace that several users write to in turn.
#[test]
fn root_goes_on_in_a_workspace_that_another_user_began() {
    if !privileged("root_goes_on_in_a_workspace_of_another") {
        return;
    }
    with_loopback("turns", || {
        let reflector = Reflector::begin(command(), &[]);
        let folder = TestFolder::empty();
        let nobody = NOBODY.parse().ok();
        chown(folder.path(""), nobody, nobody).expect("root may");
        let target = format!("udp://{}", reflector.address);
        for (name, extra_args) in [("a", &["--user", "nobody"][..]), ("b", &[]), ("c", &[])] {
            let mut neph = folder.command(["flows", &target, "-c", "3", "-n", "4", "--save", name]);
            let ran = RunOutput::from(neph.args(extra_args).output().expect("it runs"));
            assert_eq!(ran.status, 0, "{name}: {}{}", ran.out, ran.err);
        }
        assert_eq!(reflector.end(), 0);
    });
}

#[test]
fn an_unusable_user_is_refused_in_one_sentence() {
    let ran = neph([
        "reflect",
        "--listen",
        "127.0.0.1:0",
        "--user",
        "no-such-user-here",
    ]);
    let expected =
        "neph: --user no-such-user-here: there is no user 'no-such-user-here' on this host\n";
    assert_eq!((ran.status, ran.err.as_str()), (2, expected));
    if !privileged("an_unusable_user_is_refused_in_one_sentence") {
        return;
    }
    let mut plain = unprivileged_neph();
    let ran: RunOutput = plain
        .args(["reflect", "--user", "root"])
        .output()
        .expect("it runs")
        .into();
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(
        ran.err.contains("only root can become another user"),
        "{}",
        ran.err
    );
}
