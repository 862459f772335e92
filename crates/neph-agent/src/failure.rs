//! Why an order did not come about.

use std::fmt::Display;

use neph_model::OrderFailed;

pub(crate) fn failed(operation: impl Into<String>, reason: impl Display) -> OrderFailed {
    OrderFailed {
        operation: operation.into(),
        reason: reason.to_string(),
    }
}
