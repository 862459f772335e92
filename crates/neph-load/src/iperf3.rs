//! The `iperf3` program as an alternative to the built-in bulk upload, if it is installed.
//!
//! Owns the time limit of its run and the parser of its JSON report. The goodput is what iperf3
//! wrote, not what was acknowledged; the last line (`sum_received`) is what its server received.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use neph_model::{BitRate, Span, Stop, ThroughputSecond, Wall};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::place::Placement;
use neph_sys::process::{self, ChildOptions};
use serde_json::Value;

use crate::transfer::{TransferError, TransferResult, now};

const PROGRAM: &str = "iperf3";
/// Time beyond the duration, for connecting and for the last exchange.
const END_MARGIN: Span = Span::from_secs(15);
const POLL_INTERVAL: Span = Span::from_millis(20);
/// Bytes of the longest report: about 600 per second, so enough for most of a day.
const MAX_REPORT_BYTES: u64 = 32 << 20;

/// Parameters of an iperf3 run.
#[derive(Clone, Debug)]
pub struct Iperf3Spec {
    /// The server's name or address.
    pub host: String,
    /// Its port; the default of iperf3 is 5201.
    pub port: u16,
    /// Duration in whole seconds; at least one.
    pub duration: Span,
    /// Congestion control; `None`: the system's default.
    pub congestion: Option<String>,
    /// The place (a lab's site) to run it in.
    pub site: Option<Placement>,
}

/// Runs iperf3 and parses its report. Ends it when `stop` is set or its time is over.
///
/// # Errors
/// One sentence: the program is missing, its server is not reachable or busy, it took too long, or
/// its report is invalid.
pub fn iperf3(spec: &Iperf3Spec, stop: &Stop) -> Result<TransferResult, TransferError> {
    match &spec.site {
        None => run(command(PROGRAM, spec), spec.duration, stop),
        Some(site) => {
            let mut command = command(PROGRAM, spec);
            site.arrange(ChildOptions::default(), &mut command)?;
            site.run(|| run(command, spec.duration, stop))?
        }
    }
}

fn failed(reason: impl Into<String>) -> TransferError {
    TransferError::Program {
        program: PROGRAM,
        reason: reason.into(),
    }
}

fn run(mut command: Command, duration: Span, stop: &Stop) -> Result<TransferResult, TransferError> {
    let started = Wall::from_unix_nanos(clock::wall().0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failed(
            "is not installed; install it (apt-get install iperf3), or use the built-in upload",
        ),
        _ => failed(error.to_string()),
    })?;
    let report = reader(&mut child)?;
    let deadline = now() + duration + END_MARGIN;
    let result = await_end(&mut child, deadline, stop);
    let report = report.join().unwrap_or_default();
    result?;
    let (seconds, goodput) = parse(&report).map_err(failed)?;
    Ok(TransferResult {
        tool: PROGRAM,
        started,
        seconds,
        goodput,
    })
}

fn command(program: &str, spec: &Iperf3Spec) -> Command {
    let seconds = (spec.duration.nanos() / 1_000_000_000).max(1);
    let mut command = process::command(program);
    command
        .args(["-J", "-c", &spec.host])
        .args(["-p", &spec.port.to_string()])
        .args(["-t", &seconds.to_string()])
        .args(["--connect-timeout", "5000"]);
    if let Some(name) = &spec.congestion {
        command.args(["-C", name]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Reads on a separate thread: a report larger than the pipe's buffer would block iperf3.
fn reader(child: &mut Child) -> Result<JoinHandle<String>, TransferError> {
    let mut pipe = child.stdout.take().expect("stdout was piped");
    thread::Builder::new()
        .spawn(move || {
            let mut report = String::new();
            // A truncated or too long report fails to parse, which is an error.
            let _ = pipe
                .by_ref()
                .take(MAX_REPORT_BYTES)
                .read_to_string(&mut report);
            let _ = io::copy(&mut pipe, &mut io::sink());
            report
        })
        .map_err(TransferError::Thread)
}

fn await_end(
    child: &mut Child,
    deadline: neph_model::Instant<neph_model::Local>,
    stop: &Stop,
) -> Result<(), TransferError> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if now() < deadline && !stop.is_set() => {
                let until = now() + POLL_INTERVAL;
                clock::sleep_until(RawNanos(until.nanos()), Spin::NONE);
            }
            Ok(None) => {
                // An error means that it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(if stop.is_set() {
                    "was stopped before its report"
                } else {
                    "took too long and was ended"
                }));
            }
            Err(error) => return Err(failed(error.to_string())),
        }
    }
}

/// Seconds and overall goodput from the JSON report (`-J`).
fn parse(report: &str) -> Result<(Vec<ThroughputSecond>, BitRate), String> {
    let report: Value = serde_json::from_str(report)
        .map_err(|error| format!("wrote a report that is no JSON: {error}"))?;
    if let Some(error) = report["error"].as_str() {
        return Err(format!("says: {error}"));
    }
    let segment = report["start"]["tcp_mss_default"].as_u64();
    let intervals = report["intervals"].as_array();
    let intervals = intervals.ok_or("wrote a report without intervals")?;
    let seconds = intervals.iter().map(|interval| second(interval, segment));
    let end = &report["end"];
    let goodput = bits(&end["sum_received"])
        .or_else(|| bits(&end["sum_sent"]))
        .ok_or("wrote a report without a sum")?;
    Ok((seconds.collect(), goodput))
}

fn second(interval: &Value, segment: Option<u64>) -> ThroughputSecond {
    let (sum, stream) = (&interval["sum"], &interval["streams"][0]);
    let read_u32 = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let cwnd = stream["snd_cwnd"].as_u64();
    let segments = cwnd
        .zip(segment)
        .and_then(|(cwnd, mss)| cwnd.checked_div(mss));
    ThroughputSecond {
        goodput: bits(sum).unwrap_or(BitRate(0)),
        retransmissions: read_u32(&sum["retransmits"]).unwrap_or(0),
        spurious_retransmissions: 0,
        cwnd_segments: segments.and_then(|count| u32::try_from(count).ok()),
        srtt: read_u32(&stream["rtt"]).map(|micros| Span::from_micros(i64::from(micros))),
    }
}

/// iperf3 writes rates as floating-point numbers.
fn bits(sum: &Value) -> Option<BitRate> {
    let rate = sum["bits_per_second"].as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and a rate is not negative"
    )]
    let rate = rate.round() as u64;
    Some(BitRate(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
        "start": {"tcp_mss_default": 1448},
        "intervals": [
            {"streams": [{"snd_cwnd": 14480, "rtt": 4012}],
             "sum": {"bits_per_second": 9.4e6, "retransmits": 3}},
            {"streams": [{}], "sum": {"bits_per_second": 8388608.6}}
        ],
        "end": {"sum_sent": {"bits_per_second": 9e6}, "sum_received": {"bits_per_second": 8.5e6}}
    }"#;

    #[test]
    fn an_iperf3_report_is_parsed_into_seconds() {
        let (seconds, goodput) = parse(REPORT).expect("a report");
        assert_eq!(goodput, BitRate(8_500_000));
        let expected = ThroughputSecond {
            goodput: BitRate(9_400_000),
            retransmissions: 3,
            spurious_retransmissions: 0,
            cwnd_segments: Some(10),
            srtt: Some(Span::from_micros(4_012)),
        };
        assert_eq!(seconds[0], expected);
        assert_eq!(seconds[1].goodput, BitRate(8_388_609));
        assert_eq!(seconds[1].cwnd_segments, None);
    }

    fn spec() -> Iperf3Spec {
        Iperf3Spec {
            host: "192.0.2.1".to_owned(),
            port: 5201,
            duration: Span::from_secs(1),
            congestion: None,
            site: None,
        }
    }

    #[test]
    fn a_missing_iperf3_is_reported_with_a_remedy() {
        let command = command("iperf3-that-is-not-there", &spec());
        let error = run(command, Span::from_secs(1), &Stop::new()).expect_err("it is not there");
        let expected = "iperf3 is not installed; install it (apt-get install iperf3), or use the built-in upload";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_running_iperf3_is_killed_on_stop() {
        let stop = Stop::new();
        stop.set();
        let mut sleeper = process::command("sleep");
        sleeper.arg("60").stdout(Stdio::piped());
        let error = run(sleeper, Span::from_secs(1), &stop).expect_err("it was stopped");
        assert_eq!(error.to_string(), "iperf3 was stopped before its report");
    }

    #[test]
    fn invalid_iperf3_reports_are_refused_with_the_error_of_iperf3() {
        let error = parse(r#"{"error": "unable to connect to server"}"#).expect_err("an error");
        assert_eq!(error, "says: unable to connect to server");
        for invalid in [
            "",
            "{}",
            r#"{"intervals": []}"#,
            "[1]",
            r#"{"intervals": 7, "end": 1}"#,
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }
}
