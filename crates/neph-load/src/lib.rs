//! Background load and throughput: CPU work, TCP bulk, requests in turn, small transfers, UDP with
//! the frame sizes of a video. Throughput tests of a path with its limit, transactions at maximum
//! rate, and RTP media streams with a model of a player.
//!
//! Owns the loads, whether they reached their targets, and when they started to work. Prints
//! nothing: the caller shows the results.

mod by_second;
mod conversation;
mod cpu;
mod durations;
mod duty_cycle;
mod error;
mod flow;
mod iperf3;
mod listen;
pub mod media;
mod overcommit;
mod pace;
mod planned;
mod room;
pub mod service;
mod source_port_transfer;
mod start_counter;
mod stream;
pub mod throughput;
mod transfer;
mod upload;
mod video;
pub mod workload;

pub use by_second::LoadSecond;
pub use conversation::{Carried, Subject};
pub use cpu::{CpuLoad, CpuThreadResult};
pub use durations::{DurationQuantile, Durations};
pub use duty_cycle::HELD;
pub use error::LoadError;
pub use flow::{Bulk, Turns, converse_all};
pub use iperf3::{Iperf3Spec, iperf3};
pub use overcommit::{CpuPlacement, Overcommit, Work};
pub use planned::{PlannedTransfer, TransferRefused, TransferTerms, Transferred};
pub use room::Room;
pub use source_port_transfer::{
    ExchangeFactory, TRANSFER_SIZE, TransferSpec, run_transfers, run_transfers_with,
};
pub use start_counter::{RUNNING_LINE, StartCounter};
pub use stream::{StreamLoad, Streamed};
pub use throughput::rr;
pub use transfer::{TransferError, TransferResult, rate_of};
pub use upload::{UploadSpec, upload};
