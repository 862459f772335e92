//! The SHA-256 fingerprint of a certificate, as `openssl x509 -fingerprint -sha256` prints it.
//!
//! Owns its text. What is trusted by it is neph-probe's.

use std::fmt;
use std::str::FromStr;

const BYTES: usize = 32;

/// SHA-256 of a certificate's DER bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; BYTES]);

impl Fingerprint {
    /// The fingerprint with these bytes.
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }
}

/// A text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no SHA-256 fingerprint: write its 64 hexadecimal digits, with or without colons (openssl \
     x509 -noout -fingerprint -sha256 -in CERT.pem prints them)"
)]
pub struct InvalidFingerprint(String);

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    /// 64 hexadecimal digits of either case, or 32 pairs of them with colons between; the words
    /// that openssl and neph reflect print before them may stay.
    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let invalid = || InvalidFingerprint(text.to_owned());
        let digits = text.trim();
        let digits = digits
            .rsplit_once('=')
            .map_or(digits, |(_, remaining)| remaining);
        let pairs: Vec<&str> = if digits.contains(':') {
            digits.split(':').collect()
        } else if digits.is_ascii() {
            let starts = (0..digits.len()).step_by(2);
            starts
                .map(|at| digits.get(at..at + 2).unwrap_or_default())
                .collect()
        } else {
            return Err(invalid());
        };
        let byte = |pair: &&str| {
            let is_pair = pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_pair.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for Fingerprint {
    /// Upper case with colons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

/// Fingerprints of which one must be the certificate's; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins(Vec<Fingerprint>);

impl Pins {
    /// These fingerprints; `None` if there are none.
    pub fn new(fingerprints: Vec<Fingerprint>) -> Option<Self> {
        (!fingerprints.is_empty()).then_some(Self(fingerprints))
    }

    /// In the order in which they were written.
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.0
    }
}

/// With commas between.
impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&texts.join(","))
    }
}

impl FromStr for Pins {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let fingerprints: Result<Vec<_>, _> = text.split(',').map(str::parse).collect();
        fingerprints.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of nothing (FIPS 180-4 examples).
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn all_spellings_of_a_fingerprint_are_the_same() {
        let of_nothing: Fingerprint = OF_NOTHING.parse().expect("a fingerprint");
        let shown = of_nothing.to_string();
        assert!(shown.starts_with("E3:B0:C4:42:"), "{shown}");
        for spelling in [
            OF_NOTHING.to_owned(),
            OF_NOTHING.to_uppercase(),
            shown.clone(),
            shown.to_lowercase(),
            format!(" {shown}\n"),
            format!("sha256 Fingerprint={shown}"),
        ] {
            assert_eq!(spelling.parse(), Ok(of_nothing), "{spelling}");
        }
    }

    #[test]
    fn invalid_fingerprints_are_refused() {
        for invalid in [
            "",
            "e3b0",
            &OF_NOTHING[1..],
            &format!("{OF_NOTHING}00"),
            &OF_NOTHING.replace('e', "g"),
            &OF_NOTHING.replace('e', "+"),
            "e3:b0:c4:42",
            &format!("{}é", &OF_NOTHING[2..]),
        ] {
            let refused: Result<Fingerprint, _> = invalid.parse();
            assert_eq!(refused, Err(InvalidFingerprint(invalid.to_owned())));
        }
    }

    #[test]
    fn several_fingerprints_have_commas_between() {
        let text = format!("{OF_NOTHING},{}", "ab".repeat(32));
        let pins: Pins = text.parse().expect("two");
        assert_eq!(pins.fingerprints().len(), 2);
        assert_eq!(pins.to_string().parse(), Ok(pins));
        assert!("".parse::<Pins>().is_err() && "ab,".parse::<Pins>().is_err());
    }
}
