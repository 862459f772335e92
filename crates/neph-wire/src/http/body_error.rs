//! Owns the reasons for which a body is refused.

use thiserror::Error;

/// Why a body is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// More bytes than the limit; reported on the announcement where there is one.
    #[error("read http body: {length} bytes exceed the cap of {max}")]
    TooLong {
        /// Bytes announced so far.
        length: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A chunk size that is no hexadecimal number, or at least 2^63.
    #[error("read http body: chunk size is not a number")]
    ChunkSize,
    /// A chunk, its size line or the trailer without CR LF at its end.
    #[error("read http body: chunk does not end with CR LF")]
    ChunkEnd,
    /// A chunk extension beyond 256 bytes or a trailer beyond 16 KiB.
    #[error("read http body: chunk extension or trailer too long")]
    Trailer,
    /// The connection ended within the body.
    #[error("read http body: connection ended inside the body")]
    Truncated,
}
