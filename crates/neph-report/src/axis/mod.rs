//! Axes: from values to places, and the ticks that say so. Owns scales, ranges, ticks and their
//! drawing; knows nothing of what is drawn between them.

mod draw;
mod range;
mod scale;
mod tick;

pub(crate) use draw::{Plot, Style};
pub(crate) use range::{Limits, Spread, choose_scale, group_scales};
pub(crate) use scale::{Scale, Spacing};
pub(crate) use tick::{Tick, ticks};
