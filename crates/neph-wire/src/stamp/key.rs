//! The key of authenticated mode: HMAC-SHA-256, truncated to 16 bytes (RFC 8762 section 4.4).
//!
//! Owns computing and verifying tags. Does not own the source of the key.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::StampError;

/// Length of a tag, bytes.
pub(super) const TAG_LEN: usize = 16;

/// An expanded shared key.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Whether packets carry a tag.
#[derive(Debug, Clone, Copy)]
pub enum Auth<'k> {
    /// 44-byte packets without authentication.
    Open,
    /// 112-byte packets with a tag of this key.
    Keyed(&'k Key),
}

impl Key {
    /// Expands a key of at least one byte.
    ///
    /// # Errors
    /// [`StampError::EmptyKey`]: an empty key would authenticate every sender.
    pub fn new(secret: &[u8]) -> Result<Self, StampError> {
        if secret.is_empty() {
            return Err(StampError::EmptyKey);
        }
        let mac = Hmac::new_from_slice(secret).map_err(|_| StampError::EmptyKey)?;
        Ok(Self(mac))
    }

    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let digest = self.mac(parts).finalize().into_bytes();
        *digest.first_chunk().expect("SHA-256 has 32 bytes")
    }

    /// Compares a tag in constant time.
    pub(super) fn verify(&self, parts: &[&[u8]], tag: &[u8]) -> Result<(), StampError> {
        if tag.len() != TAG_LEN {
            return Err(StampError::Tag);
        }
        self.mac(parts)
            .verify_truncated_left(tag)
            .map_err(|_| StampError::Tag)
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}
