//! The diamond: hops from left to right, routers as high as flows take them, paths as ribbons.

use neph_model::{FlowRoute, FlowTrace, Span};

use super::colours::{FAINT, MAX_DISTINGUISHED, class_colour};
use super::labels::{Label, place_labels};
use super::sankey::{Column, Layout, Node, NodeIdentity, Path, Ribbon, paths};
use crate::axis::Style;
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, Weight, fit};
use neph_analysis::data::ExperimentData;
use neph_analysis::numbers::{millis, percent};
use neph_analysis::text::{plural, to_f64};
use neph_analysis::{CampaignData, PlotSettings};

const LEFT: f64 = 30.0;
const RIGHT: f64 = 222.0;
/// How high all flows together are.
const FLOWS_HEIGHT: f64 = 170.0;
/// Between two routers of a hop: room for a name.
const NODE_GAP: f64 = 17.0;
const NODE_WIDTH: f64 = 7.0;

/// A page for each trace of several flows.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut traced: Vec<(&ExperimentData, &FlowTrace)> = data
        .shown(settings)
        .flat_map(|experiment| {
            let traces = experiment.traces.iter();
            traces.map(move |trace| (experiment, trace))
        })
        .filter(|(_, trace)| trace.routes.len() > 1)
        .collect();
    // A trace without any answer has no path to draw: its page would be empty.
    traced.retain(|(_, trace)| !trace.routes.iter().all(FlowRoute::is_unanswered));
    let total = traced.len();
    let pages = traced
        .iter()
        .enumerate()
        .map(|(page, (experiment, trace))| {
            let fleet = experiment.fleet.as_ref();
            let bases = fleet.map(|view| view.latest_bases(trace.destination.ip()));
            let bases = bases.unwrap_or_default();
            let tolerance = fleet.map(|view| view.settings.detection.tolerance);
            let latency_of = |port, traced| latency(bases.get(&port).copied(), traced, tolerance);
            let paths = paths(trace, MAX_DISTINGUISHED, &latency_of);
            let layout = Layout::of(&paths, MAX_DISTINGUISHED);
            let title = page_title("Where paths split", page, total);
            let label = data.label(experiment.scenario);
            let destination = trace.destination.ip();
            let flows = plural(layout.flows, "traced flow");
            let path_count = plural(paths.len(), "path");
            let subtitle = format!("{label}: {flows} to {destination} over {path_count}");
            let mut sheet = Sheet::new(title, &subtitle);
            draw_paths(&mut sheet, &layout, &paths);
            let mut notes = vec![Note::plain(caption(&layout, paths.len()))];
            notes.extend(missing_text(trace).map(Note::plain));
            notes.extend(flags::notes(data, [experiment.scenario], settings));
            sheet.finish("flow-paths", page_name("flow-paths", page, total), &notes)
        });
    pages.collect()
}

/// What the drawing does not hold: flows without a path, and targets.
fn missing_text(trace: &FlowTrace) -> Option<String> {
    let routes = || trace.routes.iter();
    let unanswered = routes().filter(|route| route.is_unanswered()).count();
    let is_short = |route: &FlowRoute| !route.reached() && !route.is_unanswered();
    let mut text = Vec::new();
    if unanswered > 0 {
        let flows = plural(unanswered, "flow");
        text.push(format!(
            "{flows} got no answer from any router: their path is not known and not drawn."
        ));
    }
    if routes().any(is_short) {
        text.push("Paths end with the last router that answered, and without the target if it was not probed or did not answer.".to_owned());
    }
    (!text.is_empty()).then(|| text.join(" "))
}

fn caption(layout: &Layout, paths: usize) -> String {
    let mut text = "Hops from left to right; the height of a router is its share of the flows. Ribbons are paths; those with most flows are coloured, the fastest at the bottom. Right: share of the path, median latency of its flows, and the start of its fingerprint. The latency of a flow is its last base latency if the RTT of the trace agrees with it, else the RTT of the trace. It includes the reverse path, which is not drawn.".to_owned();
    if layout.columns.iter().any(|column| column.skipped > 0) {
        text.push_str(" Consecutive hops that all flows share are omitted; their number is below.");
    }
    let mut nodes = layout.columns.iter().flat_map(|column| &column.nodes);
    if nodes.any(|node| node.identity == NodeIdentity::Silent) {
        text.push_str(" A hop without an answer is a router that does not reply.");
    }
    if paths > MAX_DISTINGUISHED {
        text.push_str(&format!(
            " Grey: the {} paths with fewer flows.",
            paths - MAX_DISTINGUISHED
        ));
    }
    text
}

/// What a message of a flow takes, milliseconds: its latest base latency. Where the trace saw
/// something else, the flow has moved since, and what the trace saw counts.
fn latency(base: Option<Span>, traced: Option<Span>, tolerance: Option<Span>) -> Option<f64> {
    let agree = |base: Span, traced: Span| {
        tolerance.is_some_and(|max| (traced - base) <= max && (base - traced) <= max)
    };
    let latest = match (base, traced) {
        (Some(base), Some(traced)) if !agree(base, traced) => traced,
        (base, traced) => base.or(traced)?,
    };
    Some(latest.millis_f64())
}

fn draw_paths(sheet: &mut Sheet, layout: &Layout, paths: &[Path]) {
    let max = layout.columns.iter().map(|column| column.nodes.len()).max();
    let height = FLOWS_HEIGHT + to_f64(max.unwrap_or(1).saturating_sub(1)) * NODE_GAP;
    let frame = sheet.take(height + 48.0);
    let drawing = Drawing {
        layout,
        coloured_paths: paths.len().min(MAX_DISTINGUISHED),
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 20.0,
            frame.width - LEFT - RIGHT,
            height,
        ),
    };
    let mut marks: Vec<Mark> = layout
        .ribbons
        .iter()
        .flat_map(|ribbon| drawing.ribbon(ribbon))
        .collect();
    let has_names = drawing.names_fit();
    for (index, column) in layout.columns.iter().enumerate() {
        for node in 0..column.nodes.len() {
            let rect = drawing.node(index, node);
            marks.push(Mark::filled(rect, Colour::INK));
            marks.push(drawing.name(index, node, has_names));
        }
        marks.extend(drawing.hop_label(index));
    }
    marks.extend(drawing.labels(paths));
    sheet.draw(marks);
    if !has_names {
        draw_path_list(sheet, layout);
    }
}

struct Drawing<'a> {
    layout: &'a Layout,
    area: Rect,
    /// Paths that have a colour of their own.
    coloured_paths: usize,
}

impl Drawing<'_> {
    /// The fastest path has the colour that the lowest class has in spectra.
    fn colour(&self, rank: usize) -> Colour {
        if rank < self.coloured_paths {
            class_colour(self.coloured_paths - 1 - rank)
        } else {
            FAINT
        }
    }

    fn x(&self, column: usize) -> f64 {
        let steps = to_f64(self.layout.columns.len().max(2) - 1);
        self.area.x + to_f64(column) / steps * self.area.width
    }

    /// Height of this many flows in pixels.
    fn height_of(&self, flows: usize) -> f64 {
        to_f64(flows) / to_f64(self.layout.flows.max(1)) * FLOWS_HEIGHT
    }

    fn node(&self, column: usize, node: usize) -> Rect {
        let nodes = &self.layout.columns[column].nodes;
        let flows = nodes.iter().map(|sibling| sibling.flows).sum();
        let height = self.height_of(flows) + to_f64(nodes.len() - 1) * NODE_GAP;
        let top = self.area.y + (self.area.height - height) / 2.0;
        let this_node = &nodes[node];
        let y = top + self.height_of(this_node.top) + to_f64(node) * NODE_GAP;
        Rect::new(
            self.x(column) - NODE_WIDTH / 2.0,
            y,
            NODE_WIDTH,
            self.height_of(this_node.flows).max(1.0),
        )
    }

    /// Between two nodes, level at both ends.
    fn ribbon(&self, ribbon: &Ribbon) -> [Mark; 2] {
        let from = self.node(ribbon.column, ribbon.nodes.0);
        let to = self.node(ribbon.column + 1, ribbon.nodes.1);
        let ends = (
            from.y + self.height_of(ribbon.within.0),
            to.y + self.height_of(ribbon.within.1),
        );
        let thickness = self.height_of(ribbon.flows).max(0.8);
        let edge = |lower: f64| {
            (0..=16_u32).map(move |step| {
                let share = f64::from(step) / 16.0;
                let eased = share * share * (3.0 - 2.0 * share);
                let x = from.right() + share * (to.x - from.right());
                Point::new(x, ends.0 + eased * (ends.1 - ends.0) + lower)
            })
        };
        let mut points: Vec<Point> = edge(0.0).collect();
        // A line separates neighbours in grey print too.
        let seam = Mark::Line {
            points: points.clone(),
            stroke: Stroke::solid(Colour::WHITE, 0.8),
        };
        points.extend(edge(thickness).rev());
        let fill = Fill {
            colour: self.colour(ribbon.path),
            opacity: 0.75,
        };
        [Mark::Area { points, fill }, seam]
    }

    /// Whether every name fits between its column and the next.
    fn names_fit(&self) -> bool {
        let room = self.x(1) - self.x(0) - 8.0;
        let nodes = self.layout.columns.iter().flat_map(|column| &column.nodes);
        let width = |node| crate::scene::text_width(&name(node), Style::NOTE, Weight::Regular);
        nodes.map(width).all(|text_width| text_width <= room)
    }

    fn name(&self, column: usize, node: usize, has_names: bool) -> Mark {
        let rect = self.node(column, node);
        let this_node = &self.layout.columns[column].nodes[node];
        let text = if has_names || this_node.identity == NodeIdentity::Source {
            name(this_node)
        } else {
            short_name(&self.layout.columns[column], node)
        };
        let at = Point::new(self.x(column), rect.y - 3.5);
        Mark::Text(Text::new(at, Anchor::Middle, Style::NOTE, text))
    }

    /// The distance below a column, and how many hops were left out before it.
    fn hop_label(&self, column: usize) -> Vec<Mark> {
        let this_column = &self.layout.columns[column];
        let faint = |x: f64, text: String| {
            let at = Point::new(x, self.area.bottom() + 20.0);
            let text = Text::new(at, Anchor::Middle, Style::NOTE, text);
            Mark::Text(text.coloured(Colour::FAINT_INK))
        };
        let mut marks = Vec::new();
        if column > 0 {
            marks.push(faint(self.x(column), this_column.ttl.to_string()));
        } else {
            marks.push(faint(self.x(0), "hop".to_owned()));
        }
        if this_column.skipped > 0 {
            let middle = f64::midpoint(self.x(column - 1), self.x(column));
            marks.push(faint(middle, format!("… {} …", this_column.skipped)));
        }
        marks
    }

    fn labels(&self, paths: &[Path]) -> Vec<Mark> {
        let coloured = paths.iter().enumerate().take(MAX_DISTINGUISHED);
        let mut labels: Vec<Label> = coloured
            .filter_map(|(rank, path)| {
                let mut ribbons = self.layout.ribbons.iter();
                let last = ribbons.rfind(|ribbon| ribbon.path == rank)?;
                let node = self.node(last.column + 1, last.nodes.1);
                let y = node.y + self.height_of(last.within.1) + self.height_of(last.flows) / 2.0;
                Some(Label {
                    y,
                    text: path_label(path, self.layout.flows),
                    colour: self.colour(rank),
                })
            })
            .collect();
        let more = paths.len().saturating_sub(MAX_DISTINGUISHED);
        if more > 0 {
            let other_flows: usize = paths[MAX_DISTINGUISHED..]
                .iter()
                .map(|path| path.ports.len())
                .sum();
            labels.push(Label {
                y: self.area.bottom(),
                text: format!(
                    "{} · {more} others",
                    percent(to_f64(other_flows) / to_f64(self.layout.flows))
                ),
                colour: FAINT,
            });
        }
        let ends = (self.area.y, self.area.bottom());
        place_labels(&mut labels, self.area.right() + 34.0, ends)
    }
}

fn path_label(path: &Path, flows: usize) -> String {
    let mut parts = vec![percent(to_f64(path.ports.len()) / to_f64(flows.max(1)))];
    // Traces of a fleet end before the target on purpose: replies show that it is reached.
    match path.latency {
        Some(latency) => parts.push(millis(latency)),
        None if path.reached => {}
        None => parts.push("not reached".to_owned()),
    }
    parts.push(path.hash.chars().take(6).collect());
    parts.join(" · ")
}

fn name(node: &Node) -> String {
    match node.identity {
        NodeIdentity::Source => "here".to_owned(),
        NodeIdentity::Router(address) => address.to_string(),
        NodeIdentity::Silent => "no answer".to_owned(),
        NodeIdentity::Others => "others".to_owned(),
    }
}

/// `5b`: the second router of hop 5.
fn short_name(column: &Column, node: usize) -> String {
    let letter = u8::try_from(node).map_or('z', |node| char::from(b'a' + node.min(25)));
    if column.nodes.len() == 1 {
        column.ttl.to_string()
    } else {
        format!("{}{letter}", column.ttl)
    }
}

/// The addresses behind the short names, in columns below the drawing.
fn draw_path_list(sheet: &mut Sheet, layout: &Layout) {
    let lines: Vec<(String, String)> = layout
        .columns
        .iter()
        .filter(|column| column.ttl > 0)
        .flat_map(|column| {
            let nodes = column.nodes.iter().enumerate();
            nodes.map(|(index, node)| {
                let share = percent(to_f64(node.flows) / to_f64(layout.flows.max(1)));
                let key = short_name(column, index);
                (key, format!("{} · {share}", name(node)))
            })
        })
        .collect();
    for row in lines.chunks(3) {
        let frames = sheet.columns(3, 13.0);
        for ((key, text), frame) in row.iter().zip(frames) {
            let at = Point::new(frame.x, frame.y + 10.0);
            let key = Text::new(at, Anchor::Start, Style::NOTE, key.clone()).semibold();
            let at = Point::new(frame.x + 28.0, frame.y + 10.0);
            let text = fit(text, Style::NOTE, frame.width - 28.0);
            let text = Text::new(at, Anchor::Start, Style::NOTE, text);
            sheet.draw([key, text].map(Mark::Text));
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{PathHash, TraceEnd, TraceKind, Wall};

    use super::*;

    #[test]
    fn a_path_with_a_latency_is_never_reported_as_not_reached() {
        let path = |reached: bool, latency: Option<f64>| Path {
            hops: Vec::new(),
            hash: "ae6b58cccc96a3eb".to_owned(),
            ports: vec![1],
            reached,
            latency,
        };
        let text_of = |reached, latency| path_label(&path(reached, latency), 4);
        assert_eq!(text_of(false, Some(13.1)), "25 % · 13.10 ms · ae6b58");
        assert_eq!(text_of(true, None), "25 % · ae6b58");
        assert_eq!(text_of(false, None), "25 % · not reached · ae6b58");
    }

    #[test]
    fn traces_without_answers_or_target_are_counted() {
        let text_of = |ends: &[TraceEnd]| {
            let route = |end: &TraceEnd| FlowRoute {
                source_port: 1,
                hops: Vec::new(),
                hash: PathHash::of(&[]),
                end: *end,
            };
            missing_text(&FlowTrace {
                destination: ([192, 0, 2, 9], 443).into(),
                kind: TraceKind::Syn,
                started: Wall::from_unix_nanos(0),
                routes: ends.iter().map(route).collect(),
                enough: None,
            })
        };
        assert_eq!(text_of(&[]), None);
        let silent = text_of(&[TraceEnd::Silent; 2]).expect("reported");
        assert!(silent.starts_with("2 flows got no answer"), "{silent}");
        assert!(!silent.contains("without the target"), "{silent}");
    }
}
