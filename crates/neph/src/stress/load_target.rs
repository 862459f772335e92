//! Target and rate of a load: a reflector, `host[:port]`.

use neph_agent::{PrepareLoadError, ReadyLoad};
use neph_model::{BitRate, LoadOrder, Permit};
use neph_probe::TargetError;

use super::cpu;
use crate::exit::Failure;
use crate::{output, resolving, value};

/// The remedy for a wrong target.
const TARGET_REMEDY: &str = "write host[:port], where neph reflect answers";

/// The given target; refused if it has a scheme.
pub(super) fn parse_target(text: &str) -> Result<String, Failure> {
    if text.contains("://") {
        return Err(Failure::Usage(format!(
            "target '{text}': neph stress takes no scheme, flow uses TCP and stream uses UDP; {TARGET_REMEDY}"
        )));
    }
    Ok(text.to_owned())
}

/// Prepares the load and finds its reflector. Addresses that do not answer are reported.
pub(super) fn prepare_load(order: &LoadOrder) -> Result<ReadyLoad, Failure> {
    let ready_load =
        ReadyLoad::prepare(order, &Permit::ANYTHING).map_err(
            |prepare_error| match prepare_error {
                PrepareLoadError::Target(TargetError::Text(error)) => {
                    Failure::Usage(format!("{error}; {TARGET_REMEDY}"))
                }
                PrepareLoadError::Target(error) => resolving::failure(error),
                PrepareLoadError::LimitExceeded { .. } => Failure::usage(prepare_error),
                PrepareLoadError::Engine(error) => cpu::to_failure(error),
            },
        )?;
    if let Some(remark) = ready_load.remark() {
        output::say(&format!("neph: {remark}"));
    }
    Ok(ready_load)
}

/// The maximum rate: above zero; `None` (`max`) for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaxRate(pub(super) Option<BitRate>);

pub(super) fn parse_max_rate(text: &str) -> Result<MaxRate, String> {
    if text == "max" {
        return Ok(MaxRate(None));
    }
    parse_rate(text).map(|rate| MaxRate(Some(rate)))
}

/// A rate from 1 kbit/s on.
pub(super) fn parse_rate(text: &str) -> Result<BitRate, String> {
    match value::rate(text)? {
        rate if rate.bits_per_second() < 1_000 => Err("write a rate from 1kbit/s".to_owned()),
        rate => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use neph_model::{LoadWork, Span};

    use super::*;

    #[test]
    fn a_target_without_a_port_gets_the_reflectors_default_port() {
        let address = |text: &str| -> Result<SocketAddr, Failure> {
            let rate = BitRate(1_000_000);
            let target = parse_target(text)?;
            let order = LoadOrder {
                work: LoadWork::Stream { to: target, rate },
                duration: Span::ZERO,
            };
            Ok(prepare_load(&order)?.address().expect("it is traffic"))
        };
        let resolved_address = |text: &str| address(text).ok().map(|address| address.to_string());
        assert_eq!(
            resolved_address("127.0.0.1").as_deref(),
            Some("127.0.0.1:8080")
        );
        assert_eq!(
            resolved_address("127.0.0.1:80").as_deref(),
            Some("127.0.0.1:80")
        );
        assert_eq!(resolved_address("[::1]").as_deref(), Some("[::1]:8080"));
        assert_eq!(resolved_address("[::1]:9").as_deref(), Some("[::1]:9"));
        assert!(resolved_address("127.0.0.1:http").is_none());
        for invalid in ["127.0.0.1:http", "udp://127.0.0.1"] {
            let Err(Failure::Usage(reason)) = address(invalid) else {
                panic!("{invalid}")
            };
            assert!(reason.contains(&format!("'{invalid}'")), "{reason}");
            assert!(
                reason.contains("write host[:port]") && !reason.contains("http://"),
                "{reason}"
            );
        }
    }

    #[test]
    fn a_rate_is_a_bit_rate_or_max() {
        assert_eq!(parse_max_rate("max"), Ok(MaxRate(None)));
        assert_eq!(
            parse_max_rate("2Mbit/s"),
            Ok(MaxRate(Some(BitRate(2_000_000))))
        );
        assert!(parse_max_rate("0bit/s").is_err() && parse_max_rate("fast").is_err());
    }
}
