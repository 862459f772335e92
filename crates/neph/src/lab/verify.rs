//! `neph lab verify`: compares each link with its specification in the topology, and checks each guest.

mod guests;

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_documents::lab::VerifiedRow;
use neph_documents::{Format, rows};
use neph_lab::{
    Lab, LinkCheck, Topology, UpOptions, Verified, own_lab_name, remove_left_over_labs,
    verification_duration, verify_until,
};
use neph_model::Span;

use guests::GuestCheck;

use super::{failure, lab_name, predict, report_fallbacks};
use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::{format, interrupt, output, topology};
use neph_text::counted::counted;

/// The name of a verified lab begins with this; the process id follows.
const LAB_NAME_PREFIX: &str = "v";

/// Options of `neph lab verify`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Topology file (TOML): sites and links of the emulated network
    file: PathBuf,
    #[command(flatten)]
    approval: Approval,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Starts the lab, measures, stops the lab, and evaluates.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut topology = topology::read(&args.file)?;
    args.approval
        .ask(&args.file.display().to_string(), [&topology])?;
    // Other traffic on a link would disturb the measurement.
    topology.traffic.clear();
    // A separate name: the same topology may be up under another name.
    for error in remove_left_over_labs(LAB_NAME_PREFIX) {
        output::say(&format!("neph: {error}"));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    let options = UpOptions {
        stop: stop.flag(),
        ..UpOptions::with_name(own_lab_name(LAB_NAME_PREFIX))
    };
    let lab = Lab::up(&topology, &options).map_err(failure)?;
    report_fallbacks(&lab);
    output::say(&format!(
        "neph lab: measuring {} of {}, {}",
        measured_objects_text(&topology),
        lab_name(None, &args.file),
        duration_text(&topology)
    ));
    let mut links = Vec::new();
    for link in 0..topology.links.len() {
        if stop.is_set() {
            break;
        }
        links.push(verify_until(&lab, link, &stop.flag()).map_err(failure)?);
    }
    let guests = guests::check(&lab, &stop);
    lab.down().map_err(failure)?;
    let mut out = output::data();
    let mut verified_rows = build_rows(&links);
    verified_rows.extend(guests.iter().map(GuestCheck::row));
    rows::write(&verified_rows, args.format, &mut out)?;
    if args.format == Format::Text {
        out.write_all(predict::predictions_text(&topology).as_bytes())?;
    }
    out.flush()?;
    let checks: Vec<&LinkCheck> = links.iter().flat_map(|link| &link.checks).collect();
    let late_count = checks.iter().filter(|check| check.is_late()).count();
    if late_count > 0 {
        output::say(&format!(
            "neph lab: {late_count} of {} directions delayed more than 1 % of the packets, or lost some: this host was too busy, and an experiment on them would have a warning",
            checks.len()
        ));
    }
    let passed = checks.iter().map(|check| check.is_ok());
    let verdicts: Vec<bool> = passed.chain(guests.iter().map(GuestCheck::is_ok)).collect();
    let failed_count = verdicts.iter().filter(|ok| !**ok).count();
    Ok(match (stop.is_set(), failed_count) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Done,
        (false, failed_count) => {
            output::say(&format!(
                "neph lab: {failed_count} of {} directions differ from the topology",
                verdicts.len()
            ));
            Outcome::Nothing
        }
    })
}

/// The measured objects, in words.
fn measured_objects_text(topology: &Topology) -> String {
    let links = counted(topology.links.len() as u64, "link");
    match topology.guests().len() {
        0 => links,
        guests => format!("{links} and {}", counted(guests as u64, "guest")),
    }
}

/// The duration of all measurements, in words.
fn duration_text(topology: &Topology) -> String {
    let links = topology.links.iter().map(verification_duration);
    let total_time = links.fold(guests::total_duration(topology), |sum, span| sum + span);
    let seconds = total_time.nanos().div_euclid(Span::from_secs(1).nanos()) + 1;
    let duration = match seconds {
        ..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60 + 1),
    };
    format!("at most {duration}, or twice that where links do not match or their rate is unknown")
}

fn build_rows(links: &[Verified]) -> Vec<VerifiedRow> {
    let rows = links.iter().flat_map(|link| {
        let checks = link.checks.iter().map(VerifiedRow::from);
        checks.chain(
            link.unmeasured_paths
                .iter()
                .map(VerifiedRow::unmeasured_path),
        )
    });
    rows.collect()
}
