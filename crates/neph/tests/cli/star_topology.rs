//! A server and client sites in network namespaces, joined by a router; removed with this.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use neph_sys::process;

use crate::neph::{command, send_signal};

/// The sites: the server's is the first, 10.90.1.2; the clients' follow, 10.90.2.2 and so on.
const SITES: [&str; 4] = ["s", "a", "b", "c"];

/// A star.
pub(crate) struct Star {
    prefix: String,
    children: Vec<Child>,
}

impl Star {
    /// The address of the server's site.
    pub(crate) const SERVER: &str = "10.90.1.2";

    /// Makes the namespaces; `letter` is the test's own.
    pub(crate) fn up(letter: &str) -> Self {
        let star = Self {
            prefix: format!("nm{letter}{}", std::process::id()),
            children: Vec::new(),
        };
        let prefix = &star.prefix;
        for site in SITES.iter().chain(&["r"]) {
            star.ip(&format!("netns add {prefix}-{site}"));
            star.ip(&format!("-n {prefix}-{site} link set lo up"));
        }
        for (number, site) in (1..).zip(SITES) {
            star.ip(&format!(
                "link add v{site} netns {prefix}-{site} type veth peer name r{site} netns {prefix}-r"
            ));
            star.ip(&format!(
                "-n {prefix}-{site} addr add 10.90.{number}.2/24 dev v{site}"
            ));
            star.ip(&format!(
                "-n {prefix}-r addr add 10.90.{number}.1/24 dev r{site}"
            ));
            star.ip(&format!("-n {prefix}-{site} link set v{site} up"));
            star.ip(&format!("-n {prefix}-r link set r{site} up"));
            star.ip(&format!(
                "-n {prefix}-{site} route add default via 10.90.{number}.1"
            ));
        }
        star.run("r", "sysctl -qw net.ipv4.ip_forward=1");
        star
    }

    #[expect(clippy::unused_self, reason = "only a star has something to ask for")]
    fn ip(&self, args: &str) {
        let ran = process::command("ip").args(args.split(' ')).output();
        assert_success(args, &ran.expect("ip runs"));
    }

    /// A program in a site, as one process.
    pub(crate) fn at(&self, site: &str, program: &str) -> Command {
        let mut command = process::command("nsenter");
        command.arg(format!("--net=/run/netns/{}-{site}", self.prefix));
        command.args(program.split_whitespace());
        command
    }

    /// neph in a site.
    pub(crate) fn neph(&self, site: &str, args: &str) -> Command {
        let neph = command();
        let program = neph.get_program().to_string_lossy().into_owned();
        let mut command = self.at(site, &program);
        command.args(args.split_whitespace());
        command
    }

    /// Runs a program in a site to its end.
    pub(crate) fn run(&self, site: &str, args: &str) -> Output {
        let ran = self.at(site, args).output().expect("nsenter runs");
        assert_success(args, &ran);
        ran
    }

    /// Starts a program, waits for a line of its messages, and ends it with the star.
    pub(crate) fn start(&mut self, mut command: Command, until: &str) {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let mut printed = BufReader::new(child.stderr.take().expect("piped"));
        self.children.push(child);
        let mut line = String::new();
        while !line.contains(until) {
            line.clear();
            let count = printed.read_line(&mut line).expect("it can be read");
            assert!(count > 0, "{command:?} ended before '{until}'");
        }
    }

    /// Ends a process with the star.
    pub(crate) fn end_with_star(&mut self, child: Child) {
        self.children.push(child);
    }

    /// Ends what was started last.
    pub(crate) fn end_last_process(&mut self) {
        if let Some(child) = self.children.pop() {
            end(child);
        }
    }
}

fn assert_success(args: &str, ran: &Output) {
    let why = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{args}: {why}");
}

fn end(mut child: Child) {
    if matches!(child.try_wait(), Ok(None)) {
        send_signal("TERM", child.id());
    }
    child.wait().expect("it ends");
}

impl Drop for Star {
    fn drop(&mut self) {
        self.children.drain(..).for_each(end);
        for site in SITES.iter().chain(&["r"]) {
            let name = format!("{}-{site}", self.prefix);
            // One that was not made yet cannot be removed.
            let _ = process::command("ip")
                .args(["netns", "del", &name])
                .output();
        }
    }
}
