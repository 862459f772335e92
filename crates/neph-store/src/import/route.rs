//! Reads the traceroute output that a Latency Tester's client writes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use neph_model::{Hop, Span, Traceroute, Wall};

use super::decimal::parse_scaled;
use super::file_name::FileName;
use super::lines::Lines;
use super::report::ImportReport;
use crate::StoreError;

/// Start of the first line.
pub(super) const FIRST_LINE_PREFIX: &str = "traceroute to ";

/// One file: one route.
#[derive(Clone, Debug)]
pub(super) struct RouteFile {
    /// The parsed file name, which is that of its step.
    pub(super) name: FileName,
    destination: IpAddr,
    hops: Vec<Hop>,
}

impl RouteFile {
    pub(super) fn read(path: &Path, report: &mut ImportReport) -> Result<Self, StoreError> {
        // The file has no extension, and the name of the step may contain dots.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".txt").unwrap_or(&name);
        let step = name
            .strip_prefix("traceroute_")
            .or_else(|| name.strip_suffix("_traceroute"));
        let mut file = Self {
            name: FileName::parse(step.unwrap_or(name)),
            destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            hops: Vec::new(),
        };
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            if let Some(header) = line.text.strip_prefix(FIRST_LINE_PREFIX) {
                let address = text_between(header, '(', ')').and_then(|text| text.parse().ok());
                file.destination = address.unwrap_or(file.destination);
            } else if !line.text.is_empty() {
                match parse_hop(&line.text) {
                    Some(hop) => file.hops.push(hop),
                    None => report.add_problem(path, Some(line.number), "no hop: left out"),
                }
            }
        }
        Ok(file)
    }

    /// Its block.
    pub(super) fn block(&self) -> u32 {
        self.name.run.unwrap_or(1).saturating_sub(1)
    }

    /// The route to `endpoint`, traced before its step began.
    pub(super) fn into_traceroute(self, endpoint: String, began_unix_ns: i64) -> Traceroute {
        let last_hop = self.hops.last();
        Traceroute {
            block: self.block(),
            endpoint,
            site: None,
            destination: self.destination,
            started: Wall::from_unix_nanos(began_unix_ns),
            reached: last_hop.is_some_and(|hop| hop.addresses.contains(&self.destination)),
            failure: self
                .hops
                .is_empty()
                .then(|| "traceroute reported no hop".to_owned()),
            hops: self.hops,
        }
    }
}

fn text_between(text: &str, open: char, close: char) -> Option<&str> {
    text.split_once(open)?
        .1
        .split_once(close)
        .map(|(enclosed, _)| enclosed)
}

/// ` 3  gate (10.0.0.1)  1.1 ms  1.0 ms other (10.0.0.2)  2.0 ms`, with or without names. `*` is a
/// probe without a reply; a time may be followed by `!H` and others.
fn parse_hop(text: &str) -> Option<Hop> {
    let mut fields = text.split_whitespace().peekable();
    let mut hop = Hop {
        ttl: fields.next()?.parse().ok().filter(|ttl| *ttl > 0)?,
        addresses: Vec::new(),
        round_trips: Vec::new(),
    };
    fields.peek()?;
    while let Some(field) = fields.next() {
        if fields.peek() == Some(&"ms") {
            let nanos = parse_scaled(field, 6).filter(|nanos| *nanos >= 0)?;
            hop.round_trips.push(Span::from_nanos(nanos));
        } else if let Ok(address) = field.trim_matches(['(', ')']).parse()
            && !hop.addresses.contains(&address)
        {
            hop.addresses.push(address);
        }
    }
    Some(hop)
}
