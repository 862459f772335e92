//! An order to run a reflector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ReflectorSpec, Span};

/// A reflector that runs for a limited time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectorOrder {
    /// Configuration of the reflector.
    pub spec: ReflectorSpec,
    /// Maximum duration.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}
