//! Services: started in order, ready when said so, gone with the lab whoever ends it and how.

use std::fs;
use std::path::Path;
use std::time::Duration;

use neph_lab::{Lab, ServiceState, Topology, UpOptions};
use neph_sys::deadline::{Deadline, wait_until};
use neph_sys::process;
use neph_text::Source;

use crate::support::{can_have_groups, lab_lock, lab_name, leftovers, up};

/// One site, and what else there is to say.
fn one_site(extra_lines: &str) -> Topology {
    let text = format!("version = 1\n[[site]]\nname = \"a\"\n{extra_lines}");
    let source = Source::new("one", text);
    Topology::parse(&source).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

/// The processes in the namespace of site `a`.
fn processes_in_lab(lab: &str) -> Vec<u32> {
    let output = process::command("ip")
        .args(["netns", "pids", &format!("neph-{lab}-a")])
        .output();
    let stdout = String::from_utf8(output.expect("the ip program").stdout).expect("UTF-8");
    stdout
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

const WEB: &str = "[[service]]\nname = \"web\"\nsite = \"a\"\n\
                   command = [\"python3\", \"-m\", \"http.server\", \"8080\"]\n\
                   ready = { tcp = 8080, timeout = \"20s\" }\n";

#[test]
fn a_service_is_ready_before_the_next_starts_and_its_output_is_logged() {
    let test = "a_service_is_ready_before_the_next_starts_and_its_output_is_logged";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('t');
    let second = "[[service]]\nname = \"asks\"\nsite = \"a\"\n\
                  command = [\"sh\", \"-c\", \"echo $WHO asks; exec sleep 60\"]\n\
                  environment = { WHO = \"she\" }\n\
                  ready = { command = [\"sh\", \"-c\", \"ss -Htln | grep -q :8080\"] }\n";
    let lab = up(&one_site(&format!("{WEB}{second}")), &name);
    let states: Vec<_> = lab.services().collect();
    assert_eq!(
        states,
        [("web", ServiceState::Ready), ("asks", ServiceState::Ready)]
    );
    let log = format!("/run/neph/{name}/asks.log");
    assert_eq!(fs::read_to_string(log).expect("kept"), "she asks\n");
    assert_eq!(processes_in_lab(&name).len(), 2);
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn a_service_that_writes_and_writes_fills_no_memory() {
    let Some(_lock) = lab_lock("a_service_that_writes_and_writes_fills_no_memory") else {
        return;
    };
    let name = lab_name('x');
    let folder = format!("/run/neph/{name}");
    let flood = format!(
        "[[service]]\nname = \"flood\"\nsite = \"a\"\n\
         command = [\"sh\", \"-c\", \"head -c 20000000 /dev/zero; echo end; exec sleep 60\"]\n\
         ready = {{ command = [\"grep\", \"-qa\", \"end\", \"{folder}/flood.log\"] }}\n"
    );
    let lab = up(&one_site(&flood), &name);
    let length = |file: &str| fs::metadata(format!("{folder}/{file}")).map_or(0, |f| f.len());
    let kept_bytes = length("flood.log") + length("flood.log.1");
    assert!((1 << 20..=8 << 20).contains(&kept_bytes), "{kept_bytes}");
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn a_failed_service_is_reported_with_its_last_output() {
    let Some(_lock) = lab_lock("a_failed_service_is_reported_with_its_last_output") else {
        return;
    };
    let name = lab_name('u');
    let fails = one_site(
        "[[service]]\nname = \"web\"\nsite = \"a\"\n\
                     command = [\"sh\", \"-c\", \"echo no such key; exit 3\"]\n\
                     ready = { tcp = 8080 }\n",
    );
    let error = Lab::up(&fails, &UpOptions::with_name(&name)).expect_err("it ended");
    let message = error.to_string();
    assert!(
        message.contains("'web' ended with status 3: no such key"),
        "{message}"
    );
    let never = one_site(
        "[[service]]\nname = \"web\"\nsite = \"a\"\ncommand = [\"sleep\", \"60\"]\n\
                     ready = { tcp = 8080, timeout = \"100ms\" }\n",
    );
    let error = Lab::up(&never, &UpOptions::with_name(&name)).expect_err("never ready");
    assert!(
        error.to_string().contains("was not ready after 100"),
        "{error}"
    );
    let missing =
        one_site("[[service]]\nname = \"web\"\nsite = \"a\"\ncommand = [\"no-such-x\"]\n");
    let error = Lab::up(&missing, &UpOptions::with_name(&name)).expect_err("no such program");
    assert!(
        error.to_string().contains("'no-such-x' is missing"),
        "{error}"
    );
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn down_ends_even_detached_processes_that_ignore_sigterm() {
    let test = "down_ends_even_detached_processes_that_ignore_sigterm";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('v');
    // Leaves its group and its parent, and does not hear SIGTERM.
    let stubborn = "[[service]]\nname = \"stubborn\"\nsite = \"a\"\ngrace = \"100ms\"\n\
                    command = [\"sh\", \"-c\", \"trap '' TERM; \
                    setsid sh -c 'trap \\\"\\\" TERM; sleep 60' & sleep 60\"]\n";
    let lab = up(&one_site(stubborn), &name);
    let deadline = Deadline::after(Duration::from_secs(10));
    while processes_in_lab(&name).len() < 3 {
        assert!(!deadline.has_passed(), "{:?}", processes_in_lab(&name));
        std::thread::yield_now();
    }
    let pids = processes_in_lab(&name);
    lab.down().expect("down");
    for pid in pids {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
    assert_eq!(leftovers(&name), [].into());
}

/// Judges the site's group by the kernel's own record: how many periods of 10 ms it was active in, in
/// how many of them it used all of its 1 ms up, and how long its process ran.
fn assert_cpu_share_of_10_percent(lab: &str, pid: u32) {
    const ALLOWED_NS: u64 = 1_000_000;
    let stat = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"]
        .map(|mount| Path::new(mount).join(format!("neph-{lab}-a/cpu.stat")))
        .into_iter()
        .find(|path| path.exists());
    let stat = stat.expect("the group is there");
    let counter = |name: &str| -> u64 {
        let text = fs::read_to_string(&stat).expect("it runs");
        let mut lines = text.lines();
        let number =
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        number.expect("a number")
    };
    // The first field of schedstat is the time on a CPU in nanoseconds.
    let cpu_time = || -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
        let field = text.split(' ').next().and_then(|field| field.parse().ok());
        field.expect("a number")
    };
    let (periods, throttled, cpu_used) =
        (counter("nr_periods"), counter("nr_throttled"), cpu_time());
    let is_throttled = wait_until(Duration::from_mins(1), || {
        counter("nr_throttled") >= throttled + 100
    });
    assert!(is_throttled, "more than a tenth is wanted");
    let (throttled, cpu_used) = (counter("nr_throttled") - throttled, cpu_time() - cpu_used);
    let periods = counter("nr_periods") - periods;
    assert!(
        (throttled * ALLOWED_NS / 2..periods * ALLOWED_NS * 3 / 2).contains(&cpu_used),
        "{cpu_used} ns in {periods} periods, throttled in {throttled}"
    );
}

#[test]
fn everything_at_a_site_has_its_cpus_and_its_share_of_them() {
    let Some(_lock) = lab_lock("everything_at_a_site_has_its_cpus_and_its_share_of_them") else {
        return;
    };
    let name = lab_name('w');
    let busy = "cpus = [0]\ncpu_share = \"10%\"\n[[service]]\nname = \"busy\"\nsite = \"a\"\n\
                command = [\"sh\", \"-c\", \"while :; do :; done\"]\n";
    let lab = match Lab::up(&one_site(busy), &UpOptions::with_name(&name)) {
        Ok(lab) => lab,
        Err(error) => {
            // A machine whose control groups are somebody else's: one sentence says so.
            assert!(!can_have_groups(), "{error}");
            assert!(error.to_string().contains("of site 'a'"), "{error}");
            assert_eq!(leftovers(&name), [].into());
            return;
        }
    };
    let [pid] = processes_in_lab(&name)[..] else {
        panic!("one shell");
    };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    assert_cpu_share_of_10_percent(&name, pid);
    let placement = lab.placement("a").expect("there");
    let thread_status =
        placement.run(|| fs::read_to_string("/proc/thread-self/status").expect("our own"));
    let thread_status = thread_status.expect("threads can be placed where processes can");
    assert!(
        thread_status.contains("Cpus_allowed_list:\t0\n"),
        "{thread_status}"
    );
    lab.abandon();
    Lab::down_by_name(&name).expect("down");
    assert_eq!(leftovers(&name), [].into());
}
