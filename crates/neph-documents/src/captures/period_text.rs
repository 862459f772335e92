//! A period as text: a line for each flow, and a sentence with totals.

use neph_capture::{Answer, Flow, Half, Method, PeriodCounts, Side};
use neph_model::Span;
use neph_text::counted::counted;

use super::RecentPeriod;
use super::row::{columns, encapsulations_text, retransmission_cells, round_trip_cells};
use crate::table::Heading;
use crate::wall_time;

/// The columns of flows.
pub const COLUMNS: [Heading; 21] = columns("PACKETS/S", "BYTES/S", "WITH DATA");

/// A table line: a flow in a period of this length.
pub fn row(length: Span, flow: &Flow, recent: &PeriodCounts, method: Method) -> Vec<String> {
    let (client, server) = (recent.sent(Side::Client), recent.sent(Side::Server));
    let server_round_trips = recent.round_trips(Half::Server).by_method();
    let name = flow.name();
    let mut cells = vec![
        name.client().to_string(),
        format!("{}{}", name.server(), encapsulations_text(flow)),
        per_second(client.packets + server.packets, length).to_string(),
        per_second(client.bytes + server.bytes, length).to_string(),
    ];
    let with_data = server_round_trips.answer_quantiles(method, Answer::WithData);
    let client_path = recent.round_trips(Half::Client).path_quantiles(method);
    cells.extend(round_trip_cells(
        &server_round_trips,
        with_data,
        client_path,
        method,
    ));
    cells.extend(retransmission_cells((client, server)));
    cells
}

/// `23:59:59 UTC  1200 packets a second, ...`: received packets, packets of no flow, lost packets.
pub fn sentence(period: &RecentPeriod) -> String {
    let length = period.time.length;
    let (capture_counters, others) = (&period.capture_counters, &period.others);
    let rate = |count| per_second(count, length);
    let excluded_text: Vec<String> = [
        (others.udp, "UDP"),
        (others.icmp, "ICMP"),
        (others.fragments, "fragments"),
        (others.other_protocols, "other"),
        (others.truncated, "cut off (--snaplen keeps more)"),
        (capture_counters.not_ip, "not IP"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, reason)| format!("{} {reason}", rate(count)))
    .collect();
    let excluded_text = if excluded_text.is_empty() {
        String::new()
    } else {
        format!(" (of no flow here: {})", excluded_text.join(", "))
    };
    let copies_text = match period.counts.copies {
        0 => String::new(),
        copies => format!(", {} of them once more", rate(copies)),
    };
    let retransmissions_text = match period.retransmission_counters {
        counters if counters.retransmissions == 0 => String::new(),
        counters => format!(
            ", {} retransmissions ({} of them spurious)",
            rate(counters.retransmissions),
            rate(counters.spurious)
        ),
    };
    let untracked_text = match period.retransmission_counters.segments_not_tracked {
        0 => String::new(),
        segments => format!(", {} segments not followed", rate(segments)),
    };
    let loss_text = if capture_counters.lost == 0 {
        "none lost".to_owned()
    } else {
        let times = counted(capture_counters.frozen, "time");
        let loss_text = counted(capture_counters.lost, "packet");
        format!("{loss_text} LOST, the ring was full {times}; --ring makes it larger")
    };
    format!(
        "{}  a second: {} packets{copies_text}{excluded_text}, {} bytes of IP{retransmissions_text}{untracked_text}; {loss_text}",
        wall_time::utc(period.time.until),
        rate(capture_counters.packets),
        rate(period.counts.bytes),
    )
}

/// Rounded to the nearest whole number.
fn per_second(count: u64, length: Span) -> u64 {
    let nanos = u128::try_from(length.nanos()).unwrap_or(0).max(1);
    let rate = (u128::from(count) * 1_000_000_000 + nanos / 2) / nanos;
    u64::try_from(rate).unwrap_or(u64::MAX)
}
