//! What `neph lab verify` reports about guests: whether each takes bulk traffic from its host, and no
//! more than the ceiling of its tap.
//!
//! Only the ceiling is judged: the rate below it depends on this machine.

use std::net::SocketAddr;

use neph_documents::lab::{Asked, VerifiedRow, VerifiedWhere};
use neph_lab::{Guest, Lab, Topology};
use neph_load::{UploadSpec, upload};
use neph_model::{BitRate, Permit, Span, Stop, Target};

/// How long bulk goes to each.
const LASTS: Span = Span::from_secs(3);
/// What a ceiling may be exceeded by, percent: its bucket is full in the beginning.
const OVER: u64 = 2;

/// What was found of one guest.
#[derive(Debug)]
pub(super) struct GuestCheck {
    host: String,
    guest: String,
    ceiling: Option<BitRate>,
    /// What it took, or why nothing.
    took: Result<BitRate, String>,
}

impl GuestCheck {
    pub(super) fn is_ok(&self) -> bool {
        let most = self
            .ceiling
            .map(|rate| rate.bits_per_second().saturating_mul(100 + OVER) / 100);
        match &self.took {
            Ok(took) => most.is_none_or(|most| took.bits_per_second() <= most),
            Err(_) => false,
        }
    }

    pub(super) fn row(&self) -> VerifiedRow {
        let place = VerifiedWhere {
            link: "tap".to_owned(),
            from: self.host.clone(),
            to: self.guest.clone(),
            path: None,
        };
        let asked = Asked {
            ceiling: self.ceiling,
            measured: self.took.as_ref().ok().copied(),
            ok: self.is_ok(),
            verdict: self.verdict(),
        };
        VerifiedRow::guest(place, asked)
    }

    fn verdict(&self) -> String {
        match &self.took {
            Err(why) => format!("not as asked: {why}"),
            Ok(_) if self.is_ok() => "ok".to_owned(),
            Ok(_) => "not as asked: rate".to_owned(),
        }
    }
}

/// How long measuring all guests takes.
pub(super) fn takes(topology: &Topology) -> Span {
    let count = i64::try_from(topology.guests().len()).unwrap_or(i64::MAX);
    LASTS.times(count)
}

/// Sends bulk to each guest from its host, one after the other.
pub(super) fn check(lab: &Lab, stop: &Stop) -> Vec<GuestCheck> {
    let guests = lab.topology().guests();
    let guests = guests.iter().take_while(|_| !stop.is_set());
    guests.filter_map(|guest| one(lab, guest, stop)).collect()
}

fn one(lab: &Lab, guest: &Guest, stop: &Stop) -> Option<GuestCheck> {
    let sites = &lab.topology().sites;
    let site = &sites[guest.site];
    let (host, ip) = (&sites[site.inside?].name, site.addresses().next()?);
    let address = SocketAddr::new(ip, guest.port);
    let carried = || {
        let spec = UploadSpec {
            target: Target::parse(&format!("tcp://{address}")).map_err(|e| e.to_string())?,
            address,
            duration: LASTS,
            congestion: None,
            site: Some(lab.place(host).map_err(|e| e.to_string())?),
            permit: Permit::ANYTHING,
        };
        let transfer = upload(&spec, stop).map_err(|e| e.to_string())?;
        Ok(transfer.goodput)
    };
    Some(GuestCheck {
        host: host.clone(),
        guest: site.name.clone(),
        ceiling: guest.bandwidth,
        took: carried(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_the_ceiling_or_nothing_is_wrong() {
        let check = |ceiling: Option<u64>, took: Result<u64, &str>| GuestCheck {
            host: "host".to_owned(),
            guest: "vm".to_owned(),
            ceiling: ceiling.map(BitRate),
            took: took.map(BitRate).map_err(str::to_owned),
        };
        assert!(check(None, Ok(1)).is_ok());
        assert!(check(Some(100_000), Ok(50_000)).is_ok());
        assert!(check(Some(100_000), Ok(102_000)).is_ok());
        assert_eq!(
            check(Some(100_000), Ok(103_000)).verdict(),
            "not as asked: rate"
        );
        assert!(!check(None, Err("nobody answers")).is_ok());
    }
}
