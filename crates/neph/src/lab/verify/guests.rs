//! Checks of guests in `neph lab verify`: bulk traffic from the host reaches each guest, within the
//! rate limit of its tap.
//!
//! Only the limit is checked: the rate below it depends on this host.

use std::net::SocketAddr;

use neph_documents::lab::{GuestRate, VerifiedLocation, VerifiedRow};
use neph_lab::{Guest, Lab, Topology};
use neph_load::{UploadSpec, upload};
use neph_model::{BitRate, Permit, Span, Stop, Target};

/// Duration of the bulk traffic to each guest.
const TRAFFIC_DURATION: Span = Span::from_secs(3);
/// Tolerance above the limit, percent: the token bucket is full at the start.
const TOLERANCE_PERCENT: u64 = 2;

/// The result of one guest.
#[derive(Debug)]
pub(super) struct GuestCheck {
    host: String,
    guest: String,
    ceiling: Option<BitRate>,
    /// The received traffic, or why there was none.
    received_rate: Result<BitRate, String>,
}

impl GuestCheck {
    pub(super) fn is_ok(&self) -> bool {
        let max_rate = self.ceiling.map(|rate| {
            rate.bits_per_second()
                .saturating_mul(100 + TOLERANCE_PERCENT)
                / 100
        });
        match &self.received_rate {
            Ok(received_rate) => {
                max_rate.is_none_or(|max_rate| received_rate.bits_per_second() <= max_rate)
            }
            Err(_) => false,
        }
    }

    pub(super) fn row(&self) -> VerifiedRow {
        let location = VerifiedLocation {
            link: "tap".to_owned(),
            from: self.host.clone(),
            to: self.guest.clone(),
            path: None,
        };
        let rate = GuestRate {
            ceiling: self.ceiling,
            measured: self.received_rate.as_ref().ok().copied(),
            ok: self.is_ok(),
            verdict: self.verdict(),
        };
        VerifiedRow::guest(location, rate)
    }

    fn verdict(&self) -> String {
        match &self.received_rate {
            Err(reason) => format!("differs from the topology: {reason}"),
            Ok(_) if self.is_ok() => "ok".to_owned(),
            Ok(_) => "differs from the topology: rate".to_owned(),
        }
    }
}

/// The duration of the checks of all guests.
pub(super) fn total_duration(topology: &Topology) -> Span {
    let count = i64::try_from(topology.guests().len()).unwrap_or(i64::MAX);
    TRAFFIC_DURATION.times(count)
}

/// Sends bulk traffic from the host to each guest, in sequence.
pub(super) fn check(lab: &Lab, stop: &Stop) -> Vec<GuestCheck> {
    let guests = lab.topology().guests();
    let guests = guests.iter().take_while(|_| !stop.is_set());
    guests
        .filter_map(|guest| verify_one(lab, guest, stop))
        .collect()
}

fn verify_one(lab: &Lab, guest: &Guest, stop: &Stop) -> Option<GuestCheck> {
    let sites = &lab.topology().sites;
    let site = &sites[guest.site];
    let (host, ip) = (&sites[site.inside?].name, site.addresses().next()?);
    let address = SocketAddr::new(ip, guest.port);
    let measure_rate = || {
        let spec = UploadSpec {
            target: Target::parse(&format!("tcp://{address}"))
                .map_err(|error| error.to_string())?,
            address,
            duration: TRAFFIC_DURATION,
            congestion: None,
            site: Some(lab.placement(host).map_err(|error| error.to_string())?),
            permit: Permit::ANYTHING,
        };
        let transfer = upload(&spec, stop).map_err(|error| error.to_string())?;
        Ok(transfer.goodput)
    };
    Some(GuestCheck {
        host: host.clone(),
        guest: site.name.clone(),
        ceiling: guest.bandwidth,
        received_rate: measure_rate(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exceeded_ceiling_or_no_traffic_is_an_error() {
        let check = |ceiling: Option<u64>, received_rate: Result<u64, &str>| GuestCheck {
            host: "host".to_owned(),
            guest: "vm".to_owned(),
            ceiling: ceiling.map(BitRate),
            received_rate: received_rate.map(BitRate).map_err(str::to_owned),
        };
        assert!(check(None, Ok(1)).is_ok());
        assert!(check(Some(100_000), Ok(50_000)).is_ok());
        assert!(check(Some(100_000), Ok(102_000)).is_ok());
        assert_eq!(
            check(Some(100_000), Ok(103_000)).verdict(),
            "differs from the topology: rate"
        );
        assert!(!check(None, Err("nobody answers")).is_ok());
    }
}
