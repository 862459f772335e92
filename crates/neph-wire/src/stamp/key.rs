//! The shared key of authenticated mode: HMAC-SHA-256, truncated to 16 bytes (RFC 8762 section 4.4).
//!
//! Owns making and checking tags. Does not own where the key comes from.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::StampError;

/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// A shared key, expanded once.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Whether packets carry a tag.
#[derive(Debug, Clone, Copy)]
pub enum Auth<'k> {
    /// 44-byte packets that anybody can make.
    Open,
    /// 112-byte packets, tagged with this key.
    Keyed(&'k Key),
}

impl Key {
    /// Expands a key of any length but none.
    ///
    /// # Errors
    /// [`StampError::EmptyKey`]: an empty key would authenticate everybody.
    pub fn new(secret: &[u8]) -> Result<Self, StampError> {
        if secret.is_empty() {
            return Err(StampError::EmptyKey);
        }
        let mac = Hmac::new_from_slice(secret).map_err(|_| StampError::EmptyKey)?;
        Ok(Self(mac))
    }

    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        let whole = self.mac(parts).finalize().into_bytes();
        *whole.first_chunk().expect("SHA-256 has 32 bytes")
    }

    /// Compares in constant time.
    pub(super) fn verify(&self, parts: &[&[u8]], tag: &[u8]) -> Result<(), StampError> {
        if tag.len() != TAG {
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
