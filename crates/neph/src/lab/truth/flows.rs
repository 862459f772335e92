//! `neph lab truth --flows`: which flow was on which path when.
//!
//! Owns the tables. What a flow's segments are is found in `neph-lab`, in memory for the flows and
//! their changes of path, not for their packets.

use std::io::Write;
use std::path::{Path, PathBuf};

use neph_lab::{FlowKey, FlowTruth, Flows, PathSegment, Record, TruthFile};
use neph_model::{Span, Wall};
use serde_json::{Value, json};

use super::{Format, failure, tell_cut};
use crate::exit::Failure;
use crate::sheet::{Cell, Column, Format as SheetFormat, Sheet, field};
use crate::when::utc;
use neph_text::counted::counted as counted_as;

const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// What is told of a time on a path; moments are `CLOCK_REALTIME` nanoseconds.
const KEYS: [&str; 14] = [
    "file",
    "link",
    "direction",
    "protocol",
    "source_port",
    "destination_port",
    "segment",
    "path",
    "from_ns",
    "until_ns",
    "packets",
    "lost",
    "reordered",
    "flow_changes",
];

/// A link's record, flow by flow.
struct Read<'p> {
    path: &'p Path,
    link: String,
    every: u32,
    flows: Vec<(FlowKey, FlowTruth)>,
    /// How many times a schedule, or a change of routes, came about.
    steps: u64,
}

impl<'p> Read<'p> {
    fn of(path: &'p Path) -> Result<Self, Failure> {
        let mut file = TruthFile::open(path).map_err(failure)?;
        let mut flows = Flows::default();
        let mut steps = 0;
        for record in file.by_ref() {
            let record = record.map_err(failure)?;
            steps += u64::from(matches!(record, Record::Step { .. }));
            flows.take(&record);
        }
        tell_cut(path, file.cut_off());
        Ok(Self {
            path,
            link: file.link().to_owned(),
            every: file.every(),
            flows: flows.finish().into_iter().collect(),
            steps,
        })
    }

    /// Neighbours are not all on a sampled record, so nothing is told of overtaking.
    fn reordered(&self, packets: u64) -> Option<u64> {
        (self.every == 1).then_some(packets)
    }

    fn direction(&self, direction: u8) -> impl Iterator<Item = &(FlowKey, FlowTruth)> {
        let flows = self.flows.iter();
        flows.filter(move |(key, _)| key.direction == direction)
    }
}

/// Writes one file after the other.
pub(super) fn write(files: &[PathBuf], format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        Format::Csv => writeln!(out, "{}", KEYS.join(","))?,
        Format::Json => write!(out, "[")?,
        Format::Text | Format::Ndjson => {}
    }
    let mut written = 0_u64;
    for (number, path) in files.iter().enumerate() {
        let read = Read::of(path)?;
        if format == Format::Text {
            if number > 0 {
                writeln!(out)?;
            }
            text(&read, out)?;
            continue;
        }
        for (key, flow) in &read.flows {
            for (number, segment) in (0_u64..).zip(&flow.segments) {
                let row = row(&read, (*key, flow), (number, segment));
                match format {
                    Format::Csv => {
                        let fields = KEYS.map(|key| row.get(key).map(field).unwrap_or_default());
                        writeln!(out, "{}", fields.join(","))?;
                    }
                    Format::Json if written > 0 => write!(out, ",\n{row}")?,
                    Format::Json => write!(out, "\n{row}")?,
                    _ => writeln!(out, "{row}")?,
                }
                written += 1;
            }
        }
    }
    if format == Format::Json {
        writeln!(out, "\n]")?;
    }
    Ok(())
}

fn row(
    read: &Read<'_>,
    (key, flow): (FlowKey, &FlowTruth),
    (number, segment): (u64, &PathSegment),
) -> Value {
    json!({
        "file": read.path.display().to_string(),
        "link": read.link,
        "direction": DIRECTIONS[usize::from(key.direction & 1)],
        "protocol": key.protocol,
        "source_port": key.source_port,
        "destination_port": key.destination_port,
        "segment": number,
        "path": segment.path,
        "from_ns": segment.from,
        "until_ns": segment.until,
        "packets": segment.packets,
        "lost": segment.lost,
        "reordered": read.reordered(segment.reordered),
        "flow_changes": flow.changes(),
    })
}

fn text(read: &Read<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let starts = read
        .flows
        .iter()
        .filter_map(|(_, flow)| Some(flow.segments.first()?.from));
    let first = starts.min();
    let sampled = match read.every {
        1 => "every packet".to_owned(),
        every => format!("one packet in {every} (what follows counts those)"),
    };
    let when = first.map_or_else(
        || without_flows(read.steps),
        |first| format!("times count from {}", utc(Wall::from_unix_nanos(first))),
    );
    writeln!(
        out,
        "{}: link '{}', {sampled}, {when}",
        read.path.display(),
        read.link
    )?;
    let sheets = [
        totals(read),
        paths(read),
        flows(read, first.unwrap_or_default()),
    ];
    let sheets = sheets.iter().filter(|sheet| !sheet.rows.is_empty());
    for (number, sheet) in sheets.enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        sheet.write(SheetFormat::Text, out)?;
    }
    let unplaced: u64 = read.flows.iter().map(|(_, flow)| flow.unplaced).sum();
    if unplaced > 0 {
        writeln!(
            out,
            "{unplaced} packets were kept longer than any before them, and are told no time on a path"
        )?;
    }
    Ok(())
}

fn without_flows(steps: u64) -> String {
    match steps {
        0 => "nothing on record".to_owned(),
        // The file of routers that spread flows anew holds nothing else.
        steps => format!(
            "no flows: it records {} of a schedule or of routes; the flows of a link are in its \
             LINK.truth",
            counted_as(steps, "change")
        ),
    }
}

/// A row for each direction.
fn totals(read: &Read<'_>) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DIRECTION", "direction"),
        Column::right("FLOWS", "flows"),
        Column::right("MOVED", "moved"),
        Column::right("CHANGES", "changes"),
        Column::right("PACKETS", "packets"),
        Column::right("REORDERED", "reordered"),
    ]);
    for (direction, name) in (0..).zip(DIRECTIONS) {
        let sum =
            |of: fn(&FlowTruth) -> u64| read.direction(direction).map(|(_, flow)| of(flow)).sum();
        let flows: u64 = sum(|_| 1);
        if flows > 0 {
            sheet.rows.push(vec![
                Cell::text(name),
                Cell::count(flows),
                Cell::count(sum(|flow| u64::from(flow.changes() > 0))),
                Cell::count(sum(FlowTruth::changes)),
                Cell::count(sum(FlowTruth::packets)),
                counted(read.reordered(sum(FlowTruth::reordered))),
            ]);
        }
    }
    sheet
}

/// A row for each path: who was on it, and who left it.
fn paths(read: &Read<'_>) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DIRECTION", "direction"),
        Column::right("PATH", "path"),
        Column::right("FLOWS", "flows"),
        Column::right("PACKETS", "packets"),
        Column::right("LEFT IT", "left_it"),
    ]);
    for (direction, name) in (0..).zip(DIRECTIONS) {
        let mut paths = std::collections::BTreeMap::<u8, [u64; 3]>::new();
        for (_, flow) in read.direction(direction) {
            let mut met = std::collections::BTreeSet::new();
            for (number, segment) in flow.segments.iter().enumerate() {
                let [flows, packets, left] = paths.entry(segment.path).or_default();
                *flows += u64::from(met.insert(segment.path));
                *packets += segment.packets;
                *left += u64::from(number + 1 < flow.segments.len());
            }
        }
        for (path, counts) in paths {
            let mut row = vec![Cell::text(name), Cell::count(path.into())];
            row.extend(counts.map(Cell::count));
            sheet.rows.push(row);
        }
    }
    sheet
}

/// A row for each flow.
fn flows(read: &Read<'_>, start: i64) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("FLOW", "direction"),
        Column::right("PROTOCOL", "protocol"),
        Column::right("FROM PORT", "source_port"),
        Column::right("TO PORT", "destination_port"),
        Column::right("PACKETS", "packets"),
        Column::right("REORDERED", "reordered"),
        Column::right("CHANGES", "changes"),
        Column::left("PATHS, AND SINCE WHEN", "paths"),
    ]);
    for (key, flow) in &read.flows {
        sheet.rows.push(vec![
            Cell::text(DIRECTIONS[usize::from(key.direction & 1)]),
            Cell::count(key.protocol.into()),
            Cell::count(key.source_port.into()),
            Cell::count(key.destination_port.into()),
            Cell::count(flow.packets()),
            counted(read.reordered(flow.reordered())),
            Cell::count(flow.changes()),
            Cell::text(story(flow, start)),
        ]);
    }
    sheet
}

/// How many times on a path a line at the terminal tells; programs get all.
const TOLD: usize = 6;

fn story(flow: &FlowTruth, start: i64) -> String {
    let told = flow.segments.iter().take(TOLD).map(|segment| {
        let since = Span::from_nanos(segment.from.saturating_sub(start));
        format!("{} {since}", segment.path)
    });
    let mut told: Vec<String> = told.collect();
    if flow.segments.len() > TOLD {
        told.push(format!("and {} more", flow.segments.len() - TOLD));
    }
    told.join(", ")
}

fn counted(count: Option<u64>) -> Cell {
    count.map_or_else(Cell::absent, Cell::count)
}
