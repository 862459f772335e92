//! Output of `neph reflect`: addresses, effective limits and counters.

use std::io::ErrorKind;
use std::net::SocketAddr;

use neph_agent::{RunningService, Service};
use neph_documents::Format;
use neph_documents::reflector::{CertificateDocument, ReflectLine};
use neph_documents::rows::json_line;
use neph_model::{ReflectorCaps, bracketed};
use neph_probe::{Counted, ProbeError, Reflector};
use neph_sys::restrict::AppliedRestrictions;

use crate::exit::Failure;
use crate::{output, privileges};

/// Prints the effective limits if the memory or the limit on open files does not allow the
/// requested ones.
pub(super) fn report_reduced_caps(requested: &ReflectorCaps, fitting: &ReflectorCaps) {
    if fitting != requested {
        output::say(&format!(
            "neph reflect: --max-memory {} and the limit on open files allow {} connections, requests up to \
             {} and replies up to {}",
            requested.memory, fitting.connections, fitting.request_size, fitting.reply_size
        ));
    }
}

/// The address of a service, if it runs.
fn service_address(services: &[RunningService], service: Service) -> Option<String> {
    let listener = services.iter().find(|serving| serving.service() == service);
    listener.map(|serving| serving.address().to_string())
}

/// Shows the addresses, the certificate fingerprint for clients, and the privileges.
pub(super) fn show_start(
    reflector: &Reflector,
    services: &[RunningService],
    restrictions: &AppliedRestrictions,
    format: Format,
) -> Result<(), Failure> {
    let (address, certificate) = (reflector.address(), reflector.certificate());
    if format == Format::Ndjson {
        let certificate = certificate.map(|certificate| CertificateDocument {
            sha256: certificate.fingerprint.to_string(),
            names: certificate.names.clone(),
        });
        let line = ReflectLine::Listening {
            address: address.to_string(),
            throughput: service_address(services, Service::Throughput),
            media: service_address(services, Service::Media),
            service: service_address(services, Service::KnownSpeed),
            certificate,
            privileges: privileges::document(restrictions),
        };
        return Ok(output::print_line(&json_line(&line))?);
    }
    let schemes = match certificate {
        Some(_) => "ws, wss, http, https, tcp and udp (STAMP)",
        None => "ws, http, tcp and udp (STAMP); --tls adds wss and https",
    };
    output::say(&format!("neph reflect: {address} answers {schemes}"));
    for serving in services {
        let address = serving.address();
        let message = match serving.service() {
            Service::Throughput => "throughput tests over TCP and UDP, one at a time",
            Service::Media => "media streams over RTP after RTSP",
            Service::KnownSpeed => "HTTP requests with known service times",
        };
        output::say(&format!("neph reflect: {address} serves {message}"));
    }
    if let Some(certificate) = certificate {
        let names = match &certificate.names[..] {
            [] => String::new(),
            names => format!(" for {}", names.join(", ")),
        };
        output::say(&format!(
            "neph reflect: certificate{names}: SHA-256 {}; clients accept it and no other with --pin",
            certificate.fingerprint
        ));
    }
    output::say(&format!(
        "neph reflect: {}",
        privileges::sentence(restrictions)
    ));
    Ok(())
}

/// Why the reflector cannot start; for port errors with the remedy.
pub(super) fn start_failure(error: ProbeError, address: SocketAddr) -> Failure {
    let remedy = match &error {
        ProbeError::Secret(error) => return Failure::Usage(format!("--stamp-key: {error}")),
        ProbeError::Socket { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => format!(
                "another process listens there: end it, or choose another port with --listen \
                 {}:PORT",
                bracketed(&address.ip().to_string())
            ),
            ErrorKind::PermissionDenied => "choose a port from 1024 on with --listen, or allow \
                                            this one: setcap cap_net_bind_service+ep on neph"
                .to_owned(),
            ErrorKind::AddrNotAvailable => {
                "this host does not have this address: give one of its own with --listen".to_owned()
            }
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    Failure::Refused(format!("{error}; {remedy}"))
}

/// Prints the counters if they changed since the last line.
pub(super) fn report_counters(
    last_counts: &mut Vec<(Counted, u64)>,
    counters: Vec<(Counted, u64)>,
    format: Format,
) -> Result<(), Failure> {
    if *last_counts == counters {
        return Ok(());
    }
    if format == Format::Ndjson {
        let counter_values = counters.iter();
        let counter_values =
            counter_values.map(|(counter, count)| (counter.name().to_owned(), *count));
        let line = ReflectLine::Counted {
            counts: counter_values.collect(),
        };
        output::print_line(&json_line(&line))?;
        *last_counts = counters;
        return Ok(());
    }
    let text: Vec<String> = counters
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(counter, count)| format!("{counter} {count}"))
        .collect();
    if !text.is_empty() {
        output::say(&format!("neph reflect: {}", text.join(", ")));
    }
    *last_counts = counters;
    Ok(())
}
