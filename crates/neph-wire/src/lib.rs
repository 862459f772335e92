//! Parsers and writers of the wire and file formats that Nephoscope uses.
//!
//! Owns: parsing and writing of every external format. Does not own: sockets, clocks, randomness,
//! retries or policy.
//! Every parser is total: it never panics, and its allocations are bounded by its input. Writers
//! append to a `Vec<u8>` of the caller, parsers borrow.

mod bytes;
pub mod capture;
pub mod checksum;
pub mod dissect;
pub mod dns;
pub mod echo;
pub mod exchange;
pub mod filter;
pub mod frame;
pub mod http;
pub mod icmp;
pub mod ip;
pub mod marks;
pub mod mqtt;
pub mod probe;
pub mod rtcp;
pub mod rtp;
pub mod rtsp;
pub mod stamp;
pub mod syn;
pub mod throughput;
pub mod ws;
