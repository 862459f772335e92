//! A reflector as an order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ReflectorSpec, Span};

/// To answer probes for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorOrder {
    /// Where and how it answers.
    pub spec: ReflectorSpec,
    /// After how long it ends, if nothing ends it before.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}
