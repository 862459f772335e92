//! `--traceroute`: the routers on the way, before anything is measured.

use std::io::Write;
use std::net::IpAddr;

use neph_model::Traceroute;
use neph_probe::{Stop, Target, TracerouteSpec, traceroute};
use serde_json::json;

use super::flows::Found;
use super::{Args, Format};
use crate::exit::Failure;
use crate::output;

/// Traces and shows the route to `host`, or to the target where `host` is empty.
pub(super) fn trace(args: &Args, host: &str, found: &Found, stop: &Stop) -> Result<(), Failure> {
    let destination = match (host, found.flows.first()) {
        ("", Some(main)) => main.spec.address.ip(),
        _ => resolve(args, host)?,
    };
    let spec = TracerouteSpec::default();
    let route = traceroute(destination, &spec, args.site.as_deref(), stop)
        .map_err(Failure::refused)?
        .into_traceroute(0, host, destination);
    match args.format {
        Format::Ndjson => {
            let line = json!({ "type": "traceroute", "route": route });
            writeln!(output::data(), "{line}")?;
        }
        // Where results go elsewhere or must stay one document, people still see the route.
        Format::Text | Format::Json | Format::Csv => output::say(&text(&route)),
    }
    Ok(())
}

fn resolve(args: &Args, host: &str) -> Result<IpAddr, Failure> {
    let bracketed = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let target = Target::parse(&format!("icmp://{bracketed}")).map_err(Failure::usage)?;
    let address = target.resolve(args.version()).map_err(Failure::refused)?;
    Ok(address.ip())
}

/// One line per hop. Routers answer when they have time: their round trips are upper bounds.
fn text(route: &Traceroute) -> String {
    let mut text = format!("traceroute to {}", route.destination);
    for hop in &route.hops {
        let who: Vec<String> = hop.addresses.iter().map(IpAddr::to_string).collect();
        let who = if who.is_empty() {
            "*".to_owned()
        } else {
            who.join(" ")
        };
        let times: Vec<String> = hop.round_trips.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\n{:>3}  {who}  {}", hop.ttl, times.join("  ")));
    }
    if !route.reached {
        text.push_str("\n     the destination did not answer");
    }
    text
}
