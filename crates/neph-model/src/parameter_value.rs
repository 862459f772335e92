//! How the value of a parameter is written and read: as it is displayed, but for times.

use std::fmt::Display;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use crate::{
    ExpectedStatus, IpVersion, Kilometres, Known, Lifetime, Pins, Span, Stress, TcpStatsWhen,
    TlsVersion, Unknown,
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
                displayed(self)
            }
            fn read(text: &str) -> Option<Self> {
                from_displayed(text)
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
    Pins,
    Stress,
    TcpStatsWhen,
    Unknown,
);

fn displayed(value: &impl Display) -> String {
    value.to_string()
}

fn from_displayed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

impl ParameterValue for Span {
    fn text(&self) -> String {
        self.unrounded()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
