//! What neph reports to its service manager, and what health checks hear of it.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use neph_sys::deadline::wait_until;
use neph_sys::process::{self, Request};
use tempfile::TempDir;

use crate::prerequisites::{neph, try_run};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A service manager of one process: it starts neph, and reads what that reports.
struct ServiceManager {
    folder: TempDir,
    socket: UnixDatagram,
    child: Option<Child>,
}

impl ServiceManager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        Self {
            folder,
            socket,
            child: None,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Starts neph with a watchdog of this many milliseconds. Its messages go to a file.
    fn start(&mut self, arguments: &[&str], watchdog: u64) {
        let printed = fs::File::create(self.path("printed")).expect("a file");
        let mut command: Command = neph();
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("NOTIFY_SOCKET", self.path("notify"))
            .env("WATCHDOG_USEC", (watchdog * 1000).to_string())
            .env_remove("WATCHDOG_PID")
            .stdout(Stdio::null())
            .stderr(printed);
        self.child = Some(command.spawn().expect("neph runs"));
    }

    /// What came next and begins so, within 20 s; what comes before it is left out.
    fn receive(&self, beginning: &str) -> String {
        let mut bytes = [0; 1024];
        let mut received = String::new();
        let is_received = wait_until(TIMEOUT, || {
            let count = self.socket.recv(&mut bytes).unwrap_or(0);
            received = String::from_utf8_lossy(&bytes[..count]).into_owned();
            received.starts_with(beginning)
        });
        assert!(is_received, "no {beginning}: {}", self.printed());
        received
    }

    /// Where neph listens, as its status has it.
    fn receive_address(&self) -> String {
        let ready = self.receive("READY=1\nSTATUS=");
        let address = ready.rsplit(' ').next();
        address.expect("an address").to_owned()
    }

    fn printed(&self) -> String {
        fs::read_to_string(self.path("printed")).unwrap_or_default()
    }

    /// Asks neph to end; its exit status.
    fn end(&mut self) -> i32 {
        let mut child = self.child.take().expect("it runs");
        process::ask(child.id(), Request::End).expect("our own child");
        self.receive("STOPPING=1");
        child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether this address is healthy, and the sentence.
fn health(arguments: &[&str]) -> (i32, String) {
    let output = neph().arg("health").args(arguments).output();
    let output = output.expect("neph runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().expect("not killed"), text)
}

#[test]
fn a_reflector_reports_that_it_answers_that_it_lives_and_that_it_stops() {
    let mut manager = ServiceManager::new();
    manager.start(&["reflect", "--listen", "127.0.0.1:0"], 1000);
    let address = manager.receive_address();
    let (status, printed) = health(&[&address]);
    assert_eq!(status, 0, "{printed}");
    assert_eq!(
        printed,
        format!("http://{address}/health answers (a reflector)\n")
    );
    for _ in 0..3 {
        manager.receive("WATCHDOG=1");
    }
    assert_eq!(manager.end(), 0);
    let (status, printed) = health(&[&address]);
    assert_eq!(status, 1, "{printed}");
    assert!(
        printed.contains(&address) && printed.contains("refused"),
        "{printed}"
    );
}

#[test]
fn a_stalled_reflector_loop_sends_no_watchdog_message() {
    let mut manager = ServiceManager::new();
    let arguments = ["reflect", "--listen", "127.0.0.1:0", "--think", "3s"];
    manager.start(&arguments, 1000);
    let target = format!("udp://{}", manager.receive_address());
    manager.receive("WATCHDOG=1");
    let arguments = ["ping", &target, "-c", "1", "--timeout", "5s", "--no-icmp"];
    let (is_ok, printed) = try_run(neph().args(arguments));
    assert!(is_ok, "{printed}");
    let blocked = "neph-stamp is blocked";
    assert!(manager.printed().contains(blocked), "{}", manager.printed());
    manager.receive("WATCHDOG=1");
}

#[test]
fn a_controller_and_its_agent_report_and_the_agent_is_ready_without_its_controller() {
    let mut control = ServiceManager::new();
    control.start(
        &[
            "control",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "c",
        ],
        4000,
    );
    let address = control.receive_address();
    control.receive("WATCHDOG=1");
    let (status, printed) = health(&[&address]);
    assert_eq!(status, 0, "{printed}");
    assert_eq!(printed, format!("https://{address}/health answers\n"));

    let mut agent = ServiceManager::new();
    let controller = format!("wss://{address}");
    let file = agent.path("invitation");
    let arguments = [
        "agent",
        "--controller",
        &controller,
        "--folder",
        "a",
        "--invite-file",
        &file,
    ];
    invite(&control, &file);
    agent.start(&arguments, 4000);
    agent.receive("READY=1\nSTATUS=looks for its controller");
    agent.receive(&format!("STATUS=connected to {controller}"));
    agent.receive("WATCHDOG=1");
    assert_eq!(control.end(), 0);
    agent.receive("STATUS=without a controller");
    assert_eq!(agent.end(), 0);

    // Enrolled: with the same arguments, without the invitation and without a controller.
    fs::remove_file(&file).expect("it is there");
    agent.start(&arguments, 4000);
    agent.receive("READY=1");
    agent.receive("STATUS=without a controller");
    agent.receive("WATCHDOG=1");
    assert_eq!(agent.end(), 0);
}

/// Puts an invitation into a file that its owner alone can read.
fn invite(control: &ServiceManager, file: &str) {
    let mut command = neph();
    command.args(["control", "invite", "ams", "--control", &control.path("c")]);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    command
        .stdout(written.expect("a file"))
        .stderr(Stdio::null());
    assert!(command.status().expect("neph runs").success());
}

#[test]
fn an_invitation_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("invitation");
    let printed = |file: &Path| {
        let mut agent = neph();
        agent.args([
            "agent",
            "--controller",
            "wss://127.0.0.1:9",
            "--invite-file",
        ]);
        let output = agent
            .arg(file)
            .current_dir(folder.path())
            .output()
            .expect("neph runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        printed(&file).starts_with("neph: --invite-file: read "),
        "{}",
        printed(&file)
    );
    fs::write(&file, "none").expect("writable");
    let mode =
        |mode| fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode));
    mode(0o644).expect("ours");
    assert!(
        printed(&file).contains("has mode 0644"),
        "{}",
        printed(&file)
    );
    mode(0o600).expect("ours");
    assert!(
        printed(&file).contains("this is no invitation"),
        "{}",
        printed(&file)
    );
}

#[test]
fn invalid_health_targets_are_refused_and_silence_times_out() {
    let (status, printed) = health(&["udp://127.0.0.1:9"]);
    assert_eq!(status, 2, "{printed}");
    // It takes connections, and answers nothing.
    let silent_listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent_listener.local_addr().expect("bound").to_string();
    let (status, printed) = health(&[&address, "--timeout", "500ms"]);
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("no answer in"), "{printed}");
    let (status, _) = health(&["--timeout", "0"]);
    assert_eq!(status, 2);
}

#[test]
fn a_service_manager_that_is_not_there_stops_nothing() {
    let mut reflect = neph();
    reflect
        .args(["reflect", "--listen", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", "/no/such/socket")
        .stderr(Stdio::piped());
    let mut child = reflect.spawn().expect("neph runs");
    let printed = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = std::io::BufRead::lines(printed).map_while(Result::ok);
    let first = lines.next().expect("a line");
    assert!(first.contains("NOTIFY_SOCKET: "), "{first}");
    let second = lines.next().expect("a line");
    assert!(second.contains(" answers ws"), "{second}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
