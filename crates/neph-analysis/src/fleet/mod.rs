//! Fleets as reports compare them: pairs, each as one experiment saw it, and over blocks.

mod effect;
mod pair;
mod pooled_pair;
mod setting_inflation;

pub use effect::Effect;
pub use pair::{Pair, pairs, scenarios};
pub use pooled_pair::{PooledPair, flows_and_pairs_text};
pub use setting_inflation::{SOURCE_INFLATION, SettingInflation};
