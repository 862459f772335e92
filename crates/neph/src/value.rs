//! Parsers of option values.

use std::net::IpAddr;

pub(crate) use neph_campaign::option_value::{
    certificate_name, listen_address, memory_size, positive_span, rate, size, span,
};
use neph_model::{CpuShare, SecretSource};
use neph_probe::Secret;
use neph_text::parse_percent;

/// `80%` or `80`: a share from 1 % to 100 %, as a number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    cpu_share(text).map(|share| share.in_percent() / 100.0)
}

/// `80%` or `80`: a share of a core's time, from 1 % to 100 %.
pub(crate) fn cpu_share(text: &str) -> Result<CpuShare, String> {
    let percent = match text.parse() {
        Ok(percent) => percent,
        Err(_) => parse_percent(text).unwrap_or(f64::NAN),
    };
    CpuShare::percent(percent).ok_or_else(|| "write a share from 1% to 100%".to_owned())
}

/// A count, at least 1.
pub(crate) fn positive_count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("write a whole number, at least 1".to_owned()),
    }
}

/// A maximum number of flows, at least 1.
pub(crate) fn flows(text: &str) -> Result<usize, String> {
    let flows = positive_count(text)?;
    usize::try_from(flows).map_err(|error| error.to_string())
}

/// The address of one host, as in packets: an IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) becomes
/// IPv4.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    let address: Result<IpAddr, _> = text.parse();
    let split_at = |by| text.split_once(by);
    address.map(|address| address.to_canonical()).map_err(|_| {
        match (split_at('/'), split_at('%')) {
            (Some((host, length)), _) => {
                format!(
                    "no network is taken; write the address of one host: {host} without /{length}"
                )
            }
            (None, Some((host, zone))) => {
                format!("packets have addresses without an interface; write {host} without %{zone}")
            }
            (None, None) => {
                format!("names are not accepted; write the address (getent hosts {text})")
            }
        }
    })
}

/// A port from 1 to 65535.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a port from 1 to 65535".to_owned()),
        Ok(port) => Ok(port),
    }
}

/// The source of a secret: `file:PATH` or `env:NAME`.
pub(crate) fn secret_source(text: &str) -> Result<SecretSource, String> {
    text.parse()
        .map_err(|error: neph_model::BareSecret| error.to_string())
}

/// The secret in `file:PATH` or `env:NAME`.
pub(crate) fn secret(source: &str) -> Result<Secret, String> {
    Secret::find(source).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_from_one_percent_to_a_hundred() {
        assert!(
            [share("80%"), share("80")]
                .iter()
                .all(|share| *share == Ok(0.8))
        );
        assert!(share("0").is_err() && share("101%").is_err() && share("x").is_err());
    }
}
