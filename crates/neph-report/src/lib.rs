//! From measurements to words, figures and tables.
//!
//! Owns what a report says and how it looks: findings (sentences from data), figures (marks, not
//! pixels), tables and the page that joins them. Measures nothing, stores nothing and calculates no
//! statistics of its own: those are `neph-stats`. Everything here is a pure function of a
//! [`CampaignData`] and [`PlotSettings`], except [`load`] and [`write_report`].

mod axis;
mod data;
mod figure;
mod load;
mod palette;
mod scene;
mod settings;

pub use data::{CampaignData, Exchange, ExperimentData, FlowData};
pub use figure::{FIGURES, Figure, FigureKind, draw};
pub use load::{Include, load};
pub use scene::{
    Anchor, Colour, FONT_FAMILY, Fill, Mark, PngError, Point, Rect, Scene, Stroke, Text, Turn,
    Weight, pdf, png, svg,
};
pub use settings::{Basis, Equalization, PlotSettings, Tail};
