//! Traffic: it flows in its time, at the rate of its link, and stops when it should.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use neph_lab::{Lab, LabStatus, Record, Recording, Topology, TruthFile, UpOptions};
use neph_sys::clock;
use neph_sys::deadline::{poll, wait_until};
use neph_text::Source;

use crate::support::{lab_lock, lab_name, leftovers};

/// The IP protocol's number.
const TCP: u8 = 6;

fn topology(traffic: &str) -> Topology {
    let text = format!(
        "version = 1\nsite = [{{name = \"a\"}}, {{name = \"b\"}}]\n\
         link = [{{a = \"a\", b = \"b\", rate = \"8Mbit/s\", delay = \"2ms\"}}]\n\
         [[traffic]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n{traffic}\n"
    );
    Topology::parse(&Source::new("traffic", text)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Looks at the lab until it is as wanted.
fn wait_for_status(name: &str, wanted: impl Fn(&LabStatus) -> bool) -> LabStatus {
    let mut status = None;
    let is_reached = wait_until(Duration::from_secs(20), || {
        status = Some(Lab::status(name).expect("it is up"));
        status.as_ref().is_some_and(&wanted)
    });
    assert!(is_reached, "{status:#?}");
    status.expect("it was looked at")
}

#[test]
fn a_transfer_fills_its_link_in_its_time_and_again_after_the_next_cue() {
    let test = "a_transfer_fills_its_link_in_its_time_and_again_after_the_next_cue";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('x');
    let bulk = "at = \"300ms\"\nuntil = \"1300ms\"\nstreams = 2\ncongestion = \"cubic\"";
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(&name)
    };
    let lab = Lab::up(&topology(bulk), &options).expect("up");
    lab.cue();
    wait_for_status(&name, |status| status.traffic[0].on);
    let stopped = wait_for_status(&name, |status| !status.traffic[0].on);
    // 8 Mbit/s for a second are a million bytes, with headers; a busy machine begins late.
    let received = stopped.traffic[0].received;
    assert!((500_000..1_050_000).contains(&received), "{received} bytes");
    // What waits in the queue (256 KiB, 260 ms) still leaves; the senders' buffers do not.
    let delivered = || {
        let status = Lab::status(&name).expect("it is up");
        status.links[0].counts.expect("emulated").delivered
    };
    let is_quiet = poll(Duration::ZERO, Duration::from_secs(20), || {
        let before = delivered();
        clock::nap(Duration::from_millis(300));
        before == delivered()
    });
    assert!(is_quiet, "nothing is sent any more");
    lab.cue();
    wait_for_status(&name, |status| {
        status.traffic[0].received > received + 200_000
    });
    lab.down().expect("down while it flows");
    assert_eq!(leftovers(&name), [].into());
    assert_no_packet_before_its_time(&folder.path().join("a-b.truth"));
}

/// Of each of two cues the first packet of TCP came 300 ms after it, by the link's record.
fn assert_no_packet_before_its_time(record: &Path) {
    let (mut cues, mut first_arrivals) = (Vec::new(), Vec::new());
    for record in TruthFile::open(record).expect("open") {
        match record.expect("fine") {
            Record::Cue { at } => cues.push(at),
            Record::Packet { passage, .. }
                if passage.identity.protocol == TCP && first_arrivals.len() < cues.len() =>
            {
                first_arrivals.push(passage.arrival);
            }
            _ => {}
        }
    }
    assert_eq!((cues.len(), first_arrivals.len()), (2, 2));
    for (cue, first) in cues.iter().zip(first_arrivals) {
        assert!(
            first - cue >= 300_000_000,
            "{} ns after the cue",
            first - cue
        );
    }
}

#[test]
fn a_missing_congestion_control_of_traffic_fails_the_up() {
    let test = "a_missing_congestion_control_of_traffic_fails_the_up";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('y');
    let topology = topology("until = \"1s\"\ncongestion = \"nonesuch\"");
    let error = Lab::up(&topology, &UpOptions::with_name(&name)).expect_err("there is none");
    assert!(
        error.to_string().contains("traffic 'bulk': use nonesuch"),
        "{error}"
    );
    assert_eq!(leftovers(&name), [].into());
}
