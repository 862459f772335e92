//! Whether a load of a plan reached its target, by the report of `neph stress` at its end.
//!
//! Owns the judgement over all of the load's time, which begins up to some seconds before the first
//! message. A processor must be within the tolerance of `neph stress cpu`. Traffic must have no fault of
//! its own and, with a rate for TCP, reach most of it.

use neph_model::{LoadSpec, SiteLoad, Warning};
use serde_json::Value;

use super::START_TIMEOUT;
use neph_load::HELD;

/// Below this share of the requested rate, TCP did not carry it.
const MIN_TCP_RATE_SHARE: f64 = 0.9;

/// How a load missed its target.
struct LoadShortfall {
    achieved: String,
    percent: Option<f64>,
    fault: Option<String>,
}

/// The warning about a load with this report of `neph stress`; none if the target was reached.
pub(super) fn check_load(requested: &SiteLoad, output: &[u8]) -> Option<Warning> {
    let document: Option<Value> = serde_json::from_slice(output).ok();
    let rows = document.as_ref().and_then(Value::as_array);
    let rows = rows.map_or(&[][..], Vec::as_slice);
    let shortfall = match &requested.load {
        LoadSpec::Cpu(share) => check_cpu(share.in_percent(), rows)?,
        LoadSpec::Flow { rate, .. } => check_flow(rate.map(bits), rows)?,
        // Packets that are lost on the path were still sent: the stream itself reports what it left out.
        LoadSpec::Stream { rate, .. } => check_stream(bits(*rate), rows)?,
    };
    Some(missed_target_warning(requested, shortfall))
}

/// The warning about a load that started later than it should.
pub(super) fn late_start_warning(requested: &SiteLoad) -> Warning {
    let instead = LoadShortfall {
        achieved: format!("did not work yet after {START_TIMEOUT}, when measuring began"),
        percent: None,
        fault: None,
    };
    missed_target_warning(requested, instead)
}

fn missed_target_warning(requested: &SiteLoad, instead: LoadShortfall) -> Warning {
    Warning::LoadTargetMissed {
        load: requested.to_string(),
        achieved: instead.achieved,
        achieved_percent: instead.percent,
        reason: instead.fault,
    }
}

/// The thread that was kept most from what it should do counts.
fn check_cpu(requested: f64, rows: &[Value]) -> Option<LoadShortfall> {
    let deviation = |worked: &f64| (worked - requested).abs();
    let threads = column(rows, "achieved_percent");
    let worst = threads.max_by(|thread, other| deviation(thread).total_cmp(&deviation(other)));
    let Some(worst) = worst else {
        return Some(no_report());
    };
    (deviation(&worst) > HELD).then(|| LoadShortfall {
        achieved: format!("worked {worst:.1} % of the time"),
        percent: Some(100.0 * worst / requested),
        fault: None,
    })
}

fn check_flow(requested: Option<f64>, rows: &[Value]) -> Option<LoadShortfall> {
    let received_total = column(rows, "received_bit_s").reduce(|total, more| total + more);
    let Some(received_total) = received_total else {
        return Some(no_report());
    };
    let fault = fault(rows);
    // Over a slow link the first message may be whole only when the time is over.
    let has_received =
        received_total > 0.0 || column(rows, "received_bytes").any(|bytes| bytes > 0.0);
    let min_rate = MIN_TCP_RATE_SHARE * requested.unwrap_or(0.0);
    let is_target_reached = fault.is_none() && has_received && received_total >= min_rate;
    (!is_target_reached).then(|| rate_shortfall(received_total, requested, fault))
}

fn check_stream(requested: f64, rows: &[Value]) -> Option<LoadShortfall> {
    let rates = column(rows, "sent_bit_s")
        .next()
        .zip(column(rows, "reverse_bit_s").next());
    let Some((sent, reverse)) = rates else {
        return Some(no_report());
    };
    let fault = fault(rows)?;
    // If nothing came back, it is not known that anything arrived.
    let arrived_rate = if reverse > 0.0 { sent } else { 0.0 };
    Some(rate_shortfall(arrived_rate, Some(requested), Some(fault)))
}

/// The shortfall of an achieved rate, bit/s.
fn rate_shortfall(achieved: f64, requested: Option<f64>, fault: Option<String>) -> LoadShortfall {
    let percent = requested.map(|requested| 100.0 * achieved / requested);
    LoadShortfall {
        achieved: format!("carried {:.2} Mbit/s", achieved / 1e6),
        percent: if achieved > 0.0 { percent } else { Some(0.0) },
        fault,
    }
}

fn no_report() -> LoadShortfall {
    LoadShortfall {
        achieved: "did not say what it did".to_owned(),
        percent: None,
        fault: None,
    }
}

/// A column of the report, of each thread, connection or stream.
fn column(rows: &[Value], name: &str) -> impl Iterator<Item = f64> {
    rows.iter().filter_map(move |row| row[name].as_f64())
}

/// Why traffic was not as requested, by its own report.
fn fault(rows: &[Value]) -> Option<String> {
    let mut faults = rows.iter().filter_map(|row| row["fault"].as_str());
    faults.next().map(str::to_owned)
}

#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn bits(rate: neph_model::BitRate) -> f64 {
    rate.bits_per_second() as f64
}

#[cfg(test)]
mod tests {
    use neph_campaign::parse_stress;

    use super::*;

    fn shortfall_of(load: &str, output: &str) -> Option<String> {
        let requested = parse_stress(load).expect("a load");
        let warning = check_load(&requested.loads()[0], output.as_bytes());
        warning.map(|warning| warning.to_string())
    }

    fn missed_target(load: &str, achieved: &str) -> String {
        format!("W021 load-missed-target: background load {load} missed its target (it {achieved}")
    }

    #[test]
    fn a_cpu_load_reaches_its_target_within_three_percentage_points_per_core() {
        let output = r#"[{"achieved_percent": 79.9}, {"achieved_percent": 61.5}]"#;
        let worked = missed_target("a 80%", "worked 61.5 % of the time)");
        assert_eq!(shortfall_of("a 80%", output), Some(worked));
        let one_thread = r#"[{"achieved_percent": 79.9}, {"achieved_percent": 77.1}]"#;
        assert_eq!(shortfall_of("a 80%", one_thread), None);
    }

    #[test]
    fn a_tcp_load_reaches_its_target_with_most_of_its_rate_and_no_fault() {
        let two_flows = r#"[{"received_bit_s": 1500000}, {"received_bit_s": 500000}]"#;
        assert_eq!(shortfall_of("a flow h:1 2Mbit/s", two_flows), None);
        assert_eq!(shortfall_of("a flow h:1 max", two_flows), None);
        let last = r#"[{"received_bit_s": 0, "received_bytes": 65536, "fault": null}]"#;
        assert_eq!(shortfall_of("a flow h:1 max", last), None);
        let slow = "a flow h:1 4Mbit/s";
        let expected = missed_target(slow, "carried 2.00 Mbit/s)");
        assert_eq!(shortfall_of(slow, two_flows), Some(expected));
        let broke = r#"[{"received_bit_s": 1500000, "fault": "it broke"}]"#;
        let max = "a flow h:1 max";
        let expected = missed_target(max, "carried 1.50 Mbit/s): it broke");
        assert_eq!(shortfall_of(max, broke), Some(expected));
    }

    #[test]
    fn a_stream_misses_its_target_only_if_it_reports_a_fault() {
        let stream = "a stream h:1 2Mbit/s";
        let lossy = r#"[{"sent_bit_s": 2000000, "reverse_bit_s": 500000, "fault": null}]"#;
        assert_eq!(shortfall_of(stream, lossy), None);
        let unanswered = r#"[{"sent_bit_s": 2000000, "reverse_bit_s": 0, "fault": "no answer"}]"#;
        let expected = missed_target(stream, "carried 0.00 Mbit/s): no answer");
        assert_eq!(shortfall_of(stream, unanswered), Some(expected));
        let requested = parse_stress(stream).expect("a load");
        let warning = check_load(&requested.loads()[0], unanswered.as_bytes()).expect("not held");
        assert!(
            matches!(warning, Warning::LoadTargetMissed { achieved_percent: Some(percent), .. } if percent == 0.0)
        );
    }

    #[test]
    fn a_load_without_a_report_misses_its_target() {
        for load in ["a 1%", "a flow h:1 max", "a stream h:1 2Mbit/s"] {
            for output in ["", "[]"] {
                let shortfall = shortfall_of(load, output);
                let unreported = missed_target(load, "did not say what it did)");
                assert_eq!(shortfall, Some(unreported));
            }
        }
    }
}
