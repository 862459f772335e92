//! Bulk transfers with ten to ten thousand segments in flight, beside tshark and beside the truth: neph follows
//! a part of large windows, and what it reports of them is not biased.

mod bulk;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use neph_capture::{
    Answer, Flow, Half, Limits, Listener, Method, Quantiles, Side, Table, read_capture,
};
use neph_model::Wall;
use neph_wire::dissect::dissect;

use super::{nanos, run_tshark};
use bulk::{Bulk, Truth};

/// Of the only flow: path to the server by both methods, and segments of the client that were not followed.
#[derive(Default)]
struct WindowReport {
    round_trips: Vec<Option<Quantiles>>,
    segments_not_tracked: u64,
}

impl Listener for WindowReport {
    fn ended(&mut self, flow: &Flow) {
        let round_trips = flow.round_trips(Half::Server);
        let methods = [Method::Acknowledgement, Method::Echo];
        self.round_trips = methods
            .map(|method| round_trips.answer_quantiles(method, Answer::Bare))
            .to_vec();
        self.segments_not_tracked = flow.sent(Side::Client).segments_not_tracked();
    }
}

fn neph_report(path: &Path, limits: Limits) -> WindowReport {
    let (mut table, mut ours) = (Table::new(limits), WindowReport::default());
    read_capture(&mut File::open(path).expect("written"), |record| {
        let at = Wall::from_unix_nanos(record.at.expect("pcap has times"));
        let packet = dissect(record.link, record.bytes, record.length).expect("IP");
        table.add_packet(at, &packet, &mut ours);
        std::ops::ControlFlow::Continue(())
    });
    table.end(&mut ours);
    ours
}

/// n, p50, p99 and max of round trips, by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Summary {
    n: u64,
    p50: i64,
    p99: i64,
    most: i64,
}

impl Summary {
    fn of(mut durations: Vec<i64>) -> Self {
        durations.sort_unstable();
        let at = |permille: usize| durations[(durations.len() * permille).div_ceil(1_000) - 1];
        Self {
            n: durations.len() as u64,
            p50: at(500),
            p99: at(990),
            most: at(1_000),
        }
    }

    fn of_quantiles(quantiles: &Quantiles) -> Self {
        Self {
            n: quantiles.estimated,
            p50: quantiles.p50.nanos(),
            p99: quantiles.p99.map_or(0, neph_model::Span::nanos),
            most: quantiles.max.nanos(),
        }
    }

    /// Each number within so many parts of a thousand of the other's.
    fn is_near(&self, other: &Self, permille: i64) -> bool {
        let is_close = |a: i64, b: i64| (a - b).abs() * 1_000 <= b * permille;
        let n = |summary: &Self| i64::try_from(summary.n).expect("few");
        is_close(n(self), n(other))
            && is_close(self.p50, other.p50)
            && is_close(self.p99, other.p99)
            && is_close(self.most, other.most)
    }
}

fn summary_line(name: &str, summary: &Summary) -> String {
    let ms = |nanos: i64| f64::from(u32::try_from(nanos / 1_000).expect("short")) / 1_000.0;
    format!(
        "  {name:<28} n {:>7}  p50 {:>8.3} ms  p99 {:>8.3} ms  max {:>8.3} ms",
        summary.n,
        ms(summary.p50),
        ms(summary.p99),
        ms(summary.most)
    )
}

/// Writes a transfer; gives what is true of it.
fn write(path: &Path, bulk: &Bulk) -> Truth {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    super::pcap_header(&mut file).expect("written");
    let truth = bulk.write(&mut file);
    file.flush().expect("written");
    truth
}

fn tshark_summary(path: &Path) -> Option<Summary> {
    // Of the server's packets: the handshake, and acknowledgements of data.
    let lines = run_tshark(path, &["ip.src", "tcp.analysis.ack_rtt"])?;
    let durations = lines.iter().filter_map(|line| {
        let (from, seconds) = line.split_once('|')?;
        (from == "10.0.0.2" && !seconds.is_empty()).then(|| nanos(seconds))
    });
    Some(Summary::of(durations.collect()))
}

#[test]
fn windows_of_10_to_9900_segments_match_tshark_and_the_truth() {
    let folder = std::env::temp_dir().join(format!("neph-windows-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for window in [10, 100, 1_000, 9_900] {
        let path = folder.join(format!("bulk-{window}.pcap"));
        let truth = write(&path, &Bulk::of(window));
        let theirs = tshark_summary(&path);
        let ours = neph_report(&path, Limits::default());
        println!(
            "{window} segments in flight, {} of them not followed",
            ours.segments_not_tracked
        );
        let round_trips: Vec<_> = ours.round_trips.iter().flatten().collect();
        assert_eq!(round_trips.len(), 2, "both methods");
        let by_ack = Summary::of_quantiles(round_trips[0]);
        let by_echo = Summary::of_quantiles(round_trips[1]);
        let (true_ack, true_echo) = (Summary::of(truth.acknowledged), Summary::of(truth.echoed));
        println!("{}", summary_line("truth", &true_ack));
        if let Some(theirs) = &theirs {
            println!("{}", summary_line("tshark", theirs));
        }
        for (name, summary) in [
            ("neph", &by_ack),
            ("truth, by echo", &true_echo),
            ("neph, by echo", &by_echo),
        ] {
            println!("{}", summary_line(name, summary));
        }
        // Quantiles of what is followed whole are those of buckets.
        let permille = if window > 4_096 { 30 } else { 5 };
        assert_eq!(ours.segments_not_tracked > 0, window > 4_096);
        assert!(by_ack.is_near(&true_ack, permille), "{window}");
        // A tick of a millisecond has one sample, so that there are few.
        let permille = if window > 4_096 { 100 } else { 5 };
        assert!(by_echo.is_near(&true_echo, permille), "{window}");
        if let Some(theirs) = theirs {
            // The handshake is one more.
            assert!(by_ack.is_near(&theirs, 30), "{window}: {theirs:?}");
        }
    }
    if std::env::var_os("NEPH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

#[test]
fn losses_in_a_sampled_window_do_not_block_further_samples() {
    let folder = std::env::temp_dir().join(format!("neph-lossy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("bulk.pcap");
    let mut bulk = Bulk::of(9_900);
    bulk.lost_one_in = 20_000;
    let truth = Summary::of(write(&path, &bulk).acknowledged);
    for (waiting, minimum, permille) in [(16 << 20, 2_000, 50), (24 << 10, 100, 150)] {
        let limits = Limits {
            max_pending_bytes: waiting,
            ..Limits::default()
        };
        let ours = neph_report(&path, limits);
        let round_trips = ours.round_trips[0].expect("some");
        println!(
            "{waiting} bytes, {} round trips, {} not followed",
            round_trips.n, ours.segments_not_tracked
        );
        println!("{}", summary_line("truth", &truth));
        println!(
            "{}",
            summary_line("neph", &Summary::of_quantiles(&round_trips))
        );
        assert!(round_trips.n > minimum && ours.segments_not_tracked > 0);
        assert!(Summary::of_quantiles(&round_trips).is_near(&truth, permille));
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
