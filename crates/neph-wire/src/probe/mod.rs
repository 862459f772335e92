//! Probes that keep their flow: UDP, TCP SYN and ICMP echo whose headers differ only where routers
//! that balance by flow do not look (Paris traceroute, Augustin et al. 2006).
//!
//! Owns the bytes behind the IP header, and reading which probe an ICMP error quotes. Does not own
//! IP headers, which the kernel writes, nor sockets.
//!
//! | probe | the flow | tells probes apart |
//! |---|---|---|
//! | UDP | both ports | the checksum, which two bytes of the payload make what it shall be |
//! | TCP SYN | both ports | the sequence number |
//! | ICMP echo | identifier and checksum | the sequence number, which two bytes of the payload balance |

mod build;
mod quote;

pub use build::{ECHO_LEN, SYN_LEN, balance, echo, mute_syn, syn, udp};
pub use quote::{Label, Quote, QuoteKind, Tag, parse_error};

#[cfg(test)]
mod tests;
