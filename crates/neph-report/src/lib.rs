//! From measurements to words, figures and tables.
//!
//! Owns what a report says and how it looks: findings (sentences from data), figures (marks, not
//! pixels), tables and the page that joins them. Measures nothing, stores nothing and calculates no
//! statistics of its own: those are `neph-stats`. Everything here is a pure function of a
//! [`CampaignData`] and [`PlotSettings`], except [`load()`], [`write_report`] and [`write_figures`].

mod axis;
mod clock_time;
mod data;
mod diagnosis;
mod error;
mod figure;
mod findings;
mod load;
mod page;
mod palette;
mod scene;
mod settings;
mod shortened;
mod table;
mod text;
mod write;

pub use data::{CampaignData, Exchange, ExperimentData, FlowData, read_fleet};
pub use diagnosis::{
    Blind, Confidence, Diagnoses, Diagnosis, Evidence, Level, Note, RULES, Rule, Seen, diagnose,
    diagnoses_in_brief, diagnoses_in_full,
};
pub use error::ReportError;
pub use figure::{
    ClockDrawing, ClockLine, ClockMoment, ClockSet, FIGURES, Figure, FigureKind, HopsDelay,
    HopsDrawing, HopsPacket, HopsProtocol, HopsWay, clock_course, draw, hops,
};
pub use findings::{
    Finding, FindingKind, LEAST_SHARE, blocks_to_compare, comparisons, findings, spread,
};
pub use load::{Include, LoadError, fleet_view, load};
pub use scene::{
    Anchor, Colour, FONT_FAMILY, Fill, Mark, PngError, Point, Rect, Scene, Stroke, Text, Turn,
    Weight, pdf, png, svg,
};
pub use settings::{Basis, Equalization, Margin, PlotSettings, Tail};
pub use table::{
    Cell, Column, Layer, LossCell, QuantileCell, SummaryRow, Table, Unit, summary, tables,
};
pub use text::{conclusion, text};
pub use write::{check_folder, write_figures, write_report};
