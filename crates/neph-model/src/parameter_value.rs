//! How the value of a parameter is written and read: as it is displayed, but for times.

use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

use crate::{
    ExpectedStatus, IpVersion, Kilometres, Known, Lifetime, Measure, Pins, Span, Stress,
    TcpStatsWhen, TlsVersion, Unknown,
};

/// The value of a parameter.
pub(crate) trait ParameterValue: Sized {
    /// Its text.
    fn text(&self) -> String;
    /// The value with that text, if there is one.
    fn read(text: &str) -> Option<Self>;
}

macro_rules! as_displayed {
    ($($kind:ty),* $(,)?) => {
        $(impl ParameterValue for $kind {
            fn text(&self) -> String {
                self.to_string()
            }
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}

as_displayed!(
    IpAddr,
    NonZeroU16,
    NonZeroU32,
    bool,
    String,
    ExpectedStatus,
    IpVersion,
    Kilometres,
    Known<TlsVersion>,
    Lifetime,
    Measure,
    Pins,
    Stress,
    TcpStatsWhen,
    Unknown,
);

impl ParameterValue for Span {
    fn text(&self) -> String {
        self.unrounded()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
