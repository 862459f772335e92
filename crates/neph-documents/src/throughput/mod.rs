//! `neph throughput`: what both ends counted, second by second, and what limited the rate.

mod direction;
mod document;
mod second;
mod stream;
mod text;

pub use direction::{
    DirectionDocument, TcpDocument, UdpDocument, UsageDocument, VariationDocument,
};
pub use document::{ServedLine, ThroughputDocument, ThroughputLine};
pub use second::SecondRow;
pub use stream::{CoreDocument, CpuSecondDocument, EndDocument, ReceivedDocument, SentDocument};
pub use text::{heading, second_line, summary};
