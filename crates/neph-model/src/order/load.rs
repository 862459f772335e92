//! A load as an order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LoadSpec, Span};

/// A load to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// What it is.
    pub load: LoadSpec,
    /// After how long it ends, if nothing ends it before.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}
