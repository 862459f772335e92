//! The records of links by flow: the path of each flow over time.

use std::collections::{BTreeMap, BTreeSet};

use neph_lab::{FlowKey, FlowTruth, PathSegment};
use neph_model::{Span, Wall};
use neph_text::counted::counted;

use super::{DIRECTIONS, direction_name};
use crate::cell::Cell;
use crate::table::{Heading, Table};
use crate::wall_time::utc;

crate::rows! {
    /// A period that a flow spent on one path. Times are Unix nanoseconds.
    pub struct FlowSegmentRow {
        /// Name of the file.
        file: String,
        /// Name of the link.
        link: String,
        /// Direction: `a_to_b` or `b_to_a`.
        direction: &'static str,
        /// Number of the IP protocol.
        protocol: u8,
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
        /// Number of the period within its flow, from 0.
        segment: u64,
        /// Index of the path, from 0.
        path: u8,
        /// Arrival of its first packet.
        from_ns: i64,
        /// Arrival of its last packet.
        until_ns: i64,
        /// Number of packets.
        packets: u64,
        /// Number of dropped packets.
        lost: u64,
        /// Number of reordered packets; null if the record is sampled.
        reordered: Option<u64>,
        /// Number of path changes of the flow in total.
        flow_changes: u64,
    }
}

/// The record of a period.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSource<'p> {
    /// The file.
    pub file: &'p str,
    /// The flow.
    pub key: FlowKey,
    /// The record of the flow.
    pub flow: &'p FlowTruth,
    /// The number of the segment, from 0.
    pub number: u64,
}

/// The flows of a link's record.
#[derive(Clone, Debug)]
pub struct FlowPaths {
    /// The link.
    pub link: String,
    /// One packet in this number is recorded.
    pub every: u32,
    /// The flows.
    pub flows: Vec<(FlowKey, FlowTruth)>,
    /// Number of times that a schedule or a route change was applied.
    pub steps: u64,
}

impl FlowPaths {
    /// Every segment of every flow.
    pub fn segments<'p>(&'p self, file: &'p str) -> impl Iterator<Item = FlowSegmentRow> + 'p {
        self.flows.iter().flat_map(move |(key, flow)| {
            let segments = (0_u64..).zip(&flow.segments);
            segments.map(move |(number, segment)| {
                let source = SegmentSource {
                    file,
                    key: *key,
                    flow,
                    number,
                };
                self.segment_row(source, segment)
            })
        })
    }

    fn segment_row(&self, source: SegmentSource<'_>, segment: &PathSegment) -> FlowSegmentRow {
        FlowSegmentRow {
            file: source.file.to_owned(),
            link: self.link.clone(),
            direction: direction_name(source.key.direction),
            protocol: source.key.protocol,
            source_port: source.key.source_port,
            destination_port: source.key.destination_port,
            segment: source.number,
            path: segment.path,
            from_ns: segment.first_arrival,
            until_ns: segment.last_arrival,
            packets: segment.packets,
            lost: segment.lost,
            reordered: self.reordered(segment.reordered),
            flow_changes: source.flow.path_changes(),
        }
    }

    /// In a sampled record, adjacent packets may be missing: reordering is unknown then.
    fn reordered(&self, packets: u64) -> Option<u64> {
        (self.every == 1).then_some(packets)
    }

    fn flows_in(&self, direction: u8) -> impl Iterator<Item = &(FlowKey, FlowTruth)> {
        let flows = self.flows.iter();
        flows.filter(move |(key, _)| key.direction == direction)
    }

    /// The text form: directions, paths and flows.
    pub fn text(&self, file: &str) -> String {
        let starts = self.flows.iter();
        let starts = starts.filter_map(|(_, flow)| Some(flow.segments.first()?.first_arrival));
        let first_start = starts.min();
        let sampling_text = match self.every {
            1 => "every packet".to_owned(),
            every => format!("one packet in {every} (what follows counts those)"),
        };
        let time_text = first_start.map_or_else(
            || no_flows_text(self.steps),
            |first_start| {
                format!(
                    "times count from {}",
                    utc(Wall::from_unix_nanos(first_start))
                )
            },
        );
        let mut text = format!(
            "{file}: link '{}', {sampling_text}, {time_text}\n",
            self.link
        );
        let tables = [
            self.directions_table(),
            self.paths_table(),
            self.flows_table(first_start.unwrap_or_default()),
        ];
        let tables = tables.iter().filter(|table| !table.is_empty());
        let tables: Vec<String> = tables.map(Table::text).collect();
        text.push_str(&tables.join("\n"));
        let unassigned: u64 = self.flows.iter().map(|(_, flow)| flow.unassigned).sum();
        if unassigned > 0 {
            text.push_str(&format!(
                "{unassigned} packets stayed longer than the record covers, so their time on a path is unknown\n"
            ));
        }
        text
    }

    /// A row for each direction.
    fn directions_table(&self) -> Table {
        let mut table = Table::new([
            Heading::left("DIRECTION"),
            Heading::right("FLOWS"),
            Heading::right("MOVED"),
            Heading::right("CHANGES"),
            Heading::right("PACKETS"),
            Heading::right("REORDERED"),
        ]);
        for (number, name) in (0..).zip(DIRECTIONS) {
            let sum = |count_of: fn(&FlowTruth) -> u64| -> u64 {
                self.flows_in(number).map(|(_, flow)| count_of(flow)).sum()
            };
            let flows = sum(|_| 1);
            if flows > 0 {
                table.push([
                    name.to_owned(),
                    flows.cell(),
                    sum(|flow| u64::from(flow.path_changes() > 0)).cell(),
                    sum(FlowTruth::path_changes).cell(),
                    sum(FlowTruth::packets).cell(),
                    self.reordered(sum(FlowTruth::reordered)).cell(),
                ]);
            }
        }
        table
    }

    /// A row for each path: its flows, and the flows that left it.
    fn paths_table(&self) -> Table {
        let mut table = Table::new([
            Heading::left("DIRECTION"),
            Heading::right("PATH"),
            Heading::right("FLOWS"),
            Heading::right("PACKETS"),
            Heading::right("LEFT IT"),
        ]);
        for (number, name) in (0..).zip(DIRECTIONS) {
            let mut paths = BTreeMap::<u8, [u64; 3]>::new();
            for (_, flow) in self.flows_in(number) {
                let mut seen_paths = BTreeSet::new();
                for (index, segment) in flow.segments.iter().enumerate() {
                    let [flows, packets, departures] = paths.entry(segment.path).or_default();
                    *flows += u64::from(seen_paths.insert(segment.path));
                    *packets += segment.packets;
                    *departures += u64::from(index + 1 < flow.segments.len());
                }
            }
            for (path, counts) in paths {
                let mut row = vec![name.to_owned(), path.cell()];
                row.extend(counts.map(|count| count.cell()));
                table.push(row);
            }
        }
        table
    }

    /// A row for each flow.
    fn flows_table(&self, start: i64) -> Table {
        let mut table = Table::new([
            Heading::left("FLOW"),
            Heading::right("PROTOCOL"),
            Heading::right("FROM PORT"),
            Heading::right("TO PORT"),
            Heading::right("PACKETS"),
            Heading::right("REORDERED"),
            Heading::right("CHANGES"),
            Heading::left("PATHS, AND SINCE WHEN"),
        ]);
        for (key, flow) in &self.flows {
            table.push([
                direction_name(key.direction).to_owned(),
                key.protocol.cell(),
                key.source_port.cell(),
                key.destination_port.cell(),
                flow.packets().cell(),
                self.reordered(flow.reordered()).cell(),
                flow.path_changes().cell(),
                path_history(flow, start),
            ]);
        }
        table
    }
}

fn no_flows_text(steps: u64) -> String {
    match steps {
        0 => "nothing on record".to_owned(),
        // A record of routers that change the hashing of flows has nothing else.
        steps => format!(
            "no flows: it records {} of a schedule or of routes; the flows of a link are in its \
             LINK.truth",
            counted(steps, "change")
        ),
    }
}

/// Number of segments in a line of text; JSON and CSV have all.
const MAX_SHOWN_SEGMENTS: usize = 6;

fn path_history(flow: &FlowTruth, start: i64) -> String {
    let segments = flow
        .segments
        .iter()
        .take(MAX_SHOWN_SEGMENTS)
        .map(|segment| {
            let start_time = Span::from_nanos(segment.first_arrival.saturating_sub(start));
            format!("{} {start_time}", segment.path)
        });
    let mut segments: Vec<String> = segments.collect();
    if flow.segments.len() > MAX_SHOWN_SEGMENTS {
        segments.push(format!(
            "and {} more",
            flow.segments.len() - MAX_SHOWN_SEGMENTS
        ));
    }
    segments.join(", ")
}
