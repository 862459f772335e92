//! `neph ping`: messages, events and the summary of one or more flows.

mod answers;
mod causes;
mod columns;
mod csv;
mod entries;
pub mod line;
mod live;
mod measured;
mod merged;
pub mod message;
mod planned;
mod retransmissions;
mod second;
mod summary;
mod summary_csv;
pub mod summary_document;

pub use causes::causes;
pub use csv::{csv, csv_heading};
pub use line::{PingDocument, PingLine};
pub use live::{has_lines, heading, line};
pub use measured::{FlowMeasured, PingResult};
pub use message::{EventDocument, MessageDocument, MessageOf};
pub use planned::{Planned, PlannedFlows};
pub use second::Second;
pub use summary::{text, title};
pub use summary_csv::summary_csv;
pub use summary_document::PingSummary;
