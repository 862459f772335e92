//! Why an order did not come about.

use std::fmt::Display;

use neph_model::OrderFailed;
use neph_probe::TargetError;

pub(crate) fn failed(operation: impl Into<String>, reason: impl Display) -> OrderFailed {
    OrderFailed::new(operation, reason)
}

/// A target that was not found. One that a policy forbids is not tried again.
pub(crate) fn not_found(operation: impl Into<String>, error: &TargetError) -> OrderFailed {
    let is_forbidden = matches!(error, TargetError::Forbidden { .. });
    OrderFailed::new(operation, error).permanent_if(is_forbidden)
}
