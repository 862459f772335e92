//! `neph read` and `neph watch`: flows and exchanges of captures, whole or period by period.

pub mod csv;
pub mod exchanges;
pub mod files;
pub mod flow;
pub mod period;
mod period_text;
pub mod row;
pub mod summary;

pub use exchanges::{ExchangeDocument, ExchangeSample};
pub use files::FileDocument;
pub use flow::{CaptureLine, CapturesDocument, EventDocument, FlowDocument, SampleDocument};
pub use period::{Lately, PeriodLine, Repairs, Stretch};
pub use period_text::{COLUMNS as PERIOD_COLUMNS, row as period_row, sentence as period_sentence};
pub use row::{First, Rank, Sort};
pub use summary::Summary;
