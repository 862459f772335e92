//! `neph execute -`: carries out an order from another neph process, read from standard input as JSON.
//!
//! Owns the input, and the output lines: one JSON object per update, the result last. The same
//! types write and check an order.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_agent::{JournallingExecutor, LocalExecutor};
use neph_model::{Executor, Order, Span, Update};

use crate::exit::{Failure, Outcome};
use crate::{interrupt, output, stress, watch};

/// Interval of checks for ctrl-C.
const POLL_TIMEOUT: Span = Span::from_millis(50);
/// The longest order, bytes.
const MAX_ORDER_BYTES: u64 = 1 << 20;

/// Options of `neph execute`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Source of the order: - is standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    from: String,
    /// Keep journals of the experiments in this folder, for a store [default: results on standard
    /// output only]
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
}

/// Reads the order and carries it out.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut text = String::new();
    let result = io::stdin()
        .lock()
        .take(MAX_ORDER_BYTES)
        .read_to_string(&mut text);
    result.map_err(|error| Failure::refused(format!("read the order: {error}")))?;
    match parse_order(&text)? {
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

/// Carries out a measurement and writes its updates. Ctrl-C cancels the measurement; its results so
/// far are still written.
fn carry_out(executor: &mut dyn Executor, order: Order) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let ticket = executor.submit(order);
    loop {
        if stop.is_set() {
            executor.cancel(ticket);
        }
        for (_, update) in executor.poll(POLL_TIMEOUT).map_err(Failure::refused)? {
            output::print_line(&serde_json::to_string(&update).map_err(Failure::refused)?)?;
            match update {
                Update::Done(_) if stop.is_set() => return Ok(Outcome::Interrupted),
                Update::Done(Ok(_)) => return Ok(Outcome::Done),
                Update::Done(Err(_)) => return Ok(Outcome::Nothing),
                _ => {}
            }
        }
    }
}

fn parse_order(text: &str) -> Result<Order, Failure> {
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
    fn an_invalid_order_is_a_usage_error_with_its_position() {
        let Err(Failure::Usage(message)) = parse_order("{\"load\": 1}") else {
            panic!("it is none")
        };
        assert!(message.contains("line 1 column"), "{message}");
    }
}
