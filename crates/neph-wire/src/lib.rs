//! Bytes to meaning and back: the formats that Nephoscope speaks and reads.
//!
//! Owns: parsing and writing of every outside format. Does not own: sockets, clocks, randomness,
//! retries or policy. Every parser is total: it never panics, and never allocates more than its
//! input justifies. Writers append to a `Vec<u8>` that the caller keeps, parsers borrow.

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
