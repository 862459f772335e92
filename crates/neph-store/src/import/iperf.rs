//! Reads the iperf3 output that a Latency Tester writes for each run.

use std::path::Path;

use neph_model::{BitRate, Throughput, ThroughputSecond, Wall};

use super::decimal::parse_scaled;
use super::lines::Lines;
use super::report::ImportReport;
use crate::StoreError;

/// Start of the first line.
pub(super) const FIRST_LINE_PREFIX: &str = "Connecting to host ";

/// One file: one transfer.
#[derive(Clone, Debug)]
pub(super) struct IperfFile {
    /// The run at whose start it was measured, from 1.
    run: Option<u32>,
    /// The destination's name from the file name, or the host.
    name: String,
    seconds: Vec<ThroughputSecond>,
    goodput: Option<BitRate>,
    duration_ns: i64,
}

/// A line of the table.
struct TableRow<'a> {
    /// End of its interval, since the start of the transfer.
    end_ns: i64,
    rate: BitRate,
    retransmissions: Option<u32>,
    /// `sender`, `receiver`, or the congestion window.
    last_field: &'a str,
}

impl IperfFile {
    pub(super) fn read(path: &Path, report: &mut ImportReport) -> Result<Self, StoreError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let (run, name) = stem.split_once("iperf_").unwrap_or(("", &stem));
        let mut file = Self {
            run: run.trim_end_matches('-').parse().ok(),
            name: name.to_owned(),
            seconds: Vec::new(),
            goodput: None,
            duration_ns: 0,
        };
        let mut is_summary = false;
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            if line.text.starts_with("- - ") {
                is_summary = true;
            } else if line.text.starts_with('[') && line.text.contains("/sec") {
                match parse_row(&line.text) {
                    Some(row) => file.add_row(&row, is_summary),
                    None => report.add_problem(
                        path,
                        Some(line.number),
                        "no interval and bit rate: left out",
                    ),
                }
            }
        }
        Ok(file)
    }

    fn add_row(&mut self, row: &TableRow<'_>, is_summary: bool) {
        self.duration_ns = self.duration_ns.max(row.end_ns);
        if !is_summary {
            self.seconds.push(ThroughputSecond {
                goodput: row.rate,
                retransmissions: row.retransmissions.unwrap_or(0),
                spurious_retransmissions: 0,
                cwnd_segments: None,
                srtt: None,
            });
        } else if row.last_field == "receiver" || self.goodput.is_none() {
            // The receiver's row counts what arrived; the sender's row counts what was written.
            self.goodput = Some(row.rate);
        }
    }

    /// Its block.
    pub(super) fn block(&self) -> u32 {
        self.run.unwrap_or(1).saturating_sub(1)
    }

    /// The transfer. The file has no time: it ended when its run began.
    pub(super) fn into_throughput(self, began_unix_ns: i64) -> Throughput {
        Throughput {
            block: self.block(),
            endpoint: self.name,
            site: None,
            tool: "iperf3".to_owned(),
            started: Wall::from_unix_nanos(began_unix_ns.saturating_sub(self.duration_ns)),
            seconds: self.seconds,
            goodput: self.goodput.unwrap_or(BitRate(0)),
            failure: self
                .goodput
                .is_none()
                .then(|| "the output of iperf3 ends before its summary".to_owned()),
        }
    }
}

/// `[  5]   0.00-1.00   sec   464 KBytes  3.80 Mbits/sec    0   55.6 KBytes`.
fn parse_row(text: &str) -> Option<TableRow<'_>> {
    let (_, columns) = text.split_once(']')?;
    let fields: Vec<&str> = columns.split_whitespace().collect();
    let (_, end) = fields.first()?.split_once('-')?;
    let unit_index = fields.iter().position(|word| word.ends_with("bits/sec"))?;
    let scale = match *fields.get(unit_index)? {
        "bits/sec" => 0,
        "Kbits/sec" => 3,
        "Mbits/sec" => 6,
        "Gbits/sec" => 9,
        _ => return None,
    };
    let rate = parse_scaled(fields.get(unit_index.checked_sub(1)?)?, scale)?;
    Some(TableRow {
        end_ns: parse_scaled(end, 9)?,
        rate: BitRate(u64::try_from(rate).ok()?),
        retransmissions: fields
            .get(unit_index + 1)
            .and_then(|word| word.parse().ok()),
        last_field: fields.last().copied().unwrap_or_default(),
    })
}
