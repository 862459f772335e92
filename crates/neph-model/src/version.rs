//! Versions of protocols that can be chosen: each has one text, for plans, command lines, stores
//! and JSON.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! versions {
    (
        $(#[$about:meta])* $name:ident {
            $($(#[$about_one:meta])* $variant:ident = $text:literal,)*
        }
        $(#[$about_error:meta])* $error:ident
    ) => {
        $(#[$about])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum $name {
            $($(#[$about_one])* #[serde(rename = $text)] $variant,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$variant => $text,)*
                })
            }
        }

        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        $(#[$about_error])*
        pub struct $error(String);

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err($error(text.to_owned())),
                }
            }
        }
    };
}

versions! {
    /// A version of the internet protocol.
    IpVersion {
        /// IPv4 (RFC 791).
        V4 = "4",
        /// IPv6 (RFC 8200).
        V6 = "6",
    }
    /// A text that is neither `4` nor `6`.
    #[error("'{0}' is no version of IP: write 4 or 6")]
    NoIpVersion
}

versions! {
    /// A version of TLS.
    TlsVersion {
        /// TLS 1.2 (RFC 5246).
        V12 = "1.2",
        /// TLS 1.3 (RFC 8446).
        V13 = "1.3",
    }
    /// A text that is neither `1.2` nor `1.3`.
    #[error("'{0}' is no version of TLS that can be chosen: write 1.2 or 1.3")]
    NoTlsVersion
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its text, its JSON and back.
    fn holds<T>(version: &T, text: &str)
    where
        T: fmt::Debug + fmt::Display + FromStr + PartialEq + Serialize + for<'a> Deserialize<'a>,
    {
        assert_eq!(version.to_string(), text);
        assert_eq!(text.parse().ok().as_ref(), Some(version));
        let json = serde_json::to_string(version).expect("plain data");
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(&serde_json::from_str::<T>(&json).expect("read"), version);
    }

    #[test]
    fn a_version_has_one_canonical_text() {
        holds(&IpVersion::V4, "4");
        holds(&IpVersion::V6, "6");
        holds(&TlsVersion::V12, "1.2");
        holds(&TlsVersion::V13, "1.3");
        let wrong = "1.1".parse::<TlsVersion>().expect_err("too old");
        assert!(wrong.to_string().contains("write 1.2 or 1.3"), "{wrong}");
        let wrong = "5".parse::<IpVersion>().expect_err("a stream protocol");
        assert!(wrong.to_string().contains("write 4 or 6"), "{wrong}");
    }
}
