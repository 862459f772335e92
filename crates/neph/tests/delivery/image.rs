//! The container image, in podman and in Docker: loaded, healthy, measured; with no capability, and with the
//! one that ICMP needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use neph_sys::deadline::{poll, wait_until};
use neph_sys::netns::{NetNs, remove, with_namespace};
use neph_sys::process::{self, Request};
use neph_sys::restrict::is_root;
use serde_json::Value;
use tempfile::TempDir;

use crate::prerequisites::{has_programs, neph, root, run, skip, static_binary, try_run};

/// An engine starts, or a container.
const TIMEOUT: Duration = Duration::from_mins(1);
const INTERVAL: Duration = Duration::from_millis(200);
/// Loopback of the test's own namespace.
const ADDRESS: &str = "127.0.0.1:8080";

fn image_name() -> String {
    format!("localhost/neph:{}", env!("CARGO_PKG_VERSION"))
}

/// Writes the image of a binary; what the tool printed.
fn image(binary: &Path, output: &Path) -> String {
    let (binary, output) = (binary.display().to_string(), output.display().to_string());
    let arguments = ["--binary", &binary, "--output", &output];
    run(root().join("tools/image"), &arguments)
}

/// A container engine of the test's own: its images and containers go with its folder.
struct Engine {
    command: Vec<String>,
    /// What each container needs here.
    run_options: Vec<String>,
    /// The control group of its containers, below every mount.
    group: String,
    /// The engine, or the process whose folders its commands see.
    daemon: Child,
    /// Folders that were made to be hidden.
    created_folders: Vec<&'static str>,
    folder: TempDir,
}

fn split_args(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Where engines keep things outside of their own folders.
const ENGINE_FOLDERS: [&str; 8] = [
    "/etc/docker",
    "/run/containerd",
    "/run/containers",
    "/run/docker",
    "/run/libpod",
    "/var/lib/cni",
    "/var/lib/containers",
    "/var/lib/docker",
];

/// Starts a program that does not see what engines of the host keep, and whose own goes with it.
fn start_isolated(program: &str, log: &Path) -> Child {
    let script = format!(
        "for folder in {}; do mkdir -p $folder && mount -t tmpfs tmpfs $folder || exit 1; done; \
         echo hidden >&2; exec {program}",
        ENGINE_FOLDERS.join(" ")
    );
    let mut command = process::command("unshare");
    // Each program takes the place of the one before: the child is the program itself.
    command.args(["--mount", "sh", "-c", &script]);
    command
        .stdout(Stdio::null())
        .stderr(fs::File::create(log).expect("a file"));
    command.spawn().expect("unshare runs")
}

impl Engine {
    /// All its commands see the same folders: those of a process that waits.
    fn podman() -> Self {
        let (folder, created_folders) = (tempfile::tempdir().expect("a folder"), missing_folders());
        let log = folder.path().join("log");
        let daemon = start_isolated("sleep infinity", &log);
        let is_up = || fs::read_to_string(&log).is_ok_and(|text| text.contains("hidden"));
        assert!(
            poll(INTERVAL, TIMEOUT, is_up),
            "{:?}",
            fs::read_to_string(&log)
        );
        let settings = folder.path().join("containers.conf");
        // Locks in shared memory would stay.
        fs::write(&settings, "[engine]\nlock_type = \"file\"\n").expect("writable");
        let path = folder.path().display();
        let command = split_args(&format!(
            "nsenter --mount --target {} env CONTAINERS_CONF={} podman --root {path}/root --runroot {path}/run \
             --tmpdir {path}/tmp --storage-driver vfs --cgroup-manager cgroupfs --runtime runc",
            daemon.id(),
            settings.display()
        ));
        // Podman would raise limits, which not every root may.
        let limits = "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024";
        let group = format!("neph-delivery-podman-{}", std::process::id());
        Self {
            command,
            run_options: split_args(&format!("{limits} --cgroup-parent /{group}")),
            group,
            daemon,
            created_folders,
            folder,
        }
    }

    fn docker() -> Self {
        let (folder, created_folders) = (tempfile::tempdir().expect("a folder"), missing_folders());
        let (log, path) = (folder.path().join("log"), folder.path().display());
        let group = format!("neph-delivery-docker-{}", std::process::id());
        let program = format!(
            "dockerd --data-root {path}/data --exec-root {path}/exec -p {path}/pid -H unix://{path}/sock \
             --cgroup-parent /{group} --bridge none --iptables=false \
             --exec-opt native.cgroupdriver=cgroupfs"
        );
        let engine = Self {
            command: split_args(&format!("docker -H unix://{path}/sock")),
            run_options: Vec::new(),
            group,
            daemon: start_isolated(&program, &log),
            created_folders,
            folder,
        };
        let is_up = poll(INTERVAL, TIMEOUT, || engine.try_run(&["info"]).0);
        let log = fs::read_to_string(engine.folder.path().join("log"));
        assert!(is_up, "dockerd does not start: {}", log.unwrap_or_default());
        engine
    }

    fn try_run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command: Command = process::command(&self.command[0]);
        try_run(command.args(&self.command[1..]).args(arguments))
    }

    fn run(&self, arguments: &[&str]) -> String {
        let (is_ok, printed) = self.try_run(arguments);
        assert!(is_ok, "{} {arguments:?}: {printed}", self.command[0]);
        printed
    }

    /// Runs neph in a container in the test's namespace, with these options of the engine.
    fn neph(&self, options: &str, arguments: &str) -> (bool, String) {
        let image = image_name();
        let mut command_args = vec!["run", "--network", "host"];
        command_args.extend(self.run_options.iter().map(String::as_str));
        command_args.extend(options.split(' '));
        command_args.push(&image);
        command_args.extend(arguments.split(' '));
        self.try_run(&command_args)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Containers before their engine.
        self.try_run(&["rm", "--force", "reflector"]);
        self.try_run(&["rmi", "--force", &image_name()]);
        let _ = process::ask(self.daemon.id(), Request::End);
        let _ = self.daemon.wait();
        for folder in &self.created_folders {
            // Empty: what was in it was in another mount namespace.
            let _ = fs::remove_dir(folder);
        }
        remove_groups(&self.group);
    }
}

/// Folders of engines that this host does not have.
fn missing_folders() -> Vec<&'static str> {
    let folders = ENGINE_FOLDERS.into_iter();
    folders
        .filter(|folder| !Path::new(folder).exists())
        .collect()
}

/// Removes control groups of this name, below every mount: their processes are gone.
fn remove_groups(name: &str) {
    let mounts = fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten();
    for mount in mounts
        .map(|mount| mount.path())
        .chain([PathBuf::from("/sys/fs/cgroup")])
    {
        let group = mount.join(name);
        let inner = fs::read_dir(&group).into_iter().flatten().flatten();
        for folder in inner.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            let _ = fs::remove_dir(folder);
        }
        let _ = fs::remove_dir(group);
    }
}

/// The image as the engine shows it.
fn check_settings(engine: &Engine) {
    let inspection = engine.run(&["inspect", &image_name()]);
    let inspection: Value = serde_json::from_str(&inspection).expect("JSON");
    let (image, config) = (&inspection[0], &inspection[0]["Config"]);
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"], serde_json::json!(["/neph"]));
    let label = |key: &str| &config["Labels"][format!("org.opencontainers.image.{key}")];
    assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(label("revision").as_str().map(str::len), Some(40));
    // Docker shows it in the configuration, podman before it.
    let health = [
        &config["Healthcheck"],
        &image["HealthCheck"],
        &image["Healthcheck"],
    ];
    let test = health
        .iter()
        .find(|health| !health.is_null())
        .map(|health| &health["Test"]);
    assert_eq!(test, Some(&serde_json::json!(["CMD", "/neph", "health"])));
}

/// A reflector in a container without any right: healthy, and measured from outside and from inside.
fn check_reflector(engine: &Engine) {
    let options =
        "--detach --name reflector --read-only --cap-drop ALL --env NEPH_HEALTH=127.0.0.1:8080";
    let (is_ok, printed) = engine.neph(options, &format!("reflect --listen {ADDRESS}"));
    assert!(is_ok, "{printed}");
    let mut last = String::new();
    let is_healthy = poll(INTERVAL, TIMEOUT, || {
        let (is_ok, printed) = engine.try_run(&["exec", "reflector", "/neph", "health"]);
        last = printed;
        is_ok
    });
    assert!(
        is_healthy,
        "{last}{}",
        engine.try_run(&["logs", "reflector"]).1
    );
    assert!(last.contains("answers (a reflector)"), "{last}");
    let logs = engine.run(&["logs", "reflector"]);
    assert!(
        logs.contains("privileges: no capabilities, no_new_privs on, seccomp on"),
        "{logs}"
    );
    let target = format!("ws://{ADDRESS}");
    let (is_ok, printed) =
        try_run(neph().args(["ping", &target, "--no-icmp", "-c", "5", "-i", "50ms"]));
    assert!(is_ok && printed.contains("5 replies"), "{printed}");
    // What needs no privilege, as the user of the image.
    for target in ["ws", "http", "tcp", "udp"] {
        let arguments = format!("ping {target}://{ADDRESS} --no-icmp -c 5 -i 50ms");
        let (is_ok, printed) = engine.neph("--rm --read-only --cap-drop ALL", &arguments);
        assert!(
            is_ok && printed.contains("5 replies"),
            "{target}: {printed}"
        );
    }
}

/// Root without its rights but for raw sockets sends ICMP echo; without that one too it cannot.
fn check_icmp(engine: &Engine) {
    let ping = "ping icmp://127.0.0.1 -c 3 -i 50ms";
    let (is_ok, printed) = engine.neph("--rm --user 0:0 --cap-drop ALL --cap-add NET_RAW", ping);
    assert!(is_ok && printed.contains("3 replies"), "{printed}");
    let (is_ok, printed) = engine.neph("--rm --user 0:0 --cap-drop ALL", ping);
    assert!(!is_ok && !printed.contains("replies"), "{printed}");
}

fn check_end(engine: &Engine) {
    engine.run(&["stop", "--time", "20", "reflector"]);
    let state = engine.run(&["inspect", "--format", "{{.State.ExitCode}}", "reflector"]);
    assert_eq!(state.trim(), "0", "it ends by itself when it is asked to");
    engine.run(&["rm", "reflector"]);
}

fn check(test: &str, programs: &[&str], engine: fn() -> Engine) {
    if !is_root() {
        return skip(test, "a container engine of its own needs root");
    }
    if !has_programs(test, programs) {
        return;
    }
    let Some(binary) = static_binary(test) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    image(&binary, folder.path());
    let namespace = format!("nephdelivery-{}-{}", std::process::id(), programs[0]);
    let ns = NetNs::create(&namespace).expect("root");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_namespace(&ns, || {
            run("ip", &["link", "set", "lo", "up"]);
            let engine = engine();
            let archive = folder.path().join("neph.tar").display().to_string();
            engine.run(&["load", "-i", &archive]);
            check_settings(&engine);
            check_reflector(&engine);
            check_icmp(&engine);
            check_end(&engine);
        })
    }));
    // Containers that end hold it for a moment.
    let removed = wait_until(TIMEOUT, || remove(&namespace).is_ok());
    outcome
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .expect("entered");
    assert!(removed, "the namespace stays");
}

#[test]
fn podman_runs_the_image() {
    check(
        "podman_runs_the_image",
        &["podman", "runc", "unshare", "nsenter", "ip"],
        Engine::podman,
    );
}

#[test]
fn docker_runs_the_image() {
    let programs = ["docker", "dockerd", "unshare", "ip"];
    check("docker_runs_the_image", &programs, Engine::docker);
}

#[test]
fn two_runs_write_the_same_image_and_its_digests_are_right() {
    let test = "two_runs_write_the_same_image_and_its_digests_are_right";
    if !has_programs(test, &["python3", "sha256sum", "tar"]) {
        return;
    }
    let Some(binary) = static_binary(test) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("one"), folder.path().join("two"));
    assert_eq!(
        image(&binary, &first).lines().take(2).collect::<Vec<_>>(),
        image(&binary, &second).lines().take(2).collect::<Vec<_>>()
    );
    let pair = [first.display().to_string(), second.display().to_string()];
    run("diff", &["-r", &pair[0], &pair[1]]);
    // Each blob of the layout is called by its digest, and the manifests name no other.
    let read = |path: &Path| fs::read_to_string(path).expect("readable");
    let index = first.join("oci/index.json");
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let blob = |digest: &Value| {
        let digest = digest
            .as_str()
            .and_then(|text| text.strip_prefix("sha256:"));
        let digest = digest.expect("a digest").to_owned();
        let path = first.join("oci/blobs/sha256").join(&digest);
        let sum = run("sha256sum", &[&path.display().to_string()]);
        assert!(sum.starts_with(&digest), "{sum}");
        path
    };
    let manifest = json(&read(&blob(&json(&read(&index))["manifests"][0]["digest"])));
    let config = json(&read(&blob(&manifest["config"]["digest"])));
    let layer = blob(&manifest["layers"][0]["digest"]).display().to_string();
    let plain = run("sh", &["-c", &format!("gzip -dc {layer} | sha256sum")]);
    let diff = config["rootfs"]["diff_ids"][0].as_str().expect("a digest");
    assert_eq!(format!("sha256:{}", &plain[..64]), diff);
    let files = run("tar", &["-tzf", &layer]);
    for file in [
        "neph",
        "data/",
        "usr/share/doc/neph/LICENSE-MIT",
        "usr/share/doc/neph/neph.cdx.json",
    ] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
}

#[test]
fn a_program_that_is_not_static_becomes_no_image() {
    let test = "a_program_that_is_not_static_becomes_no_image";
    if !has_programs(test, &["python3"]) {
        return;
    }
    let mut tool = process::command(root().join("tools/image"));
    let folder = tempfile::tempdir().expect("a folder");
    let (is_ok, printed) = try_run(
        tool.args(["--binary", env!("CARGO_BIN_EXE_neph"), "--output"])
            .arg(folder.path()),
    );
    assert!(
        !is_ok && printed.contains("needs a dynamic linker"),
        "{printed}"
    );
}
