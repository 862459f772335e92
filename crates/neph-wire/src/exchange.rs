//! The client side of one request and reply on a stream.
//!
//! Owns the trait. Code that moves the bytes needs no knowledge of the protocol.

use std::fmt::Debug;

/// The client side of one request and reply.
pub trait Exchange: Debug + Send {
    /// Appends the first bytes on a new connection.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Consumes complete input from the start of `inbox` and appends further output to `out`.
    /// Returns whether the reply is complete.
    ///
    /// # Errors
    /// The peer refuses, closes, or violates the protocol: the reason, in one sentence.
    fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, String>;
    /// The peer closed its side; returns whether that completes the reply.
    fn end(&mut self) -> bool;
}
