//! The text of a parameter's value: as displayed, except for times.

use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

use crate::{
    ExpectedStatus, IpVersion, Kilometres, Known, Lifetime, Measure, Pins, Span, Stress,
    TcpStatsSchedule, TlsVersion, Unknown,
};

/// The value of a parameter.
pub(crate) trait ParameterValue: Sized {
    /// Its text.
    fn text(&self) -> String;
    /// The value with this text; `None` if there is none.
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
    TcpStatsSchedule,
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
