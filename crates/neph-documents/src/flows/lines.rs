//! Lines of text: title, path change, status.

use neph_flows::{Direction, Evidence, FleetView, PairView, PathEvent};
use neph_model::{Fleet, Instant, Local, Span, WallCourse};
use neph_probe::{Sharing, Silence};

use super::Status;
use neph_flows::follow::Verdict;
use neph_text::counted::counted;

/// The title: a line for each endpoint.
pub fn title(fleet: &Fleet, source_ports: &[u16], sharing: Sharing) -> String {
    let port_range = (source_ports.iter().min(), source_ports.iter().max());
    let ports = match port_range {
        (Some(first), Some(last)) if first < last => format!("source ports {first} to {last}"),
        (Some(port), _) => format!("source port {port}"),
        _ => "no source port".to_owned(),
    };
    let sharing = match sharing {
        Sharing::SocketPerFlow => "a socket each",
        Sharing::SharedSockets => "one socket for all",
    };
    let lifetime = fleet.lifetime.map_or_else(String::new, |lifetime| {
        format!(", a new source port every {}", lifetime.exact())
    });
    let endpoints: Vec<String> = fleet
        .endpoints
        .iter()
        .map(|endpoint| format!("{} ({})", endpoint.name, endpoint.address.ip()))
        .collect();
    format!(
        "{}\n{}, a message from each every {}{lifetime}; {ports}, {sharing}\n",
        endpoints.join("\n"),
        counted(fleet.slots.into(), "flow"),
        fleet.interval.exact()
    )
}

/// A path change as a line; with several endpoints, with its endpoint.
pub fn path_event_line(fleet: &Fleet, event: &PathEvent, clock: &WallCourse<Local>) -> String {
    let (change, remark) = match event {
        PathEvent::Changed(change) => (change, evidence_text(change.evidence)),
        PathEvent::Withdrawn(change) => (change, "withdrawn: it was no path".to_owned()),
    };
    let endpoint_prefix = if fleet.endpoints.len() > 1 {
        format!("{}  ", fleet.endpoints[fleet.endpoint_of(change.slot)].name)
    } else {
        String::new()
    };
    let line = format!(
        "{}  {endpoint_prefix}port {:<5}  {:>10} -> {:>10}  {remark}",
        time_of_day(change.at, clock),
        change.source_port,
        change.before,
        change.after,
    );
    line.trim_end().to_owned()
}

/// A trace as a line: the path change, its result, and the time of the route that it is compared
/// to.
pub fn trace_line(verdict: &Verdict, clock: &WallCourse<Local>) -> String {
    let comparison = match verdict.comparison {
        Ok(comparison) if comparison.others => {
            format!(
                "other routers than at {}",
                time_of_day(comparison.before, clock)
            )
        }
        Ok(comparison) => format!(
            "the same routers as at {}",
            time_of_day(comparison.before, clock)
        ),
        Err(reason) => format!("not comparable: {}", reason.text()),
    };
    let withdrawal_text = if verdict.is_withdrawn {
        "; the change was withdrawn"
    } else {
        ""
    };
    let change = &verdict.change;
    format!(
        "              port {:<5}  its change of {}: {comparison}{withdrawal_text}",
        change.source_port,
        time_of_day(change.at, clock)
    )
}

/// The time of the day in UTC, to a thousandth of a second.
pub fn time_of_day(at: Instant<Local>, clock: &WallCourse<Local>) -> String {
    let Some(nanos) = clock.unix_nanos(at) else {
        return format!("{:.3} s", (at - Instant::from_nanos(0)).secs_f64());
    };
    jiff::Timestamp::from_nanosecond(nanos.into()).map_or_else(
        |_| format!("{nanos} ns"),
        |at| at.strftime("%H:%M:%S%.3f").to_string(),
    )
}

/// The evidence in addition to the latency; empty if there is none.
fn evidence_text(evidence: Evidence) -> String {
    let mut parts = Vec::new();
    match evidence.direction {
        Some(Direction::Forward) => parts.push("forward path"),
        Some(Direction::Reverse) => parts.push("reverse path"),
        Some(Direction::Both) => parts.push("both directions"),
        None => {}
    }
    if evidence.ttl {
        parts.push("another TTL");
    }
    if evidence.reordered {
        parts.push("reordered");
    }
    match evidence.trace {
        Some(true) => parts.push("other routers"),
        Some(false) => parts.push("same routers"),
        None => {}
    }
    parts.join(", ")
}

/// The status as a line.
pub fn status(status: &Status) -> String {
    let tally = &status.tally;
    format!(
        "after {}: {}, {} lost{}; {}",
        running_time_text(status.running),
        counted(tally.messages(), "message"),
        tally.lost,
        if tally.failed > 0 {
            format!(", {} not sent", tally.failed)
        } else {
            String::new()
        },
        counted(status.changes as u64, "path change")
    )
}

/// That an endpoint stopped answering, and since when; `None` if it answers.
pub fn silence_text(pair: &PairView, clock: &WallCourse<Local>) -> Option<String> {
    let (last_reply_sent, messages) = pair.silence?;
    Some(format!(
        "no answer from {} since {}: the {} after that were lost, so results about paths end there",
        pair.endpoint,
        time_of_day(last_reply_sent, clock),
        counted(messages, "message")
    ))
}

/// Whole seconds, minutes, hours.
fn running_time_text(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    match seconds {
        0..600 => format!("{seconds} s"),
        600..36_000 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// A share in percent. A share below 1 is not shown as 100 %, and one above 0 not as 0 %.
pub fn percent(share: f64) -> String {
    const MIN_SHARE: f64 = 1e-9;
    if share > MIN_SHARE && share < 0.0005 {
        "< 0.1 %".to_owned()
    } else if (0.9995..1.0 - MIN_SHARE).contains(&share) {
        "> 99.9 %".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// A time in its usual unit: `2.0 ms`, `30 s`, `8 min`, `1.5 h`.
pub fn duration_text(span: Span) -> String {
    let seconds = span.secs_f64();
    let (number, unit) = match seconds {
        ..1.0 => return span.to_string(),
        ..60.0 => (seconds, "s"),
        ..3_600.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3_600.0, "h"),
    };
    let text = format!("{number:.1}");
    let trimmed = text.strip_suffix(".0").unwrap_or(&text);
    format!("{trimmed} {unit}")
}

/// Why no target answered, if none did (a reason may have been `found` during the measurement); and
/// which endpoints stopped answering, since when.
pub fn silence_reasons(
    silence: &Silence,
    view: &FleetView,
    known_reasons: Option<Vec<String>>,
    clock: &WallCourse<Local>,
) -> Vec<String> {
    let pairs = view.pairs.iter().zip(&view.fleet.endpoints);
    let silent_pairs = pairs
        .filter(|(pair, _)| pair.tally.replies == 0 && pair.tally.lost + pair.tally.failed > 0);
    let mut reasons = known_reasons
        .unwrap_or_else(|| silence.explain(silent_pairs.map(|(_, endpoint)| endpoint)));
    let all_pairs = view.pairs.iter();
    reasons.extend(all_pairs.filter_map(|pair| silence_text(pair, clock)));
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use neph_flows::follow::{RouteComparison, UncomparedReason};

    #[test]
    fn a_share_below_1_is_not_shown_as_100_percent() {
        for (share, expected) in [
            (1.0, "100.0 %"),
            (0.9997, "> 99.9 %"),
            (0.5, "50.0 %"),
            (0.0001, "< 0.1 %"),
            (0.0, "0.0 %"),
        ] {
            assert_eq!(percent(share), expected);
        }
    }

    #[test]
    fn a_silent_endpoint_is_named_with_the_time_of_its_last_answer() {
        let pair = |silence| PairView {
            endpoint: "udp://h:1".to_owned(),
            silence,
            ..PairView::default()
        };
        let last_reply_sent = Instant::from_nanos(4_100_000_000);
        let sentence = silence_text(
            &pair(Some((last_reply_sent, 320))),
            &WallCourse::within(Span::ZERO),
        );
        let expected = "no answer from udp://h:1 since 4.100 s: the 320 messages after that";
        assert!(sentence.is_some_and(|sentence| sentence.starts_with(expected)));
        assert_eq!(
            silence_text(&pair(None), &WallCourse::within(Span::ZERO)),
            None
        );
    }

    #[test]
    fn durations_are_printed_in_readable_units() {
        for (millis, expected) in [
            (2, "2.00 ms"),
            (30_000, "30 s"),
            (60_000, "1 min"),
            (479_500, "8 min"),
            (5_400_000, "1.5 h"),
        ] {
            assert_eq!(duration_text(Span::from_millis(millis)), expected);
        }
    }

    #[test]
    fn a_trace_line_contains_its_path_change() {
        let at = |millis: i64| Instant::from_nanos(millis * 1_000_000);
        let change = neph_flows::PathChange {
            slot: neph_model::Slot(0),
            source_port: 10_004,
            at: at(12_340),
            reported: at(12_900),
            before: Span::from_millis(6),
            after: Span::from_millis(10),
            evidence: Evidence::default(),
        };
        let line = |comparison, is_withdrawn| {
            let verdict = Verdict {
                change,
                comparison,
                is_withdrawn,
            };
            trace_line(&verdict, &WallCourse::within(Span::ZERO))
                .trim()
                .to_owned()
        };
        let comparison = RouteComparison {
            others: true,
            before: at(2_120),
        };
        assert_eq!(
            line(Ok(comparison), true),
            "port 10004  its change of 12.340 s: other routers than at 2.120 s; the change was withdrawn"
        );
        assert_eq!(
            line(Err(UncomparedReason::MovedOn), false),
            "port 10004  its change of 12.340 s: not comparable: the path changed again before the trace was over"
        );
    }
}
