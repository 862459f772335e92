//! Reads `[[link.path]]` tables: the paths of both directions.

use neph_text::{Fault, Fields, FromNode, Node, choice};

use super::features::{DIRECTIONS, read_wire};
use super::is_name;
use super::trace::Traces;
use crate::gate::{PartialWire, Path, ReservedProtocol, Shape, Splitting};

/// Maximum number of paths, limited by the truth record; more than an operator would build.
const MAX_PATHS: usize = 64;
const MAX_WEIGHT: u32 = 1_000;
/// Protocols that a path can be reserved for.
const RESERVED_PROTOCOLS: [(&str, ReservedProtocol); 3] = [
    ("icmp", ReservedProtocol::Icmp),
    ("tcp", ReservedProtocol::Tcp),
    ("udp", ReservedProtocol::Udp),
];

/// A path as in the file: common settings, and those of each direction.
#[derive(Debug)]
pub(super) struct PathSpec {
    pub(super) name: String,
    weight: u32,
    only: Option<ReservedProtocol>,
    shared: PartialWire,
    directions: [PartialWire; 2],
}

impl PathSpec {
    /// The path in a direction (by index); other settings of the wire are those of `shape`.
    fn to_path(&self, shape: &Shape, direction: usize) -> Path {
        let mut wire = shape.wire.clone();
        self.shared.apply(&mut wire);
        self.directions[direction].apply(&mut wire);
        Path {
            name: self.name.clone(),
            weight: self.weight,
            only: self.only,
            wire,
        }
    }
}

/// Adds `paths` to both directions.
pub(super) fn apply_paths(paths: &[PathSpec], shapes: &mut [Shape; 2]) {
    for (direction, shape) in shapes.iter_mut().enumerate() {
        let direction_paths = paths.iter().map(|path| path.to_path(shape, direction));
        shape.paths = direction_paths.collect();
    }
}

/// How the paths of both directions divide the flows.
pub(super) fn read_splitting(link: &mut Fields<'_>, shapes: &mut [Shape; 2]) {
    let splittings = [
        ("ranges", Splitting::Ranges),
        ("modulo", Splitting::Modulo),
        ("rendezvous", Splitting::Rendezvous),
    ];
    let Some(splitting) = link.optional_with("splitting", |node| choice(node, &splittings)) else {
        return;
    };
    if shapes[0].paths.len() < 2 {
        let message = "this link has one path only, so there is nothing to split";
        link.fault(
            splitting.span,
            message,
            "add [[link.path]] twice or drop this",
        );
    }
    for shape in shapes {
        shape.splitting = splitting.value;
    }
}

/// All paths of a link, in the order of the file.
pub(super) fn paths(link: &mut Fields<'_>, traces: &Traces) -> Vec<PathSpec> {
    let mut paths: Vec<PathSpec> = Vec::new();
    for (table, number) in link.tables("path").into_iter().zip(1..) {
        let span = table.span();
        let Some(path) = read_path(table, number, traces) else {
            continue;
        };
        if paths.iter().any(|other| other.name == path.name) {
            let message = format!("two paths of this link are called '{}'", path.name);
            link.fault(span, message, "give one of them another 'name'");
        } else if paths.len() == MAX_PATHS {
            let message = format!("this link has more than {MAX_PATHS} paths");
            link.fault(span, message, "drop some");
        }
        paths.push(path);
    }
    if !paths.is_empty() && paths.iter().all(|path| path.only.is_some()) {
        let message = "every path of this link is reserved, so other packets have none";
        let remedy = "add a [[link.path]] without 'only', or drop one 'only'";
        link.fault(link.span(), message, remedy);
    }
    paths
}

fn read_path(mut table: Fields<'_>, number: usize, traces: &Traces) -> Option<PathSpec> {
    let name = table.optional_with("name", path_name);
    let has_name = name.is_some() || table.entry("name").is_none();
    let path_weight = table.optional_with("weight", weight);
    let only = table.optional_with("only", |node| choice(node, &RESERVED_PROTOCOLS));
    let shared_wire = read_wire(&mut table, traces);
    check_no_link_settings(&mut table);
    let directions = DIRECTIONS.map(|direction| {
        let Some(mut inner) = table.table(direction) else {
            return PartialWire::default();
        };
        let own_wire = read_wire(&mut inner, traces);
        inner.finish();
        own_wire
    });
    table.finish();
    has_name.then(|| PathSpec {
        name: name.map_or_else(|| format!("path{number}"), |name| name.value),
        weight: path_weight.map_or(1, |weight| weight.value),
        only: only.map(|only| only.value),
        shared: shared_wire,
        directions,
    })
}

fn path_name(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if is_name(&text) && text.len() <= 24 {
        return Ok(text);
    }
    let message = format!("'{text}' cannot be a path's name");
    Err(Fault::new(
        message,
        format!("{}, at most 24", super::NAME_REMEDY),
    ))
}

/// Reports settings of a path that only the link can have.
pub(super) fn check_no_link_settings(table: &mut Fields<'_>) {
    for key in ["rate", "queue", "discipline", "mtu"] {
        if let Some(entry) = table.entry(key) {
            let message = format!("a path has no '{key}' of its own: all share the link's");
            table.fault(entry.key_span.clone(), message, "say it of the link");
        }
    }
}

/// A weight from 0 to 1000.
pub(super) fn weight(node: &Node) -> Result<u32, Fault> {
    let weight = u32::from_node(node)?;
    if weight <= MAX_WEIGHT {
        return Ok(weight);
    }
    let remedy = format!("write a whole number from 0 to {MAX_WEIGHT}");
    Err(Fault::new(format!("{weight} is out of range"), remedy))
}
