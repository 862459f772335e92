//! Labs at the command line: read, up, down, and carried out in. Most need root.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, eventually, send_signal, start_and_read_line};

pub(crate) const TWO_SITES: &str = "version = 1\n\
    [[site]]\nname = \"a\"\naddress = \"10.80.0.1/24\"\n\
    [[site]]\nname = \"b\"\naddress = \"10.80.0.2/24\"\n\
    [[link]]\nname = \"path\"\na = \"a\"\nb = \"b\"\ndelay = \"2ms\"\n";

pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// Whether labs can be made; without root the test is skipped and says so.
pub(crate) fn privileged(test: &str) -> bool {
    let root = is_root();
    if !root {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "{test} needs root");
        println!("SKIP {test}: network namespaces need root");
    }
    root
}

pub(crate) fn topology_folder(topology: &str) -> TestFolder {
    let folder = TestFolder::empty();
    fs::write(folder.path("two.toml"), topology).expect("a file");
    folder
}

#[test]
fn a_valid_topology_is_accepted_and_an_invalid_one_located() {
    let ran = topology_folder(TWO_SITES).neph(["lab", "check", "two.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("2 sites, 1 link\n"), "{}", ran.err);
    let wrong = TWO_SITES
        .replace("delay", "dealy")
        .replace("= \"b\"\n[", "= \"c\"\n[");
    for command in ["check", "up", "verify"] {
        let ran = topology_folder(&wrong).neph(["lab", command, "two.toml"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("two.toml:12:1"), "{}", ran.err);
        assert!(ran.err.contains("did you mean 'delay'?"), "{}", ran.err);
    }
    let ran = topology_folder(TWO_SITES).neph(["lab", "check", "three.toml"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("three.toml"), "{}", ran.err);
}

#[test]
fn a_lab_that_is_not_there_and_a_name_that_cannot_be() {
    let ran = topology_folder(TWO_SITES).neph(["lab", "down", "nonesuch"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("there is no lab 'nonesuch'"),
        "{}",
        ran.err
    );
    let offers = ["no lab is up", "did you mean", "known here: "];
    let is_offered = offers.iter().any(|offer| ran.err.contains(offer));
    assert!(is_offered, "as neph lab status does: {}", ran.err);
    let ran = topology_folder(TWO_SITES).neph(["lab", "up", "two.toml", "--name", "No-Name"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("'No-Name'"), "{}", ran.err);
    assert_eq!(topology_folder(TWO_SITES).neph(["lab", "down"]).status, 2);
}

/// Runs neph as nobody, who may do so much with the folder.
pub(crate) fn without_root<const N: usize>(
    folder: &TestFolder,
    mode: u32,
    arguments: [&str; N],
) -> RunOutput {
    let mut command = folder.command(arguments);
    if is_root() {
        let open = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path(""), open).expect("our own folder");
        command.uid(65534).gid(65534);
    }
    RunOutput::from(command.output().expect("neph runs"))
}

#[test]
fn lab_up_without_root_is_refused_in_one_sentence() {
    let folder = topology_folder(TWO_SITES);
    // The folder is the user's own; nobody may look into it.
    let ran = without_root(&folder, 0o755, ["lab", "up", "two.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("needs root"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn a_site_that_cannot_be_entered_is_reported_with_its_remedy() {
    let test = "a_site_that_cannot_be_entered_is_reported_with_its_remedy";
    if !privileged(test) {
        return;
    }
    let lab = LabGuard::up(TWO_SITES, 'e');
    let site = format!("neph-{}-a", lab.name);
    let ping = ["ping", "udp://10.80.0.2", "-c", "1", "--site", &site];
    let ran = without_root(&lab.folder, 0o777, ping);
    assert_ne!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("; run it as root"), "{}", ran.err);
}

#[test]
fn a_plan_with_a_lab_writes_nothing_where_labs_are_not_permitted() {
    let folder = topology_folder(TWO_SITES);
    let plan = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
        [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n\
        [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n[[lab.reflector]]\nsite = \"b\"\n";
    fs::write(folder.path("p.toml"), plan).expect("written");
    // The folder is anybody's to write, so that only the lab is refused.
    let ran = without_root(&folder, 0o777, ["run", "p.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("a lab needs root"), "{}", ran.err);
    assert_eq!(folder.files(), ["p.toml", "two.toml"]);
}

#[test]
fn a_lab_comes_up_prints_how_to_enter_and_goes_down_at_ctrl_c() {
    let test = "a_lab_comes_up_prints_how_to_enter_and_goes_down_at_ctrl_c";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    let name = format!("cli{}", std::process::id());
    let mut up = folder.command([
        "lab", "up", "two.toml", "--name", &name, "--record", "truth",
    ]);
    let (mut child, mut err, mut line) = start_and_read_line(up.stdout(Stdio::piped()));
    assert!(line.contains("is up; ctrl-C"), "{line}");
    let listed = folder.neph(["lab", "list", "--format", "json"]);
    let labs: Value = serde_json::from_str(&listed.out).expect("JSON");
    let labs = labs.as_array().expect("a list");
    let own_lab = labs.iter().find(|lab| lab["name"] == name.as_str());
    assert_eq!(own_lab.expect("listed")["owner"], child.id());
    send_signal("INT", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    line.clear();
    err.read_to_string(&mut line).expect("readable");
    assert!(line.contains(&format!("{name} is down")), "{line}");
    let mut out = String::new();
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_to_string(&mut out).expect("readable");
    let command = format!("nsenter --net=/run/netns/neph-{name}-a");
    assert!(out.contains(&command), "{out}");
    assert!(folder.path("truth/path.truth").exists());
    let remaining = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let remaining = remaining.filter(|entry| entry.file_name().to_string_lossy().contains(&name));
    assert_eq!(remaining.count(), 0);
}

#[test]
fn a_campaign_goes_on_in_the_lab_it_began_in_whatever_became_of_the_files() {
    let test = "a_campaign_goes_on_in_the_lab_it_began_in_whatever_became_of_the_files";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    // Nobody listens at a itself, so there is always something left to do.
    let plan = "version = 1\nname = \"x\"\ninterval = \"1ms\"\nmessages = 1\ntries = 1\n\n\
                [[endpoint]]\nname = \"b\"\nurl = \"ws://127.0.0.1:8080/\"\n\n\
                [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    let ran = folder.neph(["run", "plan.toml", "--no-report"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    for file in ["two.toml", "plan.toml"] {
        fs::remove_file(folder.path(file)).expect("removed");
    }
    let ran = folder.neph(["resume", "--no-report"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.err.contains("are left to do"), "{}", ran.err);
    assert!(!ran.err.contains("cannot be read"), "{}", ran.err);
    let shown: Value =
        serde_json::from_str(&folder.neph(["show", "--format", "json"]).out).expect("JSON");
    assert_eq!(shown["topology"], TWO_SITES);
    assert_eq!(shown["experiments"].as_array().map(Vec::len), Some(2));
}

/// A lab in the background, and a way to speak to it; it goes down with this.
pub(crate) struct LabGuard {
    pub(crate) folder: TestFolder,
    pub(crate) name: String,
}

impl LabGuard {
    pub(crate) fn up(topology: &str, letter: char) -> Self {
        Self::up_with(topology, letter, &[])
    }

    /// With a record of one packet in so many, in the folder `truth`.
    pub(crate) fn recording(topology: &str, letter: char, every: &str) -> Self {
        Self::up_with(topology, letter, &["--record", "truth", "--every", every])
    }

    fn up_with(topology: &str, letter: char, extra_args: &[&str]) -> Self {
        let name = format!("{letter}{}", std::process::id());
        let lab = Self {
            folder: topology_folder(topology),
            name,
        };
        let args = [
            "lab", "up", "two.toml", "--yes", "--detach", "--name", &lab.name,
        ];
        let args: Vec<&str> = args.iter().chain(extra_args).copied().collect();
        let ran = lab.folder.neph(args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert!(ran.err.contains("is up, kept by process"), "{}", ran.err);
        lab
    }

    fn up_repeatedly(&self) -> RunOutput {
        let args = [
            "lab", "up", "two.toml", "--yes", "--detach", "--name", &self.name,
        ];
        self.folder.neph(args)
    }

    pub(crate) fn at(&self, site: &str, command: &str) -> RunOutput {
        let args = [
            "lab", "run", site, "--lab", &self.name, "--", "sh", "-c", command,
        ];
        self.folder.neph(args)
    }

    pub(crate) fn status(&self) -> Value {
        let args = ["lab", "status", &self.name, "--format", "json"];
        let ran = self.folder.neph(args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).expect("JSON")
    }
}

impl Drop for LabGuard {
    fn drop(&mut self) {
        self.folder.neph(["lab", "down", &self.name]);
    }
}

#[test]
fn a_lab_in_the_background_can_be_used_and_taken_down() {
    let test = "a_lab_in_the_background_can_be_used_and_taken_down";
    if !privileged(test) {
        return;
    }
    let service = "[[service]]\nname = \"sleeper\"\nsite = \"b\"\ncommand = [\"sleep\", \"60\"]\n";
    let lab = LabGuard::up(&format!("{TWO_SITES}{service}"), 'k');
    let output = lab.up_repeatedly();
    assert_eq!(output.status, 0, "{}", output.err);
    assert!(output.err.contains("is up already"), "{}", output.err);
    let args = ["lab", "up", "two.toml", "--name", &lab.name];
    let recorded = lab.folder.neph(args.into_iter().chain(["--record", "x"]));
    assert_eq!(recorded.status, 2, "{}", recorded.err);
    let remedy = format!("neph lab down {}", lab.name);
    assert!(recorded.err.contains(&remedy), "{}", recorded.err);
    assert!(!lab.folder.path("x").exists(), "nothing was done");
    let address_output = lab.at("a", "ip -o address show dev lo; exit 7");
    assert_eq!(address_output.status, 7, "{}", address_output.err);
    assert!(
        address_output.out.contains("10.80.0.1"),
        "{}",
        address_output.out
    );
    let reached = lab.at("a", "ping -c 3 -i 0.2 -W 5 -q 10.80.0.2");
    assert_eq!(reached.status, 0, "{}", reached.err);
    let status = lab.status();
    assert_eq!(status["services"][0]["state"], "ready");
    assert_eq!(status["links"].as_array().map(Vec::len), Some(2));
    assert_eq!(status["links"][0]["delivered"], 3, "{status:#}");
    let missing = lab.at("c", "true");
    assert_eq!(missing.status, 2);
    assert!(missing.err.contains("has no site 'c'"), "{}", missing.err);
    fs::write(lab.folder.path("two.toml"), TWO_SITES.replace("2ms", "3ms")).expect("a file");
    let other = lab.up_repeatedly();
    assert_eq!(other.status, 1, "{}", other.err);
    assert!(other.err.contains("from another topology"), "{}", other.err);
    let keeper = status["process"].as_u64().expect("a number");
    let down = lab.folder.neph(["lab", "down", &lab.name]);
    assert_eq!(down.status, 0, "{}", down.err);
    // An init that asks no orphan how it ended leaves a zombie.
    let state = fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    let status_after_down = lab.folder.neph(["lab", "status", &lab.name]);
    assert_eq!(status_after_down.status, 1, "{}", status_after_down.err);
}

#[test]
fn a_shell_at_a_site_knows_its_lab_and_site() {
    if !privileged("a_shell_at_a_site_knows_its_lab_and_site") {
        return;
    }
    let lab = LabGuard::up(TWO_SITES, 'l');
    let mut child = lab
        .folder
        .command(["lab", "shell", "a", "--lab", &lab.name])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let mut input = child.stdin.take().expect("piped");
    std::io::Write::write_all(
        &mut input,
        b"echo $NEPH_LAB $NEPH_SITE; ip -o address; exit 3\n",
    )
    .expect("it listens");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{stdout}");
    assert!(stdout.contains(&format!("{} a\n", lab.name)), "{stdout}");
    assert!(stdout.contains("10.80.0.1"), "{stdout}");
}

#[test]
fn a_crashed_lab_is_replaced_and_a_background_failure_reported() {
    let test = "a_crashed_lab_is_replaced_and_a_background_failure_reported";
    if !privileged(test) {
        return;
    }
    let lab = LabGuard::up(TWO_SITES, 'm');
    let keeper = lab.status()["process"].as_u64().expect("a number");
    send_signal("KILL", u32::try_from(keeper).expect("a process"));
    let status_after_down = || !std::path::Path::new(&format!("/proc/{keeper}")).exists();
    eventually("killed", Duration::from_secs(10), status_after_down);
    let output = lab.up_repeatedly();
    assert_eq!(output.status, 0, "{}", output.err);
    assert!(output.err.contains("is left over"), "{}", output.err);
    assert!(output.err.contains("is up, kept by"), "{}", output.err);
    let bad = "[[service]]\nname = \"web\"\nsite = \"b\"\ncommand = [\"no-such-x\"]\n";
    fs::write(lab.folder.path("bad.toml"), format!("{TWO_SITES}{bad}")).expect("a file");
    let args = ["lab", "up", "bad.toml", "--yes", "-d", "--name", "m1bad"];
    let ran = lab.folder.neph(args);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("'no-such-x' is missing"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn a_plan_shows_every_step_and_does_none() {
    let folder = topology_folder(TWO_SITES);
    let ran = folder.neph(["lab", "plan", "two.toml", "--name", "x"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    for line in [
        "# neph-x-wire\nip netns add neph-x-wire\n",
        "sysctl -w net.ipv4.ip_forward='0'\n",
        "ip -n neph-x-wire link add dev w0a type veth peer name path ",
        "ip -n neph-x-a route add 10.80.0.2/32 dev path src 10.80.0.1\n",
        "neph: carry link path between w0a and w0b\n",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let ran = folder.neph(["lab", "plan", "two.toml", "--name", "x", "--format", "json"]);
    let steps: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(steps[0]["namespace"], "neph-x-wire");
    assert!(!std::path::Path::new("/run/netns/neph-x-wire").exists());
}
