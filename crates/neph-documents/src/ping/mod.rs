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

pub use causes::find_causes;
pub use csv::{csv_heading, message_csv};
pub use line::{PingDocument, PingLine};
pub use live::{has_lines, live_heading, message_line};
pub use measured::{FlowTotals, PingResult};
pub use message::{EventDocument, MessageContext, MessageDocument};
pub use planned::{PlannedFlow, PlannedFlows};
pub use second::Second;
pub use summary::{flow_title, summary_text};
pub use summary_csv::summary_csv;
pub use summary_document::PingSummary;
