//! Delay variation as the IETF defines it: RFC 3550's jitter, RFC 5481's PDV and IPDV.
//!
//! All are differences of one-way delays, so a constant clock offset cancels; a drift does not. A peer's
//! timestamps come from outside: differences saturate.

use crate::casts::nanos_to_f64;
use crate::error::StatsError;
use crate::sorted::refuse_fewer;

/// One message's departure and arrival, each in nanoseconds of its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transit {
    /// The sender's timestamp.
    pub sent: i64,
    /// The receiver's timestamp.
    pub received: i64,
}

/// RFC 3550 (6.4.1, A.8) interarrival jitter in nanoseconds after the last of `transits`, which are in order
/// of arrival: J = J + (|D| - J) / 16, from 0. Lost messages are not included.
///
/// Computed in floats, without the rounding of the RFC's integer example.
///
/// # Errors
/// [`StatsError::TooFew`] for fewer than 2 messages.
pub fn interarrival_jitter(transits: &[Transit]) -> Result<f64, StatsError> {
    refuse_fewer("interarrival jitter", 2, transits.len())?;
    Ok(transits.windows(2).fold(0.0, |jitter, w| {
        let apart = w[1].sent.saturating_sub(w[0].sent);
        let difference = w[1]
            .received
            .saturating_sub(w[0].received)
            .saturating_sub(apart);
        jitter + (nanos_to_f64(difference).abs() - jitter) / 16.0
    }))
}

/// RFC 5481 (4.2) packet delay variation: each delay minus the smallest one, in nanoseconds; 0 or more. Lost
/// messages have no delay and are not included.
///
/// # Errors
/// [`StatsError::TooFew`] without a delay.
pub fn pdv(delays: &[i64]) -> Result<Vec<i64>, StatsError> {
    let smallest = delays.iter().min();
    let smallest = *smallest.ok_or(StatsError::TooFew {
        subject: "PDV",
        need: 1,
        have: 0,
    })?;
    Ok(delays
        .iter()
        .map(|delay| delay.saturating_sub(smallest))
        .collect())
}

/// RFC 5481 (4.1) inter-packet delay variation: each delay minus that of the message sent before it, in
/// nanoseconds. `delays` are in order of sending, absent where the message was lost. Both differences of a
/// lost message are absent (RFC 3393, 2.2: undefined), so the result is one shorter than `delays`.
pub fn ipdv(delays: &[Option<i64>]) -> Vec<Option<i64>> {
    delays
        .windows(2)
        .map(|w| Some(w[1]?.saturating_sub(w[0]?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transits(offset: i64) -> Vec<Transit> {
        [(0, 100), (1000, 1116), (2000, 2100)]
            .map(|(sent, received)| Transit {
                sent,
                received: received + offset,
            })
            .to_vec()
    }

    #[test]
    fn jitter_follows_the_rfc_and_ignores_the_offset() {
        // |D| = 16, 16: J = 1, then 1 + 15 / 16.
        assert_eq!(interarrival_jitter(&transits(0)), Ok(1.9375));
        assert_eq!(interarrival_jitter(&transits(-77_777_777)), Ok(1.9375));
        assert!(interarrival_jitter(&transits(0)[..1]).is_err());
    }

    #[test]
    fn pdv_is_relative_to_the_minimum_and_ipdv_to_the_previous_packet() {
        assert_eq!(pdv(&[5, 3, 9]), Ok(vec![2, 0, 6]));
        assert!(pdv(&[]).is_err());
        let delays = [Some(5), Some(3), None, Some(9), Some(10)];
        assert_eq!(ipdv(&delays), [Some(-2), None, None, Some(1)]);
    }
}
