//! HTTP/1.1 messages (RFC 9112): heads, bodies, builders and the query parameters of neph.
//!
//! Owns the bytes and the protection against request smuggling: a message whose end is ambiguous is
//! refused. Does not own connections, TLS or routing.

mod body;
mod body_error;
mod build;
mod chunk;
mod head;
mod headers;
mod query;

pub use body::{BodyLength, BodyReader, BodyStep};
pub use body_error::BodyError;
pub(crate) use build::check_text;
pub use build::{Connection, RequestLine, ResponseLine};
pub use head::{
    MAX_HEAD, MAX_RESPONSE_HEAD, MAX_RESPONSE_HEADERS, RequestHead, ResponseHead, parse_request,
    parse_response,
};
pub use headers::{Headers, MAX_HEADERS};
pub use query::{FlowToken, QueryError, flow_token, reply_size};

use thiserror::Error;

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The syntax is broken; the error states where.
    #[error("read http head: {0}")]
    Syntax(httparse::Error),
    /// The head does not end within this many bytes.
    #[error("read http head: longer than {0} bytes")]
    HeadTooLong(usize),
    /// More header lines than this.
    #[error("read http head: more than {0} header lines")]
    TooManyHeaders(usize),
    /// An HTTP/1.1 request needs exactly one Host (RFC 9112 section 3.2).
    #[error("read http head: Host is missing or repeated")]
    Host,
    /// Content-Length is no plain decimal number below 2^63, or two lines differ.
    #[error("read http head: Content-Length is not one plain number")]
    ContentLength,
    /// Both Content-Length and Transfer-Encoding (RFC 9112 section 6.3).
    #[error("read http head: both Content-Length and Transfer-Encoding")]
    TwoLengths,
    /// A transfer coding other than a single `chunked`, or any with HTTP/1.0.
    #[error("read http head: Transfer-Encoding is not just chunked")]
    TransferEncoding,
    /// A text for a head has a control character, a space in the wrong place, or a character
    /// outside of ASCII.
    #[error("write http head: a field holds a character that is not allowed in a head")]
    Text,
}

#[cfg(test)]
mod tests;
