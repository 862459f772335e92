//! A controller and agents as processes, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use neph_agent::policy::{DEFAULT_POLICY, POLICY_FILE};
use neph_probe::Reflector;
use serde_json::Value;

use crate::neph::{TIMEOUT, TestFolder, eventually, start_and_read_line};
use crate::pings::reflector;

pub(crate) const MESSAGES: usize = 60;
pub(crate) const BLOCKS: usize = 4;
pub(crate) const SITES: [&str; 2] = ["ams", "lju"];

/// A program that runs until this is dropped.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    /// Starts neph, and waits until its messages have this; gives the line.
    pub(crate) fn start(
        folder: &TestFolder,
        arguments: &[&str],
        expected_line: &str,
    ) -> (Self, String) {
        let mut command = folder.command(arguments.iter().copied());
        let (child, messages, mut line) = start_and_read_line(&mut command);
        let mut lines = std::io::BufRead::lines(messages);
        while !line.contains(expected_line) {
            let next = lines.next().expect("it goes on");
            line = next.expect("readable");
        }
        // What else it prints must not stop it.
        thread::spawn(move || lines.for_each(drop));
        (Self(child), line)
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ended");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The usual policy, which allows this host too.
pub(crate) fn policy_for_this_host() -> String {
    let text = DEFAULT_POLICY.replace("\"127.0.0.0/8\", \"::1/128\", ", "");
    let text = text.replace("\"throughput\"]", "\"throughput\", \"reflector\"]");
    text.replace(
        "# listen = [\"8080\", \"9000-9010\"]",
        "listen = [\"1024-65535\"]",
    )
}

/// A controller and two agents, in a folder.
pub(crate) struct Sites {
    pub(crate) folder: TestFolder,
    pub(crate) port: u16,
    pub(crate) controller: Option<Program>,
    pub(crate) agents: BTreeMap<&'static str, Program>,
    _reflector: Reflector,
}

impl Sites {
    /// Both measure a reflector, by these names of its host.
    pub(crate) fn new(hosts: &[&str]) -> Self {
        let test_folder = TestFolder::empty();
        let reflector = reflector();
        let sources = SITES.map(|site| format!("\"at {site}\"")).join(", ");
        let sites =
            SITES.map(|site| format!("[[site]]\nname = \"at {site}\"\nagent = \"{site}\"\n"));
        let port = reflector.address().port();
        let endpoints = hosts.iter().map(|host| {
            format!(
                "[[endpoint]]\nname = \"{host}\"\nurl = \"ws://{host}:{port}\"\nfrom = [{sources}]\n"
            )
        });
        let plan = format!(
            "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = {MESSAGES}\nblocks = {BLOCKS}\n\
             {}{}[companion]\nenabled = false\n",
            sites.concat(),
            endpoints.collect::<String>()
        );
        fs::write(test_folder.path("p.toml"), plan).expect("writable");
        let mut sites = Self {
            folder: test_folder,
            port: 0,
            controller: None,
            agents: BTreeMap::new(),
            _reflector: reflector,
        };
        sites.start_controller();
        for site in SITES {
            let folder = sites.folder.path(&format!("agent-{site}"));
            fs::create_dir(&folder).expect("writable");
            fs::write(folder.join(POLICY_FILE), policy_for_this_host()).expect("writable");
            let ran = sites.neph(&["control", "invite", site, "--control", "control"]);
            sites.start_agent(site, Some(ran.trim()));
        }
        sites
    }

    pub(crate) fn neph(&self, arguments: &[&str]) -> String {
        self.folder.neph(arguments.iter().copied()).out
    }

    pub(crate) fn start_controller(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let arguments = [
            "control",
            "serve",
            "--control",
            "control",
            "--listen",
            &listen,
        ];
        let (program, line) = Program::start(&self.folder, &arguments, "listening at");
        let address = line.split("listening at ").nth(1).expect("an address");
        let address = address.split(',').next().expect("its end");
        self.port = address
            .rsplit(':')
            .next()
            .expect("a port")
            .parse()
            .expect("a number");
        self.controller = Some(program);
    }

    pub(crate) fn start_agent(&mut self, site: &'static str, invitation: Option<&str>) {
        let controller = format!("wss://127.0.0.1:{}", self.port);
        let folder = format!("agent-{site}");
        let mut arguments = vec!["agent", "--controller", &controller, "--folder", &folder];
        arguments.extend(invitation.iter().flat_map(|line| ["--invite", *line]));
        let (program, _) = Program::start(&self.folder, &arguments, "connected to");
        self.agents.insert(site, program);
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Program {
        let mut command = self.folder.command(arguments.iter().copied());
        command.args(["--control", "control", "-q", "--no-report"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Program(command.spawn().expect("neph runs"))
    }

    /// Waits until an agent is carrying something out.
    pub(crate) fn wait_until_measuring(&self, site: &str) {
        let journals = self.folder.path(&format!("agent-{site}/journals"));
        let message = format!("{site} measures");
        eventually(&message, TIMEOUT, || !is_empty(&journals));
    }

    pub(crate) fn experiments(&self) -> Vec<Value> {
        let text = self.neph(&["list", "last", "--format", "json"]);
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Whether no order of a campaign is out.
pub(crate) fn has_no_orders(test_folder: &TestFolder) -> bool {
    let of_controllers = fs::read_dir(test_folder.workspace().join("orders"));
    let mut folders = of_controllers.expect("a campaign ran").flatten();
    folders.all(|folder| is_empty(&folder.path()))
}

/// The names in a folder; none where there is no folder.
pub(crate) fn file_names(folder: impl AsRef<Path>) -> BTreeSet<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect()
}

/// Whether nothing but a lock is in it.
pub(crate) fn is_empty(folder: &Path) -> bool {
    file_names(folder).iter().all(|name| name == "lock")
}
