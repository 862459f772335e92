//! User name and password in a URL: sent where the protocol sends them, and never shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// User name and password of a URL. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub user: Vec<u8>,
    /// The password, if there is a colon before it.
    pub password: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// `user:password`, percent-decoded.
    pub(crate) fn read(text: &str) -> Self {
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(percent_decoded(password))),
            None => (text, None),
        };
        Self {
            user: percent_decoded(user),
            password,
        }
    }

    /// The value of an Authorization header, as HTTP's Basic scheme has it (RFC 7617).
    pub(crate) fn header(&self) -> String {
        let mut credentials = self.user.clone();
        if let Some(password) = &self.password {
            credentials.push(b':');
            credentials.extend(password);
        }
        format!("Basic {}", STANDARD.encode(credentials))
    }
}

/// A target's text without the part before `@`: it may contain a password.
pub fn without_credentials(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let (scheme, remaining) = text.split_at(start);
    let end = remaining.find(['/', '?', '#']).unwrap_or(remaining.len());
    match remaining[..end].rfind('@') {
        Some(at) => format!("{scheme}{}", &remaining[at + 1..]),
        None => text.to_owned(),
    }
}

/// A text of many lines with the credentials of every URL replaced by stars, byte by byte, so that
/// positions are unchanged.
pub fn mask_credentials(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some(at) = remaining.find("://") {
        let (before, after) = remaining.split_at(at + 3);
        masked.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'');
        let end = after.find(ends).unwrap_or(after.len());
        let hidden = after[..end].rfind('@').unwrap_or(0);
        masked.push_str(&"*".repeat(hidden));
        remaining = &after[hidden..];
    }
    masked.push_str(remaining);
    masked
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if *byte == b'%' => {
                decoded.push(code);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_encoded_as_http_basic_auth_and_never_displayed() {
        let read = Credentials::read("us%65r:s%40cret");
        assert_eq!(read.header(), "Basic dXNlcjpzQGNyZXQ=");
        assert_eq!(format!("{read:?}"), "Credentials");
        for (text, shown) in [
            ("https://u:p@h:1/a?b", "https://h:1/a?b"),
            ("u:p@h", "h"),
            ("https://u:p@ss@h/x@y", "https://h/x@y"),
            ("https://h/x@y", "https://h/x@y"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
        let plan = "url = \"https://me:s\u{e9}cret@h/\"\n# ws://h and a@b\n";
        let masked = mask_credentials(plan);
        assert_eq!(
            masked,
            "url = \"https://**********@h/\"\n# ws://h and a@b\n"
        );
        assert_eq!(masked.len(), plan.len());
    }
}
