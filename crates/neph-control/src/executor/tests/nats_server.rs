//! A real NATS server for tests (`nats-server`, installed by tools/readers).

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_sys::deadline::wait_until;
use neph_sys::process::command;

use crate::{Registry, write_nats_config};

/// Path from tools/readers, or on `PATH`.
fn program() -> Option<PathBuf> {
    let python = std::env::var_os("NEPH_PYTHON").map(PathBuf::from);
    let installed = python.and_then(|python| Some(python.parent()?.join("nats-server")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    installed
        .into_iter()
        .chain(folders)
        .find(|path| path.is_file())
}

/// Whether there is a server; without one the test counts as skipped.
pub(super) fn has_server(test: &str) -> bool {
    let is_there = program().is_some();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{test}: no nats-server; tools/readers installs it"
    );
    if !is_there {
        eprintln!("SKIP {test}: no nats-server");
    }
    is_there
}

pub(super) fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("bound").port()
}

/// A server that is killed when this is dropped.
pub(super) struct Server {
    pub(super) config: PathBuf,
    pub(super) port: u16,
    process: Child,
}

impl Server {
    /// A server of the controller in `folder`; `more` is added to its configuration.
    pub(super) fn start(folder: &Path, port: u16, more: &str) -> Self {
        let registry = Registry::open(folder).expect("readable");
        let out = folder.join(format!("nats-{port}"));
        let listen = format!("127.0.0.1:{port}");
        let names = ["127.0.0.1".to_owned()];
        let files = write_nats_config(&registry, &out, &listen, &names).expect("writable");
        let text = std::fs::read_to_string(&files.config).expect("readable") + more;
        std::fs::write(&files.config, text).expect("writable");
        Self {
            process: Self::run(&files.config, port),
            config: files.config,
            port,
        }
    }

    fn run(config: &Path, port: u16) -> Child {
        let mut server = command(program().expect("it is there"));
        server.arg("-c").arg(config);
        server
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let process = server.spawn().expect("it starts");
        let listens = wait_until(Duration::from_secs(20), || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(listens, "nats-server does not listen");
        process
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ended");
    }

    pub(super) fn start_anew(&mut self) {
        self.process = Self::run(&self.config, self.port);
    }

    /// Simulates a network outage: it answers nothing and loses nothing.
    pub(super) fn pause(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = command("kill")
            .args([signal, &pid])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
