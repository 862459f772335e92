//! What a lab does at given times, it does in every experiment. Needs root.

use std::fs;

use serde_json::Value;

use crate::labs::privileged;
use crate::neph::TestFolder;

/// The way there becomes 30 ms longer half a second after the cue.
const LAB: &str = "version = 1\n\
    [[site]]\nname = \"a\"\naddress = \"10.82.0.1/24\"\n\
    [[site]]\nname = \"b\"\naddress = \"10.82.0.2/24\"\n\
    [[link]]\nname = \"path\"\na = \"a\"\nb = \"b\"\ndelay = \"2ms\"\n\
    [[link.schedule]]\nat = \"500ms\"\ndirection = \"a_to_b\"\ndelay = \"32ms\"\n";

const PLAN: &str = "version = 1\nname = \"steps\"\nblocks = 2\ninterval = \"50ms\"\n\
    duration = \"1s\"\nrequest_size = 64\nresponse_size = 64\n\n\
    [[endpoint]]\nname = \"b\"\nurl = \"ws://10.82.0.2:8080/\"\n\n\
    [lab]\ntopology = \"lab.toml\"\nprober = \"a\"\n\n[[lab.reflector]]\nsite = \"b\"\n";

#[test]
fn a_schedule_begins_anew_with_each_experiment() {
    if !privileged("a_schedule_begins_anew_with_each_experiment") {
        return;
    }
    let folder = TestFolder::empty();
    fs::write(folder.path("lab.toml"), LAB).expect("a file");
    fs::write(folder.path("plan.toml"), PLAN).expect("a file");
    let ran = folder.neph(["run", "plan.toml", "--no-report", "--quiet"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let ran = folder.neph(["export", "last", "--format", "jsonl", "--output", "-"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let text = ran.out;
    let (mut blocks, mut opposite) = ([0, 0], [0, 0]);
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let number = |key: &str| message[key].as_i64();
        if number("flow") != Some(0) {
            continue;
        }
        // What the link did, whatever a busy machine added before and behind it.
        let network = message["stages_ns"]["network"].as_i64();
        let Some(sent) = number("app_send_ns") else {
            continue;
        };
        let block = usize::try_from(number("block").expect("a block")).expect("small");
        blocks[block] += 1;
        // The cue is given a moment before the clock of the marks begins, or after.
        if let Some(network) = network.filter(|_| (sent - 500_000_000).abs() > 40_000_000) {
            opposite[block] += usize::from((network > 20_000_000) != (sent > 500_000_000));
        }
    }
    assert_eq!(blocks, [20, 20], "{text}");
    // A schedule that did not begin anew has half of a block against it; a machine that stood still
    // for 45 ms within the link was seen to have one message.
    assert!(opposite.iter().all(|count| *count <= 2), "{text}");
}
