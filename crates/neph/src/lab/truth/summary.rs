//! What happened on a link, in a few tables.

use std::io::{self, Write};
use std::path::Path;

use neph_lab::{TruthFile, Verdict};
use neph_model::{Span, Wall};
use neph_stats::{Histogram, quantile_needs};

use super::tally::{Tally, Way};
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::when::utc;

/// As a topology names them.
const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];
/// What is told of delays, in thousandths.
const TOLD: [u64; 3] = [500, 990, 999];

/// Writes everything told of one file.
pub(super) fn write(
    tally: &Tally,
    (path, file): (&Path, &TruthFile),
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", heading(tally, (path, file)))?;
    let tables = [packets(tally), drops(tally), paths(tally), steps(tally)];
    let tables = tables.iter().filter(|table| !table.rows.is_empty());
    for (number, table) in tables.enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        table.write(Format::Text, out)?;
    }
    if few(tally) {
        writeln!(
            out,
            "'-': too few packets for that quantile (p50 needs 6, p99 299, p99.9 2995)"
        )?;
    }
    Ok(())
}

fn heading(tally: &Tally, (path, file): (&Path, &TruthFile)) -> String {
    let sampled = match file.every() {
        1 => "every packet".to_owned(),
        every => format!("one packet in {every} (what follows counts those)"),
    };
    let when = tally.between.map_or_else(
        || "nothing on record".to_owned(),
        |(first, last)| {
            let lasted = Span::from_nanos(last.saturating_sub(first));
            format!("{lasted} from {}", utc(Wall::from_unix_nanos(first)))
        },
    );
    let path = path.display();
    format!("{path}: link '{}', {sampled}, {when}", file.link())
}

/// A row for each direction that anything came by.
fn packets(tally: &Tally) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DIRECTION", "direction"),
        Column::right("PACKETS", "packets"),
        Column::right("DELIVERED", "delivered"),
        Column::right("DROPPED", "dropped"),
        Column::right("DAMAGED", "damaged"),
        Column::right("EARLY", "early"),
        Column::right("COPIES", "copies"),
    ]);
    for (name, way) in used(tally) {
        let counts = [
            way.all(),
            way.delivered(),
            way.all() - way.delivered(),
            way.damaged,
            way.early,
            way.copied(),
        ];
        let mut row = vec![Cell::text(name)];
        row.extend(counts.map(Cell::count));
        sheet.rows.push(row);
    }
    sheet
}

fn drops(tally: &Tally) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DROPPED", "direction"),
        Column::left("REASON", "reason"),
        Column::right("PACKETS", "packets"),
        Column::right("SHARE", "share"),
        Column::right("COPIES", "copies"),
    ]);
    for (name, way) in used(tally) {
        let reasons: std::collections::BTreeSet<&Verdict> =
            way.packets.keys().chain(way.copies.keys()).collect();
        for reason in reasons {
            if *reason == Verdict::Delivered {
                continue;
            }
            let packets = way.packets.get(reason).copied().unwrap_or_default();
            let copies = way.copies.get(reason).copied().unwrap_or_default();
            sheet.rows.push(vec![
                Cell::text(name),
                Cell::text(reason.name()),
                Cell::count(packets),
                share(packets, way.all()),
                Cell::count(copies),
            ]);
        }
    }
    sheet
}

fn paths(tally: &Tally) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DELIVERED", "direction"),
        Column::right("PATH", "path"),
        Column::right("PACKETS", "packets"),
        Column::right("SHARE", "share"),
        Column::right("DELAY P50", "delay_p50_ns"),
        Column::right("P99", "delay_p99_ns"),
        Column::right("P99.9", "delay_p999_ns"),
        Column::right("LATE P50", "lateness_p50_ns"),
        Column::right("P99", "lateness_p99_ns"),
        Column::right("P99.9", "lateness_p999_ns"),
        Column::right("WORST", "lateness_worst_ns"),
    ]);
    for (name, way) in used(tally) {
        for (path, passed) in &way.paths {
            let mut row = vec![
                Cell::text(name),
                Cell::count((*path).into()),
                Cell::count(passed.delay.n()),
                share(passed.delay.n(), way.delivered()),
            ];
            row.extend(TOLD.map(|permille| quantile(&passed.delay, permille)));
            row.extend(TOLD.map(|permille| quantile(&passed.lateness, permille)));
            row.push(passed.lateness.most().map_or_else(Cell::absent, span));
            sheet.rows.push(row);
        }
    }
    sheet
}

fn steps(tally: &Tally) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("SCHEDULE", "direction"),
        Column::right("ENTRY", "entry"),
        Column::left("IT", "turn"),
        Column::right("TIMES", "times"),
        Column::right("FIRST AFTER THE CUE", "first_ns"),
    ]);
    for ((direction, number, turn), steps) in &tally.steps {
        let first = steps.first.and_then(|first| u64::try_from(first).ok());
        sheet.rows.push(vec![
            Cell::text(DIRECTIONS[usize::from(direction & 1)]),
            Cell::count((*number).into()),
            Cell::text(turn.name()),
            Cell::count(steps.times),
            first.map_or_else(Cell::absent, span),
        ]);
    }
    if !sheet.rows.is_empty() {
        sheet.rows.push(vec![
            Cell::text("both"),
            Cell::absent(),
            Cell::text("cued"),
            Cell::count(tally.cues),
            Cell::absent(),
        ]);
    }
    sheet
}

fn used(tally: &Tally) -> impl Iterator<Item = (&'static str, &Way)> {
    let ways = DIRECTIONS.into_iter().zip(&tally.directions);
    ways.filter(|(_, way)| !(way.packets.is_empty() && way.copies.is_empty()))
}

fn share(part: u64, of: u64) -> Cell {
    #[expect(clippy::cast_precision_loss, reason = "counts of packets, for display")]
    let share = part as f64 / of.max(1) as f64;
    Cell::new(format!("{:.2} %", share * 100.0), share)
}

fn span(nanos: u64) -> Cell {
    let span = Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
    Cell::new(span.to_string(), nanos)
}

/// Refused where there are too few for it.
fn quantile(of: &Histogram, permille: u64) -> Cell {
    let told = of.quantile(permille).filter(|_| of.n() >= needs(permille));
    told.map_or_else(Cell::absent, span)
}

fn needs(permille: u64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "at most a thousand")]
    let share = permille as f64 / 1_000.0;
    let needs = quantile_needs(share).expect("between 0 and 1");
    needs as u64
}

fn few(tally: &Tally) -> bool {
    let paths = tally.directions.iter().flat_map(|way| way.paths.values());
    paths
        .into_iter()
        .any(|passed| passed.delay.n() < needs(999))
}
