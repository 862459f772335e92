//! Generated traffic and work: CPUs that hash, TCP that is bulk, requests in turn or small transfers, UDP
//! in frames as a video has them; the throughput of a path, with what limits it; requests and replies in
//! turn, as fast as they go; media streams over RTP, and what a player would have shown of them.
//!
//! Owns the loads, whether they were held, and when they began to work. Says nothing to people: who asks
//! for a load shows what it did.

mod beginning;
mod by_second;
mod conversation;
mod cpu;
mod duty;
mod error;
mod flow;
mod iperf3;
pub mod media;
mod overcommit;
mod pace;
mod pinned;
mod planned;
mod room;
mod stream;
pub mod throughput;
mod transfer;
mod upload;
mod video;

pub use beginning::{Beginning, WORKS};
pub use by_second::LoadSecond;
pub use conversation::{Carried, Subject};
pub use cpu::{CpuLoad, Worked};
pub use duty::HELD;
pub use error::LoadError;
pub use flow::{Bulk, Turns, converse_all};
pub use iperf3::{Iperf3Spec, iperf3};
pub use overcommit::{Overcommit, Place, Work};
pub use pinned::{Asking, TRANSFER_SIZE, TransferSpec, each_transfer, transfers};
pub use planned::{PlannedTransfer, TransferRefused, TransferTerms, Transferred};
pub use room::Room;
pub use stream::{StreamLoad, Streamed};
pub use throughput::rr;
pub use transfer::{Transfer, TransferError, rate_of};
pub use upload::{UploadSpec, upload};
