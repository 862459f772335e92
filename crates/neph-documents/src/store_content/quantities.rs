//! The results of a transfer, as `neph list` and `neph show` write them.

use neph_model::{Quantities, Quantity};

crate::rows! {
    /// A result of a transfer.
    pub struct QuantityRow {
        /// Name of the quantity, with its unit.
        quantity: Quantity => left "QUANTITY" by |row| row.quantity.properties().title.to_owned(),
        /// The value, in that unit.
        value: f64 => right "VALUE" by |row| row.quantity.to_text(row.value),
    }
}

impl QuantityRow {
    /// One row per quantity of a transfer; none for messages.
    pub fn of_results(results: Option<&Quantities>) -> Vec<Self> {
        let values = results.iter().flat_map(|results| &results.values);
        let row = |(&quantity, &value): (&Quantity, &f64)| Self { quantity, value };
        values.map(row).collect()
    }
}
