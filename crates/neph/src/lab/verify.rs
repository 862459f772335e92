//! `neph lab verify`: what a topology asks of each link against what the link does.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_lab::{Check, DelayCheck, Lab, LinkCheck, LossCheck, UpOptions, verify_link};
use neph_model::Span;
use serde_json::Value;

use super::{dead, failure, name_of, predict};
use crate::exit::{Failure, Outcome};
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, topology};

/// Labs that are verified are called by this and the number of their process.
const PURPOSE: &str = "v";

/// Options of `neph lab verify`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The topology file
    file: PathBuf,
    /// How to write the table
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Brings the lab up, measures, takes it down, and judges.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut topology = topology::read(&args.file)?;
    // Whatever else uses a link would disturb what is measured.
    topology.traffic.clear();
    // A name of its own: the same topology may be up for other work.
    dead::clear(PURPOSE);
    let stop = interrupt::stop_on_ctrl_c()?;
    let options = UpOptions {
        stop: stop.flag(),
        ..UpOptions::named(dead::own_name(PURPOSE))
    };
    let lab = Lab::up(&topology, &options).map_err(failure)?;
    output::say(&format!(
        "neph lab: measuring {} links of {}, 1 to 6 s each",
        topology.links.len(),
        name_of(None, &args.file)
    ));
    let mut checks = Vec::new();
    for link in 0..topology.links.len() {
        if stop.is_set() {
            break;
        }
        checks.extend(verify_link(&lab, link).map_err(failure)?);
    }
    lab.down().map_err(failure)?;
    let mut out = output::data();
    sheet(&checks).write(args.format, &mut out)?;
    if args.format == Format::Text {
        out.write_all(predict::below_verify(&topology).as_bytes())?;
    }
    out.flush()?;
    let late = checks.iter().filter(|check| check.is_late()).count();
    if late > 0 {
        output::say(&format!(
            "neph lab: {late} of {} directions sent more than one packet in a hundred on late, or lost \
             some of their own: this machine was too busy, and an experiment on them would be flagged",
            checks.len()
        ));
    }
    let wrong = checks.iter().filter(|check| !check.is_ok()).count();
    Ok(match (stop.is_set(), wrong) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Done,
        (false, wrong) => {
            output::say(&format!(
                "neph lab: {wrong} of {} directions do not do as asked",
                checks.len()
            ));
            Outcome::Nothing
        }
    })
}

const COLUMNS: [Column; 18] = [
    Column::left("LINK", "link"),
    Column::left("FROM", "from"),
    Column::left("TO", "to"),
    Column::left("PATH", "path"),
    Column::right("DELAY", "delay_asked_ns"),
    Column::right("IS", "delay_median_ns"),
    Column::right("P99", "delay_p99_asked_ns"),
    Column::right("IS", "delay_p99_ns"),
    Column::right("JITTER OFF", "jitter_distance"),
    Column::right("AT MOST", "jitter_allowed"),
    Column::right("LOSS", "loss_asked"),
    Column::right("IS", "loss_measured"),
    Column::right("RATE", "rate_asked_bits_per_s"),
    Column::right("IS", "rate_measured_bits_per_s"),
    Column::right("QUEUE", "queue_asked_bytes"),
    Column::right("IS", "queue_measured_bytes"),
    Column::right("LATE", "late_packets"),
    Column::left("VERDICT", "ok"),
];

fn sheet(checks: &[LinkCheck]) -> Sheet {
    let mut sheet = Sheet::new(&COLUMNS);
    for check in checks {
        let mut row = vec![
            Cell::text(&check.link),
            Cell::text(&check.from),
            Cell::text(&check.to),
            check.path.as_ref().map_or_else(Cell::absent, Cell::text),
        ];
        row.extend(delays(&check.delay));
        row.extend(losses(&check.loss));
        row.extend(both(check.rate, |rate| rate.bits_per_second().into()));
        row.extend(both(check.queue, |queue| queue.bytes().into()));
        row.push(
            check
                .late
                .map_or_else(Cell::absent, |late| Cell::count(late.late)),
        );
        row.push(Cell::new(verdict(check), check.is_ok()));
        sheet.rows.push(row);
    }
    sheet
}

fn delays(delay: &DelayCheck) -> [Cell; 6] {
    let cell = |span: Span| Cell::new(span.to_string(), span.nanos());
    let share = |share: f64| Cell::new(format!("{share:.3}"), share);
    let known = |span: Option<Span>| span.map_or_else(Cell::absent, cell);
    let jitter = delay.jitter;
    [
        cell(delay.asked.median),
        known(delay.measured.map(|is| is.median)),
        cell(delay.asked.p99),
        known(delay.measured.map(|is| is.p99)),
        jitter.map_or_else(Cell::absent, |jitter| share(jitter.distance)),
        jitter.map_or_else(Cell::absent, |jitter| share(jitter.allowed)),
    ]
}

fn losses(loss: &LossCheck) -> [Cell; 2] {
    let share = f64::from(loss.lost) / f64::from(loss.sent.max(1));
    [
        Cell::new(format!("{:.2} %", loss.asked * 100.0), loss.asked),
        Cell::new(format!("{}/{}", loss.lost, loss.sent), share),
    ]
}

/// `ok`, or what is not.
fn verdict(check: &LinkCheck) -> String {
    let parts = [
        ("delay", check.delay.ok || check.delay.jitter.is_some()),
        ("jitter", check.delay.ok || check.delay.jitter.is_none()),
        ("loss", check.loss.ok),
        ("rate", check.rate.is_none_or(|rate| rate.ok)),
        ("queue", check.queue.is_none_or(|queue| queue.ok)),
    ];
    let wrong: Vec<&str> = parts
        .iter()
        .filter_map(|(what, ok)| (!ok).then_some(*what))
        .collect();
    let verdict = match wrong.as_slice() {
        [] => "ok".to_owned(),
        wrong => format!("not as asked: {}", wrong.join(", ")),
    };
    if check.is_late() {
        verdict + ", but late"
    } else {
        verdict
    }
}

/// Asked and measured; absent where nothing was asked.
fn both<T: Copy + Display>(check: Option<Check<T>>, number: impl Fn(T) -> Value) -> [Cell; 2] {
    match check {
        None => [Cell::absent(), Cell::absent()],
        Some(check) => {
            [check.asked, check.measured].map(|value| Cell::new(value.to_string(), number(value)))
        }
    }
}
