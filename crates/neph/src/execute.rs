//! `neph execute -`: carries out an order that another neph wrote, read from standard input as JSON.
//!
//! Owns the reading. An order is checked by the same types that wrote it; what each does is its own
//! command's.

use std::io::{self, Read};

use clap::Args as ClapArgs;
use neph_model::Order;

use crate::exit::{Failure, Outcome};
use crate::stress;

/// The longest order, bytes.
const LONGEST: u64 = 1 << 20;

/// Options of `neph execute`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Where the order is: - is standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    from: String,
}

/// Reads the order and carries it out.
pub(crate) fn run(_args: &Args) -> Result<Outcome, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| Failure::refused(format!("read the order: {error}")))?;
    match order(&text)? {
        Order::Load(order) => stress::carry_out(&order),
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
        let Err(Failure::Usage(told)) = order("{\"load\": 1}") else {
            panic!("it is none")
        };
        assert!(told.contains("line 1 column"), "{told}");
    }
}
