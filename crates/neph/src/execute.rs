//! `neph execute -`: carries out an order that another neph wrote, read from standard input as JSON.
//!
//! Owns the reading, and the lines on standard output: an update each, as JSON, the result last. An order
//! is checked by the same types that wrote it.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_agent::{JournallingExecutor, LocalExecutor};
use neph_model::{Executor, Order, Span, Update};

use crate::exit::{Failure, Outcome};
use crate::{interrupt, output, stress, watch};

/// How long nothing is waited for before ctrl-C is looked for again.
const PATIENCE: Span = Span::from_millis(50);
/// The longest order, bytes.
const LONGEST: u64 = 1 << 20;

/// Options of `neph execute`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Where the order is: - is standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    from: String,
    /// Keep journals of what experiments measure in this folder, which a store takes in; without, what is
    /// on standard output is all there is
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Reads the order and carries it out.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| Failure::refused(format!("read the order: {error}")))?;
    match order(&text)? {
        Order::Load(order) => stress::carry_out(&order),
        Order::Capture(order) => watch::carry_out(&order),
        order => match &args.journal {
            None => carry_out(&mut LocalExecutor::new(), order),
            Some(folder) => {
                fs::create_dir_all(folder).map_err(|error| {
                    Failure::refused(format!("make the folder {}: {error}", folder.display()))
                })?;
                let local = LocalExecutor::new();
                carry_out(&mut JournallingExecutor::new(local, folder.clone()), order)
            }
        },
    }
}

/// Carries out what measures, and writes down what it reports. Ctrl-C cancels it: what was measured is
/// reported all the same.
fn carry_out(executor: &mut dyn Executor, order: Order) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let ticket = executor.submit(order);
    loop {
        if stop.is_set() {
            executor.cancel(ticket);
        }
        for (_, update) in executor.poll(PATIENCE).map_err(Failure::refused)? {
            output::line(&serde_json::to_string(&update).map_err(Failure::refused)?)?;
            match update {
                Update::Done(_) if stop.is_set() => return Ok(Outcome::Interrupted),
                Update::Done(Ok(_)) => return Ok(Outcome::Done),
                Update::Done(Err(_)) => return Ok(Outcome::Nothing),
                _ => {}
            }
        }
    }
}

fn order(text: &str) -> Result<Order, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::Usage(format!(
            "standard input holds no order: {error}; neph run writes one, of the same version"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_order_is_a_usage_error_with_its_place() {
        let Err(Failure::Usage(reported)) = order("{\"load\": 1}") else {
            panic!("it is none")
        };
        assert!(reported.contains("line 1 column"), "{reported}");
    }
}
