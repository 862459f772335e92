//! The record of a link as a few tables.

use std::collections::BTreeSet;

use neph_lab::Verdict;
use neph_model::{Span, Wall};
use neph_stats::{Histogram, quantile_needs};

use super::tally::{DirectionTally, Tally};
use super::{DIRECTIONS, direction_name};
use crate::cell::{Cell, OrDash};
use crate::table::{Heading, Table};
use crate::wall_time::utc;

/// The quantiles of delays that are reported, in thousandths.
const REPORTED_PERMILLES: [u64; 3] = [500, 990, 999];

/// The file that was read.
#[derive(Clone, Copy, Debug)]
pub struct RecordedFile<'f> {
    /// Its path.
    pub path: &'f str,
    /// The link.
    pub link: &'f str,
    /// One packet in how many is on record.
    pub every: u32,
}

/// The text form: packets, drops, paths and steps of one file.
pub fn summary(tally: &Tally, file: RecordedFile<'_>) -> String {
    let tables = [
        packets_table(tally),
        drops_table(tally),
        paths_table(tally),
        steps_table(tally),
    ];
    let tables = tables.iter().filter(|table| !table.is_empty());
    let tables: Vec<String> = tables.map(Table::text).collect();
    let mut text = format!("{}\n{}", heading_line(tally, file), tables.join("\n"));
    if has_too_few_packets(tally) {
        text.push_str(
            "'-': too few packets for that quantile (p50 needs 6, p99 299, p99.9 2995)\n",
        );
    }
    text
}

fn heading_line(tally: &Tally, file: RecordedFile<'_>) -> String {
    let sampling_text = match file.every {
        1 => "every packet".to_owned(),
        every => format!("one packet in {every} (what follows counts those)"),
    };
    let period_text = tally.period.map_or_else(
        || "nothing on record".to_owned(),
        |(first, last)| {
            let duration = Span::from_nanos(last.saturating_sub(first));
            format!("{duration} from {}", utc(Wall::from_unix_nanos(first)))
        },
    );
    format!(
        "{}: link '{}', {sampling_text}, {period_text}",
        file.path, file.link
    )
}

/// A row for each direction with a packet.
fn packets_table(tally: &Tally) -> Table {
    let mut table = Table::new([
        Heading::left("DIRECTION"),
        Heading::right("PACKETS"),
        Heading::right("DELIVERED"),
        Heading::right("DROPPED"),
        Heading::right("DAMAGED"),
        Heading::right("EARLY"),
        Heading::right("COPIES"),
    ]);
    for (name, direction) in used_directions(tally) {
        let counts = [
            direction.total(),
            direction.delivered(),
            direction.total() - direction.delivered(),
            direction.damaged,
            direction.early,
            direction.delivered_copies(),
        ];
        let mut row = vec![name.to_owned()];
        row.extend(counts.map(|count| count.cell()));
        table.push(row);
    }
    table
}

fn drops_table(tally: &Tally) -> Table {
    let mut table = Table::new([
        Heading::left("DROPPED"),
        Heading::left("REASON"),
        Heading::right("PACKETS"),
        Heading::right("SHARE"),
        Heading::right("COPIES"),
    ]);
    for (name, direction) in used_directions(tally) {
        let reasons: BTreeSet<&Verdict> = direction
            .packets
            .keys()
            .chain(direction.copies.keys())
            .collect();
        for reason in reasons {
            if *reason == Verdict::Delivered {
                continue;
            }
            let packets = direction.packets.get(reason).copied().unwrap_or_default();
            let copies = direction.copies.get(reason).copied().unwrap_or_default();
            table.push([
                name.to_owned(),
                reason.name().to_owned(),
                packets.cell(),
                share_text(packets, direction.total()),
                copies.cell(),
            ]);
        }
    }
    table
}

fn paths_table(tally: &Tally) -> Table {
    let mut table = Table::new([
        Heading::left("DELIVERED"),
        Heading::right("PATH"),
        Heading::right("PACKETS"),
        Heading::right("SHARE"),
        Heading::right("DELAY P50"),
        Heading::right("P99"),
        Heading::right("P99.9"),
        Heading::right("LATE P50"),
        Heading::right("P99"),
        Heading::right("P99.9"),
        Heading::right("WORST"),
    ]);
    for (name, direction) in used_directions(tally) {
        for (path, packets) in &direction.paths {
            let mut row = vec![
                name.to_owned(),
                path.cell(),
                packets.delay.n().cell(),
                share_text(packets.delay.n(), direction.delivered()),
            ];
            row.extend(REPORTED_PERMILLES.map(|permille| quantile_text(&packets.delay, permille)));
            row.extend(
                REPORTED_PERMILLES.map(|permille| quantile_text(&packets.lateness, permille)),
            );
            row.push(packets.lateness.max().or_dash(span_text));
            table.push(row);
        }
    }
    table
}

fn steps_table(tally: &Tally) -> Table {
    let mut table = Table::new([
        Heading::left("SCHEDULE"),
        Heading::right("ENTRY"),
        Heading::left("EVENT"),
        Heading::right("COUNT"),
        Heading::right("FIRST, SINCE CUE"),
    ]);
    for ((direction_number, number, turn), steps) in &tally.steps {
        let first = steps.first.and_then(|first| u64::try_from(first).ok());
        table.push([
            direction_name(*direction_number).to_owned(),
            number.cell(),
            turn.name().to_owned(),
            steps.times.cell(),
            first.or_dash(span_text),
        ]);
    }
    if !table.is_empty() {
        table.push([
            "both".to_owned(),
            "-".to_owned(),
            "cued".to_owned(),
            tally.cues.cell(),
            "-".to_owned(),
        ]);
    }
    table
}

fn used_directions(tally: &Tally) -> impl Iterator<Item = (&'static str, &DirectionTally)> {
    let directions = DIRECTIONS.into_iter().zip(&tally.directions);
    directions
        .filter(|(_, direction)| !(direction.packets.is_empty() && direction.copies.is_empty()))
}

fn share_text(part: u64, total: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "counts of packets, for display")]
    let share = part as f64 / total.max(1) as f64;
    format!("{:.2} %", share * 100.0)
}

fn span_text(nanos: u64) -> String {
    let span = Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
    span.to_string()
}

/// A quantile; none with too few values.
fn quantile_text(delays: &Histogram, permille: u64) -> String {
    let quantile = delays
        .quantile(permille)
        .filter(|_| delays.n() >= samples_needed(permille));
    quantile.or_dash(span_text)
}

fn samples_needed(permille: u64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "at most a thousand")]
    let share = permille as f64 / 1_000.0;
    let needed = quantile_needs(share).expect("between 0 and 1");
    needed as u64
}

fn has_too_few_packets(tally: &Tally) -> bool {
    let paths = tally
        .directions
        .iter()
        .flat_map(|direction| direction.paths.values());
    paths
        .into_iter()
        .any(|packets| packets.delay.n() < samples_needed(999))
}
