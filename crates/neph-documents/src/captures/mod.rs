//! `neph read` and `neph watch`: flows and exchanges of captures, whole or period by period.

pub mod csv;
pub mod exchanges;
pub mod files;
pub mod flow;
pub mod line;
mod metrics;
pub mod period;
mod period_text;
pub mod row;
pub mod sample;
pub mod summary;
pub mod summary_document;
mod writer;

pub use exchanges::{ExchangeDocument, ExchangeSample};
pub use files::FileDocument;
pub use flow::FlowDocument;
pub use line::{CaptureLine, CapturesDocument, SampleOf};
pub use metrics::{Metrics, Totals};
pub use period::{PeriodLine, PeriodTime, RecentPeriod, RetransmissionCounters};
pub use period_text::{COLUMNS as PERIOD_COLUMNS, row as period_row, sentence as period_sentence};
pub use row::{Rank, Sort, TopLines};
pub use sample::{EventDocument, SampleDocument, Sending};
pub use summary::Summary;
pub use writer::{CaptureWriter, OutputOptions};
