//! `neph health`: whether a reflector or a controller answers, for health checks of containers and services.

use clap::Args as ClapArgs;
use neph_model::{REFLECT_PORT, Span, Target};
use neph_probe::{Discovery, DiscoveryOptions, Resolve, Trust, discover, now};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::privileges::{Needs, Row, UserChoice};
use crate::resolving;
use crate::value;

/// The path of health checks at a controller; a reflector replies at any path.
const HEALTH_PATH: &str = "/health";

/// Options of `neph health`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// HOST[:PORT] or URL of the neph reflector or controller to check; the default port is 8080
    #[arg(
        value_name = "ADDRESS",
        env = "NEPH_HEALTH",
        default_value = "localhost"
    )]
    address: String,
    /// Time limit for the whole check
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "2s")]
    timeout: Span,
}

/// Sends one request. Exit status 1 unless the reply has a status from 200 to 299.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let targets = parse_targets(&args.address)?;
    Needs::of(&Row::HEALTH).restrict(&UserChoice::default())?;
    let deadline = now() + args.timeout;
    let mut failure_reason = "no answer".to_owned();
    for target in &targets {
        for address in target.addresses(None).map_err(resolving::failure)? {
            let patience = deadline - now();
            if patience <= Span::ZERO {
                break;
            }
            let options = DiscoveryOptions {
                tls_version: None,
                // The check does not verify the server's identity: most certificates are self-signed.
                trust: Trust::AnyCertificate,
                patience,
                site: None,
            };
            let discovery = discover(target, address, &options)?;
            if is_healthy(&discovery) {
                let name = if discovery.reflector {
                    " (a reflector)"
                } else {
                    ""
                };
                output::print_line(&format!("{target} answers{name}"))?;
                return Ok(Outcome::Done);
            }
            failure_reason = unhealthy_reason(&discovery);
        }
    }
    Err(Failure::refused(format!(
        "{}: {failure_reason}",
        args.address
    )))
}

fn is_healthy(discovery: &Discovery) -> bool {
    discovery
        .http
        .is_some_and(|status| (200..300).contains(&status))
}

/// The reason why the server is not healthy.
fn unhealthy_reason(discovery: &Discovery) -> String {
    match (discovery.http, &discovery.silence) {
        (Some(status), _) => format!("it answers with HTTP status {status}"),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "what answers is no HTTP".to_owned(),
    }
}

/// The targets in order. Without a scheme: plain text, then TLS.
fn parse_targets(text: &str) -> Result<Vec<Target>, Failure> {
    let with_scheme = |scheme: &str| Target::with_port(scheme, text, REFLECT_PORT);
    let targets = match text.split_once("://") {
        Some(("http" | "https", _)) => vec![Target::parse(text)],
        Some((scheme @ ("ws" | "wss"), rest)) => {
            let scheme = scheme.replace("ws", "http");
            vec![Target::parse(&format!("{scheme}://{rest}"))]
        }
        Some((scheme, _)) => {
            return Err(Failure::usage(format!(
                "{text}: health is requested over HTTP, not {scheme}; write HOST:PORT, http:// or https://"
            )));
        }
        None => vec![with_scheme("http"), with_scheme("https")],
    };
    let targets: Result<Vec<Target>, _> = targets.into_iter().collect();
    targets
        .map_err(Failure::usage)?
        .into_iter()
        .map(add_health_path)
        .collect()
}

/// Adds the path of health checks to the target, unless the target has a path.
fn add_health_path(target: Target) -> Result<Target, Failure> {
    if target.path() != "/" {
        return Ok(target);
    }
    let url = target.written();
    let text = format!("{}{HEALTH_PATH}", url.trim_end_matches('/'));
    Target::parse(&text).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_urls(text: &str) -> Vec<String> {
        let targets = parse_targets(text).expect("targets");
        targets.iter().map(Target::written).collect()
    }

    #[test]
    fn an_address_without_a_scheme_is_queried_by_http_and_https() {
        let pair = [
            "http://localhost:8080/health",
            "https://localhost:8080/health",
        ];
        assert_eq!(parsed_urls("localhost"), pair);
        let pair = ["http://[::1]:7443/health", "https://[::1]:7443/health"];
        assert_eq!(parsed_urls("[::1]:7443"), pair);
    }

    #[test]
    fn a_url_is_queried_as_written() {
        for (url, requested) in [
            ("http://h:1", "http://h:1/health"),
            ("wss://h:7443", "https://h:7443/health"),
            ("ws://h/", "http://h/health"),
            ("https://h/up?x=1", "https://h/up?x=1"),
        ] {
            assert_eq!(parsed_urls(url), [requested], "{url}");
        }
        for invalid in ["udp://h:1", "http://", "h:0", "h:port"] {
            assert!(
                matches!(parse_targets(invalid), Err(Failure::Usage(_))),
                "{invalid}"
            );
        }
    }
}
