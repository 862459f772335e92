//! What the two ends of a throughput test send each other.
//!
//! Control: one JSON object a line on a TCP connection ([`ClientMessage`], [`ServerMessage`],
//! [`Lines`]). Data: TCP connections that begin with a [`Preamble`], and UDP datagrams that begin with
//! a [`Header`]. One port serves all three: a line begins with `{`, a preamble with [`Preamble::MAGIC`].

mod datagram;
mod interval;
mod line;
mod message;
mod preamble;
mod token;

#[cfg(test)]
mod tests;

pub use datagram::{Content, Header, HeaderError};
pub use interval::{
    CoreShare, CpuInterval, ReceivedInterval, SentInterval, StreamVariation, TcpCounters,
    UdpCounters, Variation,
};
pub use line::{LONGEST_LINE, LineError, Lines, encode_line};
pub use message::{
    Ask, AskError, ClientMessage, Direction, Intervals, Protocol, ServerMessage, VERSION,
};
pub use preamble::Preamble;
pub use token::Token;
