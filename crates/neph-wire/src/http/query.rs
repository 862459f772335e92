//! The query parameter `reply=N`: the reply size that a client asks for.
//!
//! Owns this one parameter of a request target; others are passed over.

use thiserror::Error;

/// Why a reply size is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum QueryError {
    /// Below zero.
    #[error("read query: reply is negative")]
    Negative,
    /// Not a decimal number.
    #[error("read query: reply is not a number of bytes")]
    NotANumber,
    /// Beyond the cap, however far.
    #[error("read query: reply exceeds the cap of {max} bytes")]
    TooLarge {
        /// The cap in bytes.
        max: u64,
    },
    /// Given twice.
    #[error("read query: reply is given more than once")]
    Repeated,
}

/// The bytes of reply that `target` asks for, at most `max`; `None` when it does not say.
///
/// # Errors
/// When the parameter is there and is not one number within the cap.
pub fn reply_size(target: &str, max: u64) -> Result<Option<u64>, QueryError> {
    let Some((_, query)) = target.split_once('?') else {
        return Ok(None);
    };
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let mut asked = query
        .split('&')
        .filter_map(|pair| match pair.split_once('=') {
            Some(("reply", value)) => Some(value),
            None if pair == "reply" => Some(""),
            _ => None,
        });
    let Some(value) = asked.next() else {
        return Ok(None);
    };
    if asked.next().is_some() {
        return Err(QueryError::Repeated);
    }
    number(value, max).map(Some)
}

fn number(value: &str, max: u64) -> Result<u64, QueryError> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if value.strip_prefix('-').is_some_and(is_digits) {
        return Err(QueryError::Negative);
    }
    if !is_digits(value) {
        return Err(QueryError::NotANumber);
    }
    // Digits that do not fit a u64 are a number all the same, and too large.
    value
        .parse()
        .ok()
        .filter(|size| *size <= max)
        .ok_or(QueryError::TooLarge { max })
}
