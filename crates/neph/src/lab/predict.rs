//! `neph lab predict`: calculates how the delays of a topology affect protocols.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_documents::lab::PredictionRow;
use neph_documents::{Format, rows};
use neph_lab::{Forecast, PROTOCOLS, Role, Topology};
use neph_model::{ByteSize, ProbeKind};

use crate::exit::{Failure, Outcome};
use crate::{format, output, topology, value};

/// Maximum number of destinations that `neph lab verify` reports: a mesh has hundreds.
const MAX_DESTINATIONS: usize = 4;
/// Size of a small message: below it the results hardly change.
const SMALL_SIZE: ByteSize = ByteSize(64);
/// Default size of a large transfer: the size of source 1's experiments.
const LARGE_SIZE: ByteSize = ByteSize(100_000);

/// The largest request of a reflector.
const MAX_SIZE: ByteSize = ProbeKind::Tcp.properties().most_payload;

/// Options of `neph lab predict`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Topology file (TOML): sites and links of the emulated network
    file: PathBuf,
    /// Site of the client [default: the first site in FILE]
    #[arg(long, value_name = "SITE")]
    from: Option<String>,
    /// Site of the server [default: each other site in FILE]
    #[arg(long, value_name = "SITE")]
    to: Option<String>,
    /// Size of the large request, up to 64MiB; neph also predicts a request of 64 B
    #[arg(long, value_name = "SIZE", default_value = "100kB", value_parser = value::size)]
    size: ByteSize,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Prints the table; starts no lab.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.size > MAX_SIZE {
        let message = format!("--size {} is more than a request can have", args.size);
        return Err(Failure::usage(format!(
            "{message}; write at most {MAX_SIZE}"
        )));
    }
    let topology = topology::read(&args.file)?;
    let find_site = |name: &String| {
        topology.site_index(name).ok_or_else(|| {
            let site_names: Vec<&str> = measured_sites(&topology)
                .map(|site| site_name(&topology, site))
                .collect();
            Failure::usage(format!(
                "{} has no site '{name}'; its sites are {}",
                args.file.display(),
                site_names.join(", ")
            ))
        })
    };
    let source = args.from.as_ref().map(find_site).transpose()?;
    let destination = args.to.as_ref().map(find_site).transpose()?;
    let source = source
        .or_else(|| measured_sites(&topology).next())
        .unwrap_or(0);
    let destinations: Vec<usize> = match destination {
        Some(destination) => vec![destination],
        None => measured_sites(&topology)
            .filter(|site| *site != source)
            .collect(),
    };
    let predictions = predict_rows(&topology, source, &destinations, args.size);
    if predictions.is_empty() {
        return Err(Failure::usage(format!(
            "nothing to predict from '{}'{}: name two sites that links join; what runs inside \
             another site is reached through an overlay",
            site_name(&topology, source),
            args.to
                .as_ref()
                .map_or_else(String::new, |destination| format!(" to '{destination}'")),
        )));
    }
    let mut out = output::data();
    rows::write(&predictions, args.format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// The expected times between the first site and the next few, printed below a verified topology:
/// round trips of a protocol must not look like a fault of a link.
pub(super) fn predictions_text(topology: &Topology) -> String {
    let mut sites = measured_sites(topology);
    let Some(source) = sites.next() else {
        return String::new();
    };
    let destinations: Vec<usize> = sites.collect();
    let reported_destinations = &destinations[..destinations.len().min(MAX_DESTINATIONS)];
    let more_sites = match destinations.len() - reported_destinations.len() {
        0 => String::new(),
        more_sites => format!(
            "and {more_sites} more sites: `neph lab predict FILE --from {}` shows all\n",
            site_name(topology, source)
        ),
    };
    format!(
        "\nUntil the first reply, by calculation (hosts, loss and other traffic left out):\n{}{more_sites}",
        rows::text(&predict_rows(
            topology,
            source,
            reported_destinations,
            LARGE_SIZE
        ))
    )
}

/// The sites that measurements start or end at.
fn measured_sites(topology: &Topology) -> impl Iterator<Item = usize> {
    let sites = topology.sites.iter().enumerate();
    // Pods are reached through overlays, which the calculation does not cover.
    sites.filter_map(|(index, site)| {
        (site.role == Role::Site && site.inside.is_none()).then_some(index)
    })
}

fn site_name(topology: &Topology, site: usize) -> &str {
    &topology.sites[site].name
}

fn predict_rows(
    topology: &Topology,
    source: usize,
    destinations: &[usize],
    large_size: ByteSize,
) -> Vec<PredictionRow> {
    let forecast_to = |destination: &usize| {
        Some((
            *destination,
            Forecast::between(topology, source, *destination)?,
        ))
    };
    let forecasts = destinations.iter().filter_map(forecast_to);
    let rows = forecasts.flat_map(|(destination, forecast)| {
        PROTOCOLS.iter().map(move |protocol| PredictionRow {
            from: site_name(topology, source).to_owned(),
            to: site_name(topology, destination).to_owned(),
            protocol: protocol.name,
            round_trips: u64::try_from(protocol.round_trips()).unwrap_or(u64::MAX),
            small_ns: forecast.predict(protocol, SMALL_SIZE),
            large_ns: forecast.predict(protocol, large_size),
            large_bytes: large_size,
        })
    });
    rows.collect()
}
