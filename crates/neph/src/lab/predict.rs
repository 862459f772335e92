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
const REPORTED: usize = 4;
/// Size of a small message: below it the results hardly change.
const SMALL: ByteSize = ByteSize(64);
/// Default size of a large transfer: the size of source 1's experiments.
const LARGE: ByteSize = ByteSize(100_000);

/// The largest request of a reflector.
const MAXIMUM: ByteSize = ProbeKind::Tcp.properties().most_payload;

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
    if args.size > MAXIMUM {
        let message = format!("--size {} is more than a request can have", args.size);
        return Err(Failure::usage(format!(
            "{message}; write at most {MAXIMUM}"
        )));
    }
    let topology = topology::read(&args.file)?;
    let index = |name: &String| {
        topology.site_index(name).ok_or_else(|| {
            let known: Vec<&str> = ends(&topology).map(|at| name_of(&topology, at)).collect();
            Failure::usage(format!(
                "{} has no site '{name}'; its sites are {}",
                args.file.display(),
                known.join(", ")
            ))
        })
    };
    let from = args.from.as_ref().map(index).transpose()?;
    let to = args.to.as_ref().map(index).transpose()?;
    let from = from.or_else(|| ends(&topology).next()).unwrap_or(0);
    let others: Vec<usize> = match to {
        Some(to) => vec![to],
        None => ends(&topology).filter(|at| *at != from).collect(),
    };
    let predicted = forecast(&topology, from, &others, args.size);
    if predicted.is_empty() {
        return Err(Failure::usage(format!(
            "nothing to predict from '{}'{}: name two sites that links join; what runs inside \
             another site is reached through an overlay",
            name_of(&topology, from),
            args.to
                .as_ref()
                .map_or_else(String::new, |to| format!(" to '{to}'")),
        )));
    }
    let mut out = output::data();
    rows::write(&predicted, args.format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// The expected times between the first site and the next few, printed below a verified topology:
/// round trips of a protocol must not look like a fault of a link.
pub(super) fn below_verify(topology: &Topology) -> String {
    let mut ends = ends(topology);
    let Some(from) = ends.next() else {
        return String::new();
    };
    let others: Vec<usize> = ends.collect();
    let shown = &others[..others.len().min(REPORTED)];
    let more = match others.len() - shown.len() {
        0 => String::new(),
        more => format!(
            "and {more} more sites: `neph lab predict FILE --from {}` shows all\n",
            name_of(topology, from)
        ),
    };
    format!(
        "\nUntil the first reply, by calculation (hosts, loss and other traffic left out):\n{}{more}",
        rows::text(&forecast(topology, from, shown, LARGE))
    )
}

/// The sites that measurements start or end at.
fn ends(topology: &Topology) -> impl Iterator<Item = usize> {
    let sites = topology.sites.iter().enumerate();
    // Pods are reached through overlays, which the calculation does not cover.
    sites.filter_map(|(at, site)| (site.role == Role::Site && site.inside.is_none()).then_some(at))
}

fn name_of(topology: &Topology, site: usize) -> &str {
    &topology.sites[site].name
}

fn forecast(
    topology: &Topology,
    from: usize,
    others: &[usize],
    large: ByteSize,
) -> Vec<PredictionRow> {
    let between = |to: &usize| Some((*to, Forecast::between(topology, from, *to)?));
    let forecasts = others.iter().filter_map(between);
    let rows = forecasts.flat_map(|(to, forecast)| {
        PROTOCOLS.iter().map(move |protocol| PredictionRow {
            from: name_of(topology, from).to_owned(),
            to: name_of(topology, to).to_owned(),
            protocol: protocol.name,
            round_trips: u64::try_from(protocol.round_trips()).unwrap_or(u64::MAX),
            small_ns: forecast.predict(protocol, SMALL),
            large_ns: forecast.predict(protocol, large),
            large_bytes: large,
        })
    });
    rows.collect()
}
