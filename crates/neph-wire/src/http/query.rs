//! Query parameters of a request to a reflector: `reply=N`, the reply size, and `flow=HEX`, which
//! assigns requests on several connections to one flow.
//!
//! Owns these parameters of a request target; ignores others.

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
    /// Above the limit, of any magnitude.
    #[error("read query: reply exceeds the cap of {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: u64,
    },
    /// More than one value.
    #[error("read query: reply is given more than once")]
    Repeated,
}

/// The requested reply size in bytes, at most `max`; `None` without the parameter.
///
/// # Errors
/// When the parameter is present but not one number within the limit.
pub fn reply_size(target: &str, max: u64) -> Result<Option<u64>, QueryError> {
    let mut requested = values(target, "reply");
    let Some(value) = requested.next() else {
        return Ok(None);
    };
    if requested.next().is_some() {
        return Err(QueryError::Repeated);
    }
    number(value, max).map(Some)
}

/// Identifies the requests of one flow on any connection. The client chooses it at random; on the
/// wire it has 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowToken(pub u64);

impl std::fmt::Display for FlowToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The flow of `target`; `None` without exactly one valid parameter.
pub fn flow_token(target: &str) -> Option<FlowToken> {
    let mut tokens = values(target, "flow");
    let value = tokens.next().filter(|_| tokens.next().is_none())?;
    let is_hex = value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = u64::from_str_radix(value, 16).ok().filter(|_| is_hex)?;
    Some(FlowToken(token))
}

/// The values of parameter `name`, in order.
fn values<'a>(target: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let target = target.split_once('#').map_or(target, |(target, _)| target);
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter_map(move |pair| match pair.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if pair == name => Some(""),
            _ => None,
        })
}

fn number(value: &str, max: u64) -> Result<u64, QueryError> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if value.strip_prefix('-').is_some_and(is_digits) {
        return Err(QueryError::Negative);
    }
    if !is_digits(value) {
        return Err(QueryError::NotANumber);
    }
    // Digits beyond a u64 are a number, too, and too large.
    value
        .parse()
        .ok()
        .filter(|size| *size <= max)
        .ok_or(QueryError::TooLarge { max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_token_has_exactly_one_form_in_the_query() {
        let token = FlowToken(0x0123_4567_89ab_cdef);
        assert_eq!(
            flow_token(&format!("/a?reply=9&flow={token}#x")),
            Some(token)
        );
        for target in [
            "/",
            "/?flow",
            "/?flow=",
            "/?flow=12",
            "/?flow=+123456789abcdef",
            "/?flow=00123456789abcdef",
            "/?flow=0123456789abcdef&flow=0123456789abcdef",
            "/#?flow=0123456789abcdef&",
        ] {
            assert_eq!(flow_token(target), None, "{target}");
        }
    }

    #[test]
    fn the_reply_size_is_read_from_the_query_string() {
        let ask = |target: &str| reply_size(target, 1000);
        assert_eq!(ask("/echo"), Ok(None));
        assert_eq!(ask("/echo?x=1&replying=3"), Ok(None));
        assert_eq!(ask("/echo?x=1&reply=1000#top"), Ok(Some(1000)));
        assert_eq!(ask("/?reply=-5"), Err(QueryError::Negative));
        for text in [
            "/?reply=",
            "/?reply",
            "/?reply=+5",
            "/?reply=1k",
            "/?reply=-",
            "/?reply=%31",
        ] {
            assert_eq!(ask(text), Err(QueryError::NotANumber), "{text}");
        }
        for text in [
            "/?reply=1001",
            "/?reply=10000000000",
            "/?reply=99999999999999999999999999",
        ] {
            assert_eq!(ask(text), Err(QueryError::TooLarge { max: 1000 }), "{text}");
        }
        assert_eq!(ask("/?reply=1&reply=2"), Err(QueryError::Repeated));
    }
}
