//! Guests: kernels of their own in a lab. Need root, user-mode-linux and busybox-static.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::labs::{LabGuard, privileged, topology_folder};
use crate::neph::{RunOutput, TestFolder};

pub(crate) const GUEST: &str = "version = 1\n\
    [[site]]\nname = \"client\"\naddress = \"10.86.0.1\"\n\
    [[site]]\nname = \"host\"\naddress = \"10.86.0.2\"\n\
    [[site]]\nname = \"vm\"\naddress = \"10.86.1.1\"\ninside = \"host\"\n\
    [[site]]\nname = \"other\"\naddress = \"10.86.1.2\"\ninside = \"host\"\n\
    [[link]]\na = \"client\"\nb = \"host\"\ndelay = \"3ms\"\n\
    [[guest]]\nname = \"m\"\nkind = \"uml\"\nsites = [\"vm\", \"other\"]\nmemory = \"256MiB\"\nport = 9000\n\
    run = [\"echo ran > /tmp/ran\"]\n";

/// Whether guests can be made; where they cannot the test is skipped and says so.
pub(crate) fn can_run_guests(test: &str) -> bool {
    if !privileged(test) {
        return false;
    }
    let exists = Path::new("/usr/bin/linux.uml").exists();
    if !exists {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "{test} needs user-mode-linux");
        println!("SKIP {test}: guests need the package user-mode-linux");
    }
    exists && !is_of_amx(test)
}

/// User-Mode Linux 6.1 dies on processors with AMX, which no package mends: the test is skipped there,
/// in CI too.
fn is_of_amx(test: &str) -> bool {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_amx = cpuinfo.split_whitespace().any(|flag| flag == "amx_tile");
    if is_amx {
        println!("SKIP {test}: User-Mode Linux 6.1 cannot run on a processor with AMX");
    }
    is_amx
}

#[test]
fn a_guest_answers_with_its_kernels_timestamps_runs_commands_and_leaves_no_files() {
    let test = "a_guest_answers_with_its_kernels_timestamps_runs_commands_and_leaves_no_files";
    if !can_run_guests(test) {
        return;
    }
    let lab = LabGuard::up(GUEST, 'g');
    let run = |site: &str, command: &[&str]| {
        let args = ["lab", "run", site, "--lab", &lab.name, "--"];
        lab.folder.neph(args.iter().chain(command).copied())
    };
    let host_release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let run_output = run("vm", &["sh", "-c", "uname -r; cat /tmp/ran; exit 7"]);
    assert_eq!(run_output.status, 7, "{}", run_output.err);
    let (release, ran) = run_output.out.split_once('\n').expect("two lines");
    assert!(
        release != host_release.trim() && ran == "ran\n",
        "{}",
        run_output.out
    );
    // Bytes as they are, and more of them than a pipe holds.
    let many_lines = run("vm", &["sh", "-c", "seq 20000; printf 'a  b'"]);
    assert!(
        many_lines.out.ends_with("19999\n20000\na  b"),
        "{}",
        many_lines.out.len()
    );
    let neph = env!("CARGO_BIN_EXE_neph");
    // More than a frame at once, both ways: a guest's interface takes no longer ones.
    let arguments =
        "tcp://10.86.1.1:9000 -c 3 -i 100ms --timeout 60s -s 300kB --response-size 300kB";
    for (site, program) in [("client", neph), ("host", neph), ("other", "neph")] {
        let ping = [program, "ping"].into_iter().chain(arguments.split(' '));
        let output = run(site, &ping.collect::<Vec<_>>());
        let contains = output.out.contains("3 messages, 3 replies");
        assert!(contains, "{site}: {}", output.out);
    }
    let ping = [
        neph,
        "ping",
        "udp://10.86.1.1:9000",
        "-c",
        "20",
        "-i",
        "20ms",
        "--timeout",
        "60s",
        "--format",
        "json",
    ];
    let output = run("client", &ping);
    assert_eq!(output.status, 0, "{}", output.err);
    assert!(output.out.contains("\"peer kernel\""), "{}", output.out);
    let name = lab.name.clone();
    drop(lab);
    let folder = Path::new("/run/neph").join(&name);
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let remaining = processes.filter(|process| {
        let at = fs::read_link(process.path().join("cwd"));
        at.is_ok_and(|at| at.starts_with(&folder))
    });
    assert_eq!(remaining.count(), 0);
    assert!(!folder.exists());
}

/// A folder of programs that has what labs need, and no User-Mode Linux.
fn without_uml(test_folder: &TestFolder) -> PathBuf {
    let programs = test_folder.path("bin");
    fs::create_dir(&programs).expect("a folder");
    for program in ["ip", "bridge", "tc", "sh", "nsenter", "mkfifo", "busybox"] {
        let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        let files = folders.iter().map(|folder| Path::new(folder).join(program));
        let file = files.into_iter().find(|file| file.exists()).expect(program);
        std::os::unix::fs::symlink(file, programs.join(program)).expect("a link");
    }
    programs
}

#[test]
fn guests_that_cannot_run_are_replaced_by_namespaces() {
    let test = "guests_that_cannot_run_are_replaced_by_namespaces";
    if !can_run_guests(test) {
        return;
    }
    let folder = topology_folder(&GUEST.replace("run = [\"echo ran > /tmp/ran\"]\n", ""));
    let plan = "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 20\nstress = \"other 5%\"\n\
        [[endpoint]]\nname = \"vm\"\nurl = \"udp://10.86.1.1:9000\"\n\
        [lab]\ntopology = \"two.toml\"\nprober = \"client\"\n";
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let programs = without_uml(&folder);
    let mut run = folder.command(["run", "p.toml", "--no-report"]);
    let ran: RunOutput = run
        .env("PATH", &programs)
        .output()
        .expect("neph runs")
        .into();
    assert_eq!(ran.status, 0, "{}", ran.err);
    let expected = "guests as namespaces: those of [[guest]] m (vm, other) cannot run here: the program \
                'linux.uml' is missing: install the package user-mode-linux\n";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let shown = folder.neph(["show", "--format", "json"]).out;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let expected = "W020 guests-replaced: network namespaces replaced the guests vm, other: \
                    the program 'linux.uml' is missing";
    assert!(shown.to_string().contains(expected), "{shown}");
}

/// Whether qemu's guests can be made; where they cannot the test is skipped and says so.
pub(crate) fn has_machines(test: &str) -> bool {
    if !privileged(test) {
        return false;
    }
    let kernels = fs::read_dir("/boot").into_iter().flatten().flatten();
    let has_kernel = kernels
        .map(|file| file.file_name())
        .any(|name| name.to_string_lossy().starts_with("vmlinuz-"));
    if !has_kernel || !Path::new("/usr/bin/qemu-system-x86_64").exists() {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "{test} needs qemu-system-x86 and a kernel in /boot");
        println!("SKIP {test}: needs the packages qemu-system-x86 and linux-image-cloud-amd64");
        return false;
    }
    true
}

#[test]
fn a_machine_of_qemu_runs_an_installed_kernel_and_answers_with_its_marks() {
    let test = "a_machine_of_qemu_runs_an_installed_kernel_and_answers_with_its_marks";
    if !has_machines(test) {
        return;
    }
    let lab = LabGuard::up(&GUEST.replace("\"uml\"", "\"qemu\"\nvcpus = 2"), 'q');
    let run = |site: &str, command: &[&str]| {
        let args = ["lab", "run", site, "--lab", &lab.name, "--"];
        lab.folder.neph(args.iter().chain(command).copied())
    };
    let script = "cat /proc/cmdline; ls /sys/bus/virtio/devices; echo processors $(nproc); exit 7";
    let ran = run("vm", &["sh", "-c", script]);
    assert_eq!(ran.status, 7, "{}", ran.err);
    let is_ours = ran.out.contains("neph.name=vm") && ran.out.contains("virtio0");
    assert!(is_ours, "{}", ran.out);
    assert!(ran.out.contains("processors 2"), "{}", ran.out);
    let neph = env!("CARGO_BIN_EXE_neph");
    let arguments = "udp://10.86.1.1:9000 -c 20 -i 20ms --timeout 60s --format json";
    let ping = [neph, "ping"].into_iter().chain(arguments.split(' '));
    let output = run("client", &ping.collect::<Vec<_>>());
    assert_eq!(output.status, 0, "{}", output.err);
    assert!(output.out.contains("\"peer kernel\""), "{}", output.out);
    // Segments longer than a frame leave the guest, and come to it one by one.
    let arguments =
        "tcp://10.86.1.1:9000 -c 3 -i 100ms --timeout 60s -s 300kB --response-size 300kB";
    let ping = [neph, "ping"].into_iter().chain(arguments.split(' '));
    let output = run("client", &ping.collect::<Vec<_>>());
    assert!(
        output.out.contains("3 messages, 3 replies"),
        "{}",
        output.out
    );
}

#[test]
fn a_guest_that_cannot_start_reports_its_package_or_memory() {
    let test = "a_guest_that_cannot_start_reports_its_package_or_memory";
    if !can_run_guests(test) {
        return;
    }
    let name = format!("h{}", std::process::id());
    let folder = topology_folder(&GUEST.replace("256MiB", "64MiB"));
    let args = [
        "lab", "up", "two.toml", "--yes", "--detach", "--name", &name,
    ];
    let ran = folder.neph(args);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.err.contains("or more at [[guest]] m"), "{}", ran.err);
    let programs = without_uml(&folder);
    let refusing = GUEST.replace("\"uml\"", "\"uml\"\nfallback = false");
    fs::write(folder.path("two.toml"), refusing).expect("a file");
    let without = folder.command(args).env("PATH", &programs).output();
    let stderr = String::from_utf8(without.expect("neph runs").stderr).expect("UTF-8");
    assert!(
        stderr.contains("install the package user-mode-linux"),
        "{stderr}"
    );
}

#[test]
fn a_plan_with_a_reflector_in_a_guest_is_refused() {
    let folder = topology_folder(GUEST);
    let plan = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
        [[endpoint]]\nname = \"vm\"\nurl = \"udp://10.86.1.1:9000\"\n\
        [lab]\ntopology = \"two.toml\"\nprober = \"client\"\n";
    let check = |extra_lines: &str| {
        fs::write(folder.path("p.toml"), format!("{plan}{extra_lines}")).expect("a file");
        folder.neph(["check", "p.toml"])
    };
    let fine = check("");
    assert_eq!(fine.status, 0, "{}", fine.err);
    let ran = check("[[lab.reflector]]\nsite = \"vm\"\n");
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("'vm' is a guest"), "{}", ran.err);
}

#[test]
fn verify_holds_a_guest_against_the_ceiling_of_its_tap() {
    let test = "verify_holds_a_guest_against_the_ceiling_of_its_tap";
    if !can_run_guests(test) {
        return;
    }
    // Without a link: a busy machine may find it late, and that is not asked here.
    let folder = topology_folder(
        "version = 1\n[[site]]\nname = \"host\"\naddress = \"10.86.0.2\"\n\
         [[site]]\nname = \"vm\"\naddress = \"10.86.1.1\"\ninside = \"host\"\n\
         [[guest]]\nname = \"m\"\nkind = \"uml\"\nsites = [\"vm\"]\nmemory = \"256MiB\"\n\
         bandwidth = \"4Mbit/s\"\n",
    );
    let ran = folder.neph(["lab", "verify", "two.toml", "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    assert_eq!(
        (ran.status, &document[0]["to"]),
        (0, &Value::from("vm")),
        "{}",
        ran.out
    );
    assert_eq!(
        document[0]["rate_configured_bits_per_s"], 4_000_000,
        "{document}"
    );
    let measured_rate = document[0]["rate_measured_bits_per_s"].as_u64();
    assert!(
        measured_rate.is_some_and(|measured_rate| measured_rate > 0),
        "{document}"
    );
}
