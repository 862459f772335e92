//! `neph lab status`: what the services, traffic and links of a lab do right now.

use std::io::Write;

use clap::Args as ClapArgs;
use neph_lab::{DirectionStatus, Lab, LabStatus, RerouteStatus, ServiceStatus, TrafficStatus};
use neph_model::{ByteSize, Span};
use serde_json::json;

use super::enter::which;
use super::failure;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::sheet::{Cell, Column, Format, Sheet};

/// Options of `neph lab status`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The lab, where more than one is up
    lab: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Shape,
}

/// How a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

/// Asks the lab, and writes what it says. A lab of which nothing is left running has no status.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let lab = which(args.lab.as_deref())?;
    let status = Lab::status(&lab.name).map_err(failure)?;
    let (services, traffic, links) = (services(&status), traffic(&status), links(&status));
    let reroutes = reroutes(&status);
    let mut out = output::data();
    match args.format {
        Shape::Text => {
            for sheet in [&services, &traffic, &reroutes] {
                if !sheet.rows.is_empty() {
                    sheet.write(Format::Text, &mut out)?;
                    writeln!(out)?;
                }
            }
            links.write(Format::Text, &mut out)?;
        }
        Shape::Json => {
            let document = json!({
                "lab": lab.name,
                "process": lab.owner,
                "services": services.json(),
                "traffic": traffic.json(),
                "reroutes": reroutes.json(),
                "links": links.json(),
            });
            writeln!(out, "{document:#}")?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn services(status: &LabStatus) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("SERVICE", "service"),
        Column::left("SITE", "site"),
        Column::left("STATE", "state"),
        Column::right("STATUS", "exit_status"),
    ]);
    let row = |service: &ServiceStatus| {
        let status = service.exit_status;
        vec![
            Cell::text(&service.name),
            Cell::text(&service.site),
            Cell::text(&service.state),
            status.map_or_else(Cell::absent, |status| Cell::new(status.to_string(), status)),
        ]
    };
    sheet.rows = status.services.iter().map(row).collect();
    sheet
}

fn traffic(status: &LabStatus) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("TRAFFIC", "traffic"),
        Column::left("NOW", "on"),
        Column::right("RECEIVED", "received_bytes"),
    ]);
    let row = |traffic: &TrafficStatus| {
        let now = if traffic.on { "flows" } else { "rests" };
        vec![
            Cell::text(&traffic.name),
            Cell::new(now, traffic.on),
            Cell::new(ByteSize(traffic.received).to_string(), traffic.received),
        ]
    };
    sheet.rows = status.traffic.iter().map(row).collect();
    sheet
}

/// What changes at routers: entries are counted from 0, as in the topology.
fn reroutes(status: &LabStatus) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("REROUTE", "entry"),
        Column::left("SITE", "site"),
        Column::left("LINK", "link"),
        Column::left("NOW", "holds"),
        Column::right("TIMES", "times"),
        Column::right("LAST AFTER THE CUE", "last_ns"),
        Column::right("REFUSED", "refused"),
    ]);
    let row = |(entry, reroute): (u64, &RerouteStatus)| {
        let now = if reroute.holds { "holds" } else { "rests" };
        let last = reroute.last_ns.map_or_else(Cell::absent, |last| {
            Cell::new(Span::from_nanos(last).to_string(), last)
        });
        vec![
            Cell::count(entry),
            Cell::text(&reroute.site),
            Cell::known(reroute.link.as_deref().unwrap_or_default()),
            Cell::new(now, reroute.holds),
            Cell::count(reroute.times),
            last,
            Cell::count(reroute.refused),
        ]
    };
    sheet.rows = (0..).zip(&status.reroutes).map(row).collect();
    sheet
}

fn links(status: &LabStatus) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("LINK", "link"),
        Column::left("FROM", "from"),
        Column::left("TO", "to"),
        Column::right("DELIVERED", "delivered"),
        Column::right("LOST", "lost"),
        Column::right("QUEUE FULL", "queue_full"),
        Column::right("BROKEN", "broken"),
        Column::right("LATE", "late"),
        Column::right("WORST", "worst_lateness_ns"),
        Column::left("FOOTING", "footing"),
    ]);
    sheet.rows = status.links.iter().map(direction).collect();
    sheet
}

fn direction(status: &DirectionStatus) -> Vec<Cell> {
    let names = [&status.link, &status.from, &status.to].map(Cell::text);
    let counted = match status.counts {
        // The kernel carries it and counts for itself.
        None => vec![Cell::absent(); 7],
        Some(counts) => {
            let worst = counts.worst_lateness_ns;
            let footing = match (counts.real_time, counts.locked) {
                (true, true) => "real-time",
                (true, false) => "real-time, memory not locked",
                (false, _) => "ordinary priority",
            };
            let mut cells = [
                counts.delivered,
                counts.lost,
                counts.queue_full,
                counts.broken,
                counts.late,
            ]
            .map(Cell::count)
            .to_vec();
            cells.push(Cell::new(Span::from_nanos(worst).to_string(), worst));
            cells.push(Cell::text(footing));
            cells
        }
    };
    names.into_iter().chain(counted).collect()
}
