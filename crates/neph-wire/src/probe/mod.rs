//! Probes that keep their flow: UDP, TCP SYN and ICMP echo. Their headers differ only in fields
//! that routers do not use for load balancing (Paris traceroute, Augustin et al. 2006).
//!
//! Owns the bytes after the IP header, and the identification of the probe that an ICMP error
//! quotes. Does not own IP headers, which the kernel writes, nor sockets.
//!
//! | probe | flow | identifies the probe |
//! |---|---|---|
//! | UDP | both ports | the checksum, set by two bytes of the payload |
//! | TCP SYN | both ports | the sequence number |
//! | ICMP echo | identifier and checksum | the sequence number; two payload bytes balance it |

mod build;
mod quote;

pub use build::{ECHO_LEN, SYN_LEN, echo, mute_syn, set_balancing_bytes, syn, udp};
pub use quote::{Label, Quote, QuoteKind, Tag, parse_error};

#[cfg(test)]
mod tests;
