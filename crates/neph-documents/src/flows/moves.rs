//! The summary's lines about path changes: how often flows change paths, and how long they stay.

use neph_flows::{ComparedRoutes, Curve, FleetView, PairView, Share};
use neph_model::Span;

use super::lines::{self, percent};
use neph_flows::follow::Uncompared;
use neph_text::counted::counted;

/// The whole text for the flows to one endpoint; if they were traced, with the reasons why changes
/// could not be compared.
pub(super) fn text(
    view: &FleetView,
    endpoint: usize,
    pair: &PairView,
    uncompared: Option<&Uncompared>,
) -> String {
    let mut text = changes_text(view, endpoint, pair);
    let changes_of_endpoint = view.changes.iter();
    let changes_of_endpoint =
        changes_of_endpoint.filter(|change| view.fleet.endpoint_of(change.slot) == endpoint);
    let comparison = ComparedRoutes::of(changes_of_endpoint.map(|change| change.evidence.trace));
    text.push_str(&routes_text(
        comparison,
        uncompared.copied().unwrap_or_default(),
    ));
    text.push_str(&unexplained_text(pair));
    text.push_str(&drift_text(pair, view.settings.detection.tolerance));
    if let Some(share) = &pair.leave_share {
        text.push_str(&format!(
            "persistence:   {} of those who came to a class left it within {}\n",
            interval_text(share, "stay"),
            view.settings.soon.exact()
        ));
    }
    let curves = [
        ("between changes", &pair.between),
        ("stay on a class", &pair.persistence),
        ("forward only", &pair.persistence_forward),
        ("reverse only", &pair.persistence_reverse),
    ];
    for (name, curve) in curves {
        if let Some(curve) = curve {
            text.push_str(&format!(
                "{:<15}{}\n",
                format!("{name}:"),
                curve_text(curve)
            ));
        }
    }
    text
}

/// The results of traces of the changes, and the number of traces without a result.
fn routes_text(compared: ComparedRoutes, uncompared: Uncompared) -> String {
    let total = compared.total();
    if total + uncompared.total() == 0 {
        return String::new();
    }
    let mut text = format!(
        "routes:        of {} compared: {} by other routers, {} by the same routers\n",
        counted(total, "change"),
        compared.others,
        compared.same
    );
    if uncompared.total() > 0 {
        let reasons = uncompared.by_reason().into_iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| format!("{count}: {}", reason.text()))
            .collect();
        text.push_str(&format!(
            "               {} not comparable ({})\n",
            counted(uncompared.total(), "change"),
            reasons.join("; ")
        ));
    }
    text
}

/// The number and the rate of path changes.
fn changes_text(view: &FleetView, endpoint: usize, pair: &PairView) -> String {
    let rule = view.settings.detection;
    let window = view.fleet.interval.times(rule.window.into());
    match pair.changes_per_flow_hour() {
        Some(rate) if pair.changes > 0 => {
            let bins = view.latency_bins[endpoint].iter();
            let max = bins.filter_map(|bin| bin.changes).max().unwrap_or(0);
            format!(
                "path changes:  {}, {rate:.1} per flow and hour{}; in {} at most {max}\n",
                pair.changes,
                exclusion_text(pair, view.learning()),
                view.bin().exact()
            )
        }
        _ if pair.too_short => {
            let (cause, remedy) = if view.lifetime_ends_flows() {
                (
                    "flows live too short",
                    "use a shorter interval, or no --renew",
                )
            } else {
                (
                    "the measurement is too short",
                    "measure longer, or use a shorter interval",
                )
            };
            format!(
                "path changes:  {} detected; {cause} to detect all: {remedy}\n",
                pair.changes
            )
        }
        None if pair.changes > 0 => format!(
            "path changes:  {} detected; at no time could all be detected\n",
            pair.changes
        ),
        _ if pair.flows == 0 => {
            "path changes:  not evaluated: no flow had a base latency\n".to_owned()
        }
        _ if is_too_short(window, pair) => format!(
            "path changes:  not evaluated: too short, with {}{}; measure longer, or use a shorter interval\n",
            time_of_flows(pair),
            exclusion_text(pair, view.learning())
        ),
        _ => format!(
            "path changes:  none in {}{}\n",
            time_of_flows(pair),
            exclusion_text(pair, view.learning())
        ),
    }
}

/// Whether each flow was observed, after its first level was known, for less than the `min_stay` time
/// that shows another level.
fn is_too_short(min_stay: Span, pair: &PairView) -> bool {
    pair.observable_time() < min_stay.times(i64::try_from(pair.flows.max(1)).unwrap_or(i64::MAX))
}

/// `6 s of each of 200 flows`: the sum over all flows would be longer than the measurement.
fn time_of_flows(pair: &PairView) -> String {
    let flows = pair.flows.max(1);
    let span_per_flow = pair.observable_time().nanos() / i64::try_from(flows).unwrap_or(i64::MAX);
    let span_per_flow = lines::duration_text(Span::from_nanos(span_per_flow));
    match flows {
        1 => format!("{span_per_flow} of one flow"),
        count => format!("{span_per_flow} of each of {count} flows"),
    }
}

/// A sentence about time at latencies that may have been paths, if above 1 %.
fn unexplained_text(pair: &PairView) -> String {
    let share = pair.unexplained.secs_f64() / pair.watched.secs_f64().max(1e-9);
    if share <= 0.01 {
        return String::new();
    }
    format!(
        "               neph counted {} of the flows' time as time in queues, not on further paths\n",
        percent(share)
    )
}

/// A sentence about the drift that all flows share, if it exceeds the difference between two paths.
fn drift_text(pair: &PairView, tolerance: Span) -> String {
    if pair.drift.extent() <= tolerance {
        return String::new();
    }
    let millis = |span: Span| format!("{:+.1}", span.millis_f64());
    format!(
        "               the round trips of all flows drifted together, from {} to {} ms: the base latencies exclude this drift\n",
        millis(pair.drift.lowest),
        millis(pair.drift.highest)
    )
}

/// A sentence that a rate covers only a part of the time. It names the time that is left out at the
/// beginning of flows, if above 1 %, and the time that a queue hid.
fn exclusion_text(pair: &PairView, learning: Span) -> String {
    let share = |part: Span| part.secs_f64() / pair.watched.secs_f64().max(1e-9);
    let mut parts = Vec::new();
    if share(pair.hidden.learning) > 0.01 {
        parts.push(format!(
            "after the first {} of each flow",
            lines::duration_text(learning)
        ));
    }
    let hidden = share(pair.hidden.time);
    if hidden >= 0.0005 {
        let merged_note = if pair.congestion_periods_merged {
            "; there were so many that those close together count as one, with the time between them"
        } else {
            ""
        };
        parts.push(format!(
            "without the {} of the time that a shared queue hid{merged_note}",
            percent(hidden)
        ));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({})", parts.join(", "))
}

fn curve_text(curve: &Curve) -> String {
    let counts_text = format!("n {}, of which {} were seen to end", curve.n, curve.ended);
    match curve.median() {
        Some(median) => format!(" median {median} ({counts_text})"),
        None => format!(" more than half outlasted the measurement ({counts_text})"),
    }
}

/// 40.0 % (35.1 to 45.2, n 123 stays)
fn interval_text(share: &Share, noun: &str) -> String {
    format!(
        "{} ({:.1} to {:.1}, n {})",
        percent(share.share),
        share.low * 100.0,
        share.high * 100.0,
        counted(share.n, noun)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use neph_flows::follow::UncomparedReason;

    #[test]
    fn time_without_a_change_is_shown_per_flow() {
        let pair = |flows, watched| PairView {
            flows,
            watched: Span::from_millis(watched),
            ..PairView::default()
        };
        assert_eq!(
            time_of_flows(&pair(200, 1_189_777)),
            "5.9 s of each of 200 flows"
        );
        assert_eq!(time_of_flows(&pair(1, 90_000)), "1.5 min of one flow");
    }

    #[test]
    fn a_pair_with_little_visible_time_is_too_short_to_judge() {
        let pair = |observable_millis: i64| PairView {
            flows: 20,
            watched: Span::from_millis(36_000 + observable_millis),
            hidden: neph_flows::Hidden {
                learning: Span::from_secs(36),
                ..neph_flows::Hidden::default()
            },
            ..PairView::default()
        };
        let is_too_short =
            |observable_millis| is_too_short(Span::from_millis(400), &pair(observable_millis));
        assert!(is_too_short(0) && is_too_short(7_999) && !is_too_short(8_000));
    }

    #[test]
    fn substantial_time_at_levels_without_a_path_is_reported() {
        let text_of =
            |unexplained| unexplained_text_of(Span::from_secs(1000), Span::from_secs(unexplained));
        assert_eq!(text_of(10), "");
        assert!(text_of(18).contains("counted 1.8 % of the flows' time as time in queues"));
    }

    #[test]
    fn a_drift_of_all_flows_is_reported_where_paths_may_differ_by_less() {
        let pair = |lowest, highest| PairView {
            drift: neph_flows::SharedDrift {
                lowest: Span::from_micros(lowest),
                highest: Span::from_micros(highest),
            },
            ..PairView::default()
        };
        let text =
            |lowest, highest| super::drift_text(&pair(lowest, highest), Span::from_micros(500));
        assert_eq!(text(-200, 300), "");
        assert!(text(-1_000, 1_520).contains("from -1.0 to +1.5 ms"));
    }

    fn unexplained_text_of(watched: Span, unexplained: Span) -> String {
        super::unexplained_text(&PairView {
            watched,
            unexplained,
            ..PairView::default()
        })
    }

    #[test]
    fn a_change_rate_states_the_time_that_it_leaves_out() {
        let pair = |congestion_periods_merged, learning| PairView {
            watched: Span::from_secs(100),
            hidden: neph_flows::Hidden {
                time: Span::from_secs(25),
                learning: Span::from_secs(learning),
                changes: 0,
            },
            congestion_periods_merged,
            ..PairView::default()
        };
        let text_of = |pair: &PairView| exclusion_text(pair, Span::from_millis(3400));
        assert_eq!(
            text_of(&pair(false, 1)),
            " (without the 25.0 % of the time that a shared queue hid)"
        );
        assert_eq!(
            text_of(&pair(false, 2)),
            " (after the first 3.4 s of each flow, without the 25.0 % of the time that a shared queue hid)"
        );
        assert!(text_of(&pair(true, 0)).contains("with the time between them"));
        assert_eq!(text_of(&PairView::default()), "");
    }

    #[test]
    fn route_comparisons_are_counted_by_result() {
        let comparison = [Some(true), None, Some(false), Some(true)];
        assert_eq!(
            routes_text(ComparedRoutes::of(comparison), Uncompared::default()),
            "routes:        of 3 changes compared: 2 by other routers, 1 by the same routers\n"
        );
        let no_comparison = ComparedRoutes::of([None]);
        assert_eq!(routes_text(no_comparison, Uncompared::default()), "");
        let mut uncompared = Uncompared::default();
        for reason in [
            UncomparedReason::NoBefore,
            UncomparedReason::MovedOn,
            UncomparedReason::MovedOn,
        ] {
            uncompared.add(reason);
        }
        assert!(routes_text(no_comparison, uncompared).ends_with(
            "3 changes not comparable (2: the path changed again before the trace was over; 1: no route of the path before it is known)\n"
        ));
    }
}
