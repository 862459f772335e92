//! `neph lab verify`: what a topology asks of each link against what the link does.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_lab::{Check, Lab, LinkCheck, UpOptions, verify_link};
use serde_json::Value;

use super::{failure, name_of};
use crate::exit::{Failure, Outcome};
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, topology};

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
    let topology = topology::read(&args.file)?;
    // A name of its own: the same topology may be up for other work.
    let name = format!("v{}", std::process::id());
    let stop = interrupt::stop_on_ctrl_c()?;
    let lab = Lab::up(&topology, &UpOptions::named(name)).map_err(failure)?;
    output::say(&format!(
        "neph lab: measuring {} links of {}, at most 2.5 s each",
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
    out.flush()?;
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

const COLUMNS: [Column; 13] = [
    Column::left("LINK", "link"),
    Column::left("FROM", "from"),
    Column::left("TO", "to"),
    Column::right("DELAY", "delay_asked_ns"),
    Column::right("IS", "delay_median_ns"),
    Column::right("P99", "delay_p99_ns"),
    Column::right("LOSS", "loss_asked"),
    Column::right("IS", "loss_measured"),
    Column::right("RATE", "rate_asked_bits_per_s"),
    Column::right("IS", "rate_measured_bits_per_s"),
    Column::right("QUEUE", "queue_asked_bytes"),
    Column::right("IS", "queue_measured_bytes"),
    Column::left("VERDICT", "ok"),
];

fn sheet(checks: &[LinkCheck]) -> Sheet {
    let mut sheet = Sheet::new(&COLUMNS);
    for check in checks {
        let (delay, loss) = (check.delay, &check.loss);
        let [rate, rate_is] = both(check.rate, |rate| rate.bits_per_second().into());
        let [queue, queue_is] = both(check.queue, |queue| queue.bytes().into());
        let verdict = if check.is_ok() { "ok" } else { "not as asked" };
        let share = f64::from(loss.lost) / f64::from(loss.sent.max(1));
        sheet.rows.push(vec![
            Cell::text(&check.link),
            Cell::text(&check.from),
            Cell::text(&check.to),
            Cell::new(delay.asked.to_string(), delay.asked.nanos()),
            Cell::new(delay.measured.to_string(), delay.measured.nanos()),
            Cell::new(check.delay_p99.to_string(), check.delay_p99.nanos()),
            Cell::new(format!("{:.2} %", loss.asked * 100.0), loss.asked),
            Cell::new(format!("{}/{}", loss.lost, loss.sent), share),
            rate,
            rate_is,
            queue,
            queue_is,
            Cell::new(verdict, check.is_ok()),
        ]);
    }
    sheet
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
