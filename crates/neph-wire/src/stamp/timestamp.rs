//! STAMP's two timestamp formats and the error estimate (RFC 8762 section 4.2.1).
//!
//! Owns the conversion to and from Unix nanoseconds, exact in both directions. Does not own clocks,
//! leap seconds or the offset between TAI and UTC. A PTP timestamp has the seconds of the Unix
//! clock, because a host without PTP hardware does not know that offset. The error estimate's Z bit
//! identifies the format, not the time scale.

use super::StampError;

/// Seconds from 1900 (NTP) to 1970 (Unix).
const NTP_TO_UNIX: i64 = 2_208_988_800;
const NANOS: i64 = 1_000_000_000;

/// The format of a timestamp's 64 bits; the Z bit of the error estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// NTP: 32 bits of seconds since 1900, 32 bits of fraction.
    Ntp,
    /// Truncated `PTPv2`: 32 bits of seconds since 1970, 32 bits of nanoseconds.
    Ptp,
}

/// A timestamp in packet form; its meaning depends on a [`Format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp(pub u64);

/// The error bound of the sender's clock.
///
/// The error is `multiplier` x 2^`scale` x 2^-32 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// The S bit: the clock is synchronised to an external source.
    pub synchronized: bool,
    /// The Z bit: the format of the timestamps in the packet.
    pub format: Format,
    /// 0-63.
    pub scale: u8,
    /// 1-255; 0 is not valid and is refused when read.
    pub multiplier: u8,
}

impl Timestamp {
    /// From nanoseconds since 1970 (UTC as Unix counts it).
    ///
    /// # Errors
    /// [`StampError::TimeRange`] outside of the format's range: NTP 1968-01-20 to 2104-02-26 (the
    /// highest bit selects the era, RFC 4330 section 3), PTP 1970 to 2106.
    pub fn from_unix(nanos: i64, format: Format) -> Result<Self, StampError> {
        let (seconds, subsecond_nanos) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
        let outside = |_| StampError::TimeRange(nanos);
        let (seconds, low) = match format {
            Format::Ptp => (u32::try_from(seconds).map_err(outside)?, subsecond_nanos),
            Format::Ntp => {
                let since_1968 = seconds + NTP_TO_UNIX - (1 << 31);
                let since_1968 = u32::try_from(since_1968).map_err(outside)?;
                (
                    since_1968.wrapping_add(1 << 31),
                    nanos_to_fraction(subsecond_nanos),
                )
            }
        };
        Ok(Self(u64::from(seconds) << 32 | low.cast_unsigned()))
    }

    /// To nanoseconds since 1970 (UTC as Unix counts it).
    ///
    /// # Errors
    /// [`StampError::Nanoseconds`] when the low half of a PTP timestamp is 10^9 or more.
    pub fn to_unix(self, format: Format) -> Result<i64, StampError> {
        let low = (self.0 & 0xffff_ffff).cast_signed();
        let seconds = self.0 >> 32;
        match format {
            Format::Ptp if low >= NANOS => Err(StampError::Nanoseconds(low)),
            Format::Ptp => Ok(seconds.cast_signed() * NANOS + low),
            Format::Ntp => {
                // Highest bit clear: the era that starts in 2036.
                let era = if seconds >> 31 == 0 { 1 << 32 } else { 0 };
                let seconds = seconds.cast_signed() + era - NTP_TO_UNIX;
                Ok(seconds * NANOS + fraction_to_nanos(low))
            }
        }
    }
}

/// Rounded to the nearest 2^-32 s (0.23 ns), so that rounding back gives the same nanosecond.
fn nanos_to_fraction(nanos: i64) -> i64 {
    ((nanos << 32) + NANOS / 2) / NANOS
}

/// Rounded to the nearest nanosecond; the last fractions round up to a whole second.
fn fraction_to_nanos(fraction: i64) -> i64 {
    (fraction * NANOS + (1 << 31)) >> 32
}

impl ErrorEstimate {
    /// An estimate of at least `nanos` (not less than 1 ns), and at most 1 % above. The clock
    /// counts as not synchronised: set the field if it is.
    pub fn from_nanos(nanos: u64, format: Format) -> Self {
        let mut units = ((u128::from(nanos.max(1)) << 32).div_ceil(1_000_000_000)).max(1);
        let mut scale = 0;
        while units > 255 {
            units = units.div_ceil(2);
            scale += 1;
        }
        let multiplier = (units & 0xff) as u8;
        Self {
            synchronized: false,
            format,
            scale,
            multiplier,
        }
    }

    /// The error in nanoseconds, rounded up, at most `u64::MAX`.
    pub fn nanos(self) -> u64 {
        let units = u128::from(self.multiplier) << self.scale;
        let nanos = units.saturating_mul(1_000_000_000).div_ceil(1 << 32);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    pub(super) fn to_wire(self) -> u16 {
        let synchronized = if self.synchronized { 1 << 15 } else { 0 };
        let format = if self.format == Format::Ptp {
            1 << 14
        } else {
            0
        };
        let scale = u16::from(self.scale.min(63)) << 8;
        synchronized | format | scale | u16::from(self.multiplier)
    }

    pub(super) fn from_wire(wire: u16) -> Result<Self, StampError> {
        let [high, multiplier] = wire.to_be_bytes();
        if multiplier == 0 {
            return Err(StampError::Multiplier);
        }
        let format = if high & 0x40 == 0 {
            Format::Ntp
        } else {
            Format::Ptp
        };
        Ok(Self {
            synchronized: high & 0x80 != 0,
            format,
            scale: high & 0x3f,
            multiplier,
        })
    }
}
