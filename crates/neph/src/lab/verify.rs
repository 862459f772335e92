//! `neph lab verify`: what a topology asks of each link against what the link does, and of each guest.

mod guests;

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_lab::{
    Check, DelayCheck, Lab, LinkCheck, LossCheck, NotMet, Reserved, Topology, UpOptions, Verified,
    verification_takes, verify_until,
};
use neph_model::Span;
use serde_json::Value;

use guests::GuestCheck;

use super::{dead, failure, name_of, predict, tell_stand_ins};
use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, topology};
use neph_text::counted::counted;

/// Labs that are verified are called by this and the number of their process.
const PURPOSE: &str = "v";

/// Options of `neph lab verify`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The topology file
    file: PathBuf,
    #[command(flatten)]
    approval: Approval,
    /// How to write the table
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Brings the lab up, measures, takes it down, and judges.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut topology = topology::read(&args.file)?;
    args.approval
        .ask(&args.file.display().to_string(), [&topology])?;
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
    tell_stand_ins(&lab);
    output::say(&format!(
        "neph lab: measuring {} of {}, {}",
        what(&topology),
        name_of(None, &args.file),
        takes(&topology)
    ));
    let mut links = Vec::new();
    for link in 0..topology.links.len() {
        if stop.is_set() {
            break;
        }
        links.push(verify_until(&lab, link, &stop.flag()).map_err(failure)?);
    }
    let guests = guests::check(&lab, &stop);
    lab.down().map_err(failure)?;
    let mut out = output::data();
    let mut sheet = sheet(&links);
    sheet.rows.extend(guests.iter().map(GuestCheck::row));
    sheet.write(args.format, &mut out)?;
    if args.format == Format::Text {
        out.write_all(predict::below_verify(&topology).as_bytes())?;
    }
    out.flush()?;
    let checks: Vec<&LinkCheck> = links.iter().flat_map(|link| &link.checks).collect();
    let late = checks.iter().filter(|check| check.is_late()).count();
    if late > 0 {
        output::say(&format!(
            "neph lab: {late} of {} directions sent more than one packet in a hundred on late, or lost \
             some of their own: this machine was too busy, and an experiment on them would be flagged",
            checks.len()
        ));
    }
    let links = checks.iter().map(|check| check.is_ok());
    let all = links.chain(guests.iter().map(GuestCheck::is_ok));
    let all: Vec<bool> = all.collect();
    let wrong = all.iter().filter(|ok| !**ok).count();
    Ok(match (stop.is_set(), wrong) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Done,
        (false, wrong) => {
            output::say(&format!(
                "neph lab: {wrong} of {} directions do not do as asked",
                all.len()
            ));
            Outcome::Nothing
        }
    })
}

/// What is measured, in words.
fn what(topology: &Topology) -> String {
    let links = counted(topology.links.len() as u64, "link");
    match topology.guests().len() {
        0 => links,
        guests => format!("{links} and {}", counted(guests as u64, "guest")),
    }
}

/// How long measuring all takes, in words.
fn takes(topology: &Topology) -> String {
    let links = topology.links.iter().map(verification_takes);
    let all = links.fold(guests::takes(topology), |sum, span| sum + span);
    let seconds = all.nanos().div_euclid(Span::from_secs(1).nanos()) + 1;
    let long = match seconds {
        ..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60 + 1),
    };
    format!(
        "at most {long} and twice that where links do not do as asked or their rate cannot be told"
    )
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

fn sheet(links: &[Verified]) -> Sheet {
    let mut sheet = Sheet::new(&COLUMNS);
    for link in links {
        sheet.rows.extend(link.checks.iter().map(row));
        sheet.rows.extend(link.not_met.iter().map(not_met));
    }
    sheet
}

fn row(check: &LinkCheck) -> Vec<Cell> {
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
    row
}

/// A path that is in the topology and was not measured: nothing is known but why.
fn not_met(path: &NotMet) -> Vec<Cell> {
    let mut row = [&path.link, &path.from, &path.to, &path.path]
        .map(Cell::text)
        .to_vec();
    row.resize(COLUMNS.len() - 1, Cell::absent());
    let why = match path.only {
        Some(Reserved::Icmp) => "it is for ICMP only".to_owned(),
        Some(Reserved::Tcp) => "it is for TCP only".to_owned(),
        _ => format!("weight {}", path.weight),
    };
    let told = format!("not met: no flow of verify's took it ({why})");
    row.push(Cell::new(told, serde_json::Value::Null));
    row
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
