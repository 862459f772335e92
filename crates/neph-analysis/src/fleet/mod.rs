//! Fleets as reports compare them: pairs, each as one experiment saw it, and over blocks.

mod effect;
mod inflated;
mod pair;
mod pooled;

pub use effect::Effect;
pub use inflated::{Inflated, SOURCE};
pub use pair::{Pair, pairs, scenarios};
pub use pooled::{Pooled, counted};
