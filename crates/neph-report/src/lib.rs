//! From an analysis to figures and a page.
//!
//! Owns how a report looks: figures (marks, not pixels), the page that joins them with sentences and
//! tables, and the same as text. `neph-analysis` owns the results. Everything here is a pure function of a
//! [`CampaignData`](neph_analysis::CampaignData) and
//! [`PlotSettings`](neph_analysis::PlotSettings), except [`write_report`] and [`write_figures`].

mod axis;
mod causes_text;
mod error;
mod figure;
mod figures_folder;
mod page;
mod palette;
mod scene;
mod shorten;
mod text;
mod write;

pub use causes_text::{diagnoses_in_brief, diagnoses_in_full};
pub use error::ReportError;
pub use figure::{
    ClockDrawing, ClockLine, ClockMoment, ClockStepPeriod, FIGURES, Figure, FigureKind, HopsDelay,
    HopsDrawing, HopsPacket, HopsProtocol, clock_course, clocks_of_captures,
    clocks_on_a_connection, draw, hops, passages,
};
pub use figures_folder::check_figures;
pub use scene::{
    Anchor, Colour, FONT_FAMILY, Fill, Mark, PngError, Point, Rect, Scene, Stroke, Text,
    TextDirection, Weight, pdf, png, svg,
};
pub use text::{conclusion, text};
pub use write::{check_folder, write_figures, write_report};
