//! `neph lab up`: starts a topology, in the foreground until ctrl-C or in the background.

use std::fs;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use neph_documents::lab::SiteRow;
use neph_documents::rows;
use neph_lab::{HasKeeper, Kernel, Lab, Recording, ServiceState, Site, Topology, UpOptions};
use neph_sys::clock;

use super::keeper::BackgroundLab;
use super::{failure, keeper, lab_name, report_fallbacks, report_unused_links};
use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::{approval, interrupt, output, sink, topology};

/// Interval at which a running lab checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Options of `neph lab up`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Topology file (TOML): sites and links of the emulated network
    file: PathBuf,
    /// Name of the lab: a lower-case letter, then up to 15 of a-z, 0-9 and _ [default: from the name of FILE]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Return when the lab is ready, and keep it running in the background until `neph lab down`
    #[arg(long, short)]
    detach: bool,
    /// Record what each link does to each packet: neph writes one file LINK.truth per link to this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Record only one packet in N; neph selects it by its bytes, so that every link records the same packets
    #[arg(long, value_name = "N", default_value = "1", requires = "record")]
    every: NonZeroU32,
    #[command(flatten)]
    approval: Approval,
    /// This is the background process
    #[arg(long, hide = true)]
    keeper: bool,
}

/// Starts the lab, unless it is already up.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let topology = topology::read(&args.file)?;
    if !args.keeper {
        report_unused_links(&topology);
    }
    let name = lab_name(args.name.as_deref(), &args.file);
    if is_up(&name, &topology)? {
        if args.record.is_some() {
            return Err(Failure::Usage(format!(
                "--record: the lab '{name}' is up already, and records from its beginning or not \
                 at all: take it down first (neph lab down {name})"
            )));
        }
        output::say(&format!("neph lab: {name} is up already"));
        return Ok(Outcome::Done);
    }
    args.approval
        .ask(&args.file.display().to_string(), [&topology])?;
    let record = args.record.as_ref();
    let new_folder = record.filter(|folder| !folder.exists());
    let truth = record
        .map(|folder| prepare_recording(folder, &topology, args.every))
        .transpose()?;
    let outcome = if args.detach {
        keeper::detach(&BackgroundLab {
            file: &args.file,
            name: &name,
            approved: &approval::digest(&topology),
            record: record.map(|folder| (folder.as_path(), args.every)),
        })
    } else {
        let mut options = UpOptions::with_name(name);
        options.truth = truth;
        run_in_foreground(args, &topology, options)
    };
    if let (Err(_), Some(folder)) = (&outcome, new_folder) {
        // A folder with records is not empty, and stays.
        let _ = fs::remove_dir(folder);
    }
    outcome
}

/// Whether a lab of this name is up with the same topology. Remains of a lab that is not up are
/// removed.
fn is_up(name: &str, topology: &Topology) -> Result<bool, Failure> {
    let Some(lab) = Lab::find(name).map_err(failure)? else {
        return Ok(false);
    };
    if !lab.is_owner_alive {
        output::say(&format!("neph lab: {name} is left over: taking it down"));
        Lab::down_if_owner_ended(name).map_err(failure)?;
        return Ok(false);
    }
    if !lab.is_made_from(topology) {
        return Err(Failure::refused(format!(
            "a lab called '{name}' is up from another topology: take it down first \
             (neph lab down {name}), or choose another --name"
        )));
    }
    if !lab.is_complete {
        let owner = lab.owner.unwrap_or_default();
        return Err(Failure::refused(format!(
            "the lab '{name}' is just coming up (process {owner}): wait, or neph lab down {name}"
        )));
    }
    Ok(true)
}

fn run_in_foreground(
    args: &Args,
    topology: &Topology,
    mut options: UpOptions,
) -> Result<Outcome, Failure> {
    options.keeper = HasKeeper::Yes;
    let stop = interrupt::stop_on_ctrl_c()?;
    options.stop = stop.flag();
    let lab = Lab::up(topology, &options).map_err(failure)?;
    report_fallbacks(&lab);
    let mut out = output::data();
    out.write_all(rows::text(&site_rows(&lab)?).as_bytes())?;
    out.flush()?;
    if args.keeper {
        writeln!(output::bytes()?, "{}", keeper::READY_MARK)?;
    }
    drop(out);
    if !args.keeper {
        let name = lab.name();
        output::say(&format!("neph lab: {name} is up; ctrl-C takes it down"));
    }
    let mut reported_services = vec![false; lab.services().count()];
    while !stop.is_set() && lab.is_up() && lab.is_forwarding() {
        report_ended(&lab, &mut reported_services);
        clock::nap(CHECK_INTERVAL);
    }
    let is_ended_externally = !stop.is_set();
    let name = lab.name().to_owned();
    lab.down().map_err(failure)?;
    output::say(&format!("neph lab: {name} is down"));
    Ok(if is_ended_externally {
        Outcome::Nothing
    } else {
        Outcome::Done
    })
}

/// Creates the folder; refuses one with records.
fn prepare_recording(
    folder: &Path,
    topology: &Topology,
    every: NonZeroU32,
) -> Result<Recording, Failure> {
    let recording = Recording {
        folder: folder.to_owned(),
        every,
    };
    recording.check(topology).map_err(failure)?;
    fs::create_dir_all(folder).map_err(|error| sink::failure(folder, &error))?;
    Ok(recording)
}

/// Reports once for each service that has ended while the lab is up.
fn report_ended(lab: &Lab, reported_services: &mut [bool]) {
    for ((name, state), is_reported) in lab.services().zip(reported_services) {
        if let (ServiceState::Ended(status), false) = (state, *is_reported) {
            *is_reported = true;
            let ending = status.map_or_else(
                || "was killed".to_owned(),
                |status| format!("ended with status {status}"),
            );
            output::say(&format!("neph lab: service '{name}' {ending}"));
        }
    }
}

/// Each site with its addresses, and the command to enter it.
fn site_rows(lab: &Lab) -> Result<Vec<SiteRow>, Failure> {
    let guests = lab.topology().guests();
    let to_row = |site: &Site| {
        let namespace = lab.namespace(&site.name).map_err(failure)?;
        let addresses: Vec<String> = site.addresses().map(|ip| ip.to_string()).collect();
        let has_own_kernel = guests.iter().any(|guest| {
            guest.kernel == Kernel::Own && lab.topology().sites[guest.site].name == site.name
        });
        let enter = if has_own_kernel {
            format!("neph lab run {} -- COMMAND", site.name)
        } else {
            format!("nsenter --net=/run/netns/{}", namespace.name())
        };
        Ok(SiteRow {
            site: site.name.clone(),
            addresses: addresses.join(" "),
            enter,
        })
    };
    lab.topology().sites.iter().map(to_row).collect()
}
