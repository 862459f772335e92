//! One side of one exchange on a stream: what is written, and when the reply is whole.
//!
//! Owns the contract. Whoever moves the bytes knows no protocol by it.

use std::fmt::Debug;

/// The asking side of one exchange.
pub trait Exchange: Debug + Send {
    /// Appends what is written first on the fresh connection.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Takes what it understands off the start of `inbox`, and appends to `out` what is to be written
    /// next; whether the reply is whole.
    ///
    /// # Errors
    /// The peer refuses, closes, or breaks the protocol: why, in a sentence.
    fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, String>;
    /// The peer's bytes are over; whether that makes the reply whole.
    fn end(&mut self) -> bool;
}
