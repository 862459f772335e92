//! Agents whose clocks differ: one of them in a kernel of its own, whose clock was set and runs fast. Needs root
//! and guests of qemu.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use neph_agent::policy::POLICY_FILE;
use serde_json::Value;

use crate::agent_sites::{Program, policy_for_this_host};
use crate::guests::has_machines;
use crate::labs::LabGuard;
use crate::neph::eventually;

/// One-way delays of the link between `client` and `host`: the middle of the round trip is 3 ms away from both.
const TO_HOST_MS: f64 = 8.0;
const TO_CLIENT_MS: f64 = 2.0;
/// Far more than any bound here.
const AHEAD: &str = "9";

const TOPOLOGY: &str = "version = 1\n\
    [[site]]\nname = \"client\"\naddress = \"10.86.0.1\"\n\
    [[site]]\nname = \"host\"\naddress = \"10.86.0.2\"\n\
    [[site]]\nname = \"vm\"\naddress = \"10.86.1.1\"\ninside = \"host\"\n\
    [[link]]\na = \"client\"\nb = \"host\"\na_to_b = { delay = \"8ms\" }\nb_to_a = { delay = \"2ms\" }\n\
    [[guest]]\nname = \"m\"\nkind = \"qemu\"\nsites = [\"vm\"]\nmemory = \"384MiB\"\n";

const PLAN: &str = "version = 1\nname = \"clocks\"\ninterval = \"10ms\"\nmessages = 200\nblocks = 2\n\
    from = [\"client\", \"vm\"]\n[companion]\nenabled = false\n\
    [[site]]\nname = \"client\"\nagent = \"near\"\n\
    [[site]]\nname = \"vm\"\nagent = \"far\"\naddress = \"10.86.1.1\"\n\
    reflector = [\"--listen\", \"0.0.0.0:8600\"]\n\
    [[endpoint]]\nname = \"to host\"\nurl = \"udp://10.86.0.2:9000\"\nmode = \"background\"\n\
    [[endpoint]]\nname = \"to vm\"\nurl = \"udp://vm:8600\"\nfrom = [\"client\"]\n";

/// A lab with a controller and a reflector at `host`, an agent at `client`, and one in the guest.
struct ClockSetup {
    lab: LabGuard,
    /// They run until the test ends.
    programs: Vec<Program>,
}

impl ClockSetup {
    fn up() -> Self {
        let lab = LabGuard::up(TOPOLOGY, 'c');
        let mut world = Self {
            lab,
            programs: Vec::new(),
        };
        let serve = [
            "control",
            "serve",
            "--control",
            "control",
            "--listen",
            "10.86.0.2:7443",
        ];
        world.start("host", &serve, "listening at");
        world.start(
            "host",
            &["reflect", "--listen", "10.86.0.2:9000"],
            "answers",
        );
        let path = world.lab.folder.path("near");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join(POLICY_FILE), policy_for_this_host()).expect("a file");
        let invitation = world.invite("near");
        let agent = [
            "agent",
            "--controller",
            "wss://10.86.0.2:7443",
            "--folder",
            "near",
            "--invite",
            &invitation,
        ];
        world.start("client", &agent, "connected");
        world.start_guest();
        world
    }

    /// Starts neph at a site of this kernel, and waits for its word.
    fn start(&mut self, site: &str, arguments: &[&str], expected_line: &str) {
        let mut args = vec!["lab", "run", site, "--lab", &self.lab.name, "--"];
        args.push(env!("CARGO_BIN_EXE_neph"));
        args.extend(arguments);
        let (program, _) = Program::start(&self.lab.folder, &args, expected_line);
        self.programs.push(program);
    }

    fn neph(&self, arguments: &[&str]) -> String {
        let ran = self.lab.folder.neph(arguments.iter().copied());
        assert_eq!(ran.status, 0, "{arguments:?}: {}", ran.err);
        ran.out
    }

    fn invite(&self, agent: &str) -> String {
        let line = self.neph(&["control", "invite", agent, "--control", "control"]);
        line.trim().to_owned()
    }

    fn in_guest(&self, line: &str) -> String {
        let name = &self.lab.name;
        self.neph(&["lab", "run", "vm", "--lab", name, "--", "sh", "-c", line])
    }

    fn start_guest(&self) {
        // 100 ppm fast, and seconds ahead.
        self.in_guest(&format!(
            "date -u -s @$(( $(date +%s) + {AHEAD} )) && adjtimex -f 6553600"
        ));
        // A guest takes one line.
        let rules = policy_for_this_host();
        let rules = rules.lines().filter(|line| !line.starts_with('#'));
        let policy = rules.collect::<Vec<_>>().join("\\n");
        self.in_guest(&format!(
            "mkdir /tmp/far && printf '%b' '{policy}' > /tmp/far/{POLICY_FILE}"
        ));
        let invitation = self.invite("far");
        self.in_guest(&format!(
            "neph agent --controller wss://10.86.0.2:7443 --folder /tmp/far --invite {invitation} \
             > /tmp/far.log 2>&1 &"
        ));
    }

    /// How far an agent's clock is from the controller's, and within what, milliseconds.
    fn clock(&self, agent: &str) -> Option<(f64, f64)> {
        let list = self.neph(&["agents", "--control", "control", "--format", "json"]);
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let mut entries = list.as_array().expect("a list").iter();
        let entry = entries.find(|entry| entry["agent"] == agent)?;
        let millis = |key: &str| Some(entry[key].as_f64()? / 1e6);
        Some((millis("clock_offset_ns")?, millis("clock_bound_ns")?))
    }

    /// When the guest's clock says it is, and ours before and after it was asked; seconds.
    fn guest_time(&self) -> (f64, [f64; 2]) {
        let before = now();
        let stdout = self.in_guest("adjtimex | grep time.tv_");
        let after = now();
        let mut numbers = stdout
            .lines()
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let (seconds, micros) = (numbers.next(), numbers.next());
        let time = seconds.expect("seconds") + micros.expect("microseconds") / 1e6;
        (time, [before, after])
    }

    /// The messages of the campaign as they are exported.
    fn messages(&self) -> Vec<Value> {
        let lines = self.neph(&["export", "--format", "jsonl", "-o", "-"]);
        let read = |line: &str| serde_json::from_str(line).expect("JSON");
        lines.lines().map(read).collect()
    }
}

fn now() -> f64 {
    let since = u64::try_from(neph_sys::clock::wall().0).expect("after 1970");
    Duration::from_nanos(since).as_secs_f64()
}

/// The time by the wall clock of the host's kernel, in milliseconds, at which the first message of each experiment was there.
fn first_arrivals(messages: &[Value], scenario: &str) -> BTreeMap<String, f64> {
    let mut first = BTreeMap::new();
    for message in messages {
        let is_expected = message["scenario"]
            .as_str()
            .is_some_and(|label| label.contains(scenario));
        let (Some(id), Some(at), Some(offset)) = (
            message["experiment_id"].as_str(),
            message["peer_rx_ns"].as_f64(),
            message["peer_wall_offset_ns"].as_f64(),
        ) else {
            continue;
        };
        if is_expected && message["seq"] == 0 {
            first.insert(id.to_owned(), (at + offset) / 1e6);
        }
    }
    first
}

#[test]
fn agents_with_other_clocks_begin_together_and_their_times_and_delays_are_true_within_the_bound() {
    let test = "agents_with_other_clocks_begin_together_and_their_times_and_delays_are_true_within_the_bound";
    if !has_machines(test) {
        return;
    }
    let world = ClockSetup::up();
    the_offset_is_right_within_its_bound(&world);
    let started = now();
    fs::write(world.lab.folder.path("p.toml"), PLAN).expect("a file");
    world.neph(&["run", "p.toml", "--control", "control", "--no-report"]);
    times_are_the_controllers(&world, [started, now()]);
    starts_are_at_the_agreed_moment(&world);
    delays_are_right_within_their_bound(&world);
}

fn the_offset_is_right_within_its_bound(world: &ClockSetup) {
    eventually("both clocks are known", Duration::from_mins(1), || {
        let bounds = ["near", "far"].map(|agent| world.clock(agent));
        bounds
            .iter()
            .all(|known| known.is_some_and(|(_, bound)| bound < 20.0))
    });
    let (offset, bound) = world.clock("far").expect("known");
    let (guest, [before, after]) = world.guest_time();
    // Meanwhile it gains 100 us a second.
    let (min, max) = ((guest - after) * 1e3, (guest - before) * 1e3);
    assert!(
        min - bound - 1.0 <= offset && offset <= max + bound + 1.0,
        "{min} {offset} {max}"
    );
    assert!(offset > 5_000.0, "{offset}");
}

/// Those in the store, between the moments before and after the campaign.
fn times_are_the_controllers(world: &ClockSetup, [started, ended]: [f64; 2]) {
    let list = world.neph(&["list", "last", "--format", "json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let entries = list.as_array().expect("experiments");
    assert_eq!(entries.len(), 6, "{list}");
    for entry in entries {
        let at = entry["started_unix_ns"].as_f64().expect("a time") / 1e9;
        assert_eq!(entry["status"], "complete", "{entry}");
        assert!((started..ended).contains(&at), "{started} {at} {ended}");
    }
}

fn starts_are_at_the_agreed_moment(world: &ClockSetup) {
    let messages = world.messages();
    let arrivals: Vec<f64> = first_arrivals(&messages, "to host").into_values().collect();
    assert_eq!(arrivals.len(), 4, "{arrivals:?}");
    for pair in arrivals.chunks(2) {
        // The client's request is 8 ms under way. In a guest in emulation a debug build is slow to begin: 150 to
        // 382 ms in nine runs (and 190 to 320 ms in three of an earlier version); a release build takes 146 ms.
        let difference = (pair[0] - pair[1]).abs();
        assert!(difference < 500.0, "{difference} ms apart");
    }
}

fn delays_are_right_within_their_bound(world: &ClockSetup) {
    world.neph(&["report", "last", "--output", "report"]);
    let table = world.lab.folder.path("report/tables/directions.json");
    let table = fs::read_to_string(table).expect("a table");
    let table: Value = serde_json::from_str(&table).expect("JSON");
    let mut rows = table["rows"].as_array().expect("rows").iter();
    let row = rows.find(|row| {
        let label = row["scenario"].as_str();
        label.is_some_and(|label| label.contains("to vm"))
    });
    let row = row.unwrap_or_else(|| panic!("{table}"));
    let number = |key: &str| {
        let value = row[key].as_f64();
        value.unwrap_or_else(|| panic!("{key} of {row}"))
    };
    let bound = number("bound_ms");
    // Half of the least round trip, and what a guest in emulation adds.
    assert!((4.9..12.0).contains(&bound), "{row}");
    for (key, truth) in [
        ("forward_p50_ms", TO_HOST_MS),
        ("reverse_p50_ms", TO_CLIENT_MS),
    ] {
        let difference = number(key) - truth;
        assert!((-bound..bound + 3.0).contains(&difference), "{key}: {row}");
    }
}
