//! `neph agent`: carries out orders of a controller at this host, until ctrl-C.
//!
//! Owns the command: which controller, when to dial it. What an agent does is neph-agent's. It dials out and
//! listens nowhere.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_agent::LocalExecutor;
use neph_agent::remote::{
    ControllerAddress, EnrolError, Identity, IdentityError, Invitation, NoInvitation, ServeError,
    WebSocketLink, Worker, enrol, serve,
};
use neph_model::{Span, Stop};
use neph_probe::read_private;
use neph_sys::clock;
use neph_text::FileKind;

use crate::exit::{Failure, Outcome};
use crate::service::Service;
use crate::{interrupt, output, version};

/// Time between two tries to connect: twice as long each time, up to the last.
const FIRST_REST: Span = Span::from_millis(500);
const LONGEST_REST: Span = Span::from_secs(30);
/// How long an agent without a connection waits before it looks at what it measures, and for ctrl-C.
const PATIENCE: Span = Span::from_millis(50);

/// Options of `neph agent`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Where the controller listens; several are tried one after the other
    #[arg(long, value_name = "wss://HOST:PORT", required = true)]
    controller: Vec<ControllerAddress>,
    /// Enrol with this invitation first: the line that neph control invite printed
    #[arg(long, value_name = "LINE", env = "NEPH_INVITE", hide_env_values = true)]
    invite: Option<Invitation>,
    /// Enrol with the invitation in this file (mode 0600), unless it is enrolled already: for services that
    /// are started anew
    #[arg(long, value_name = "FILE", conflicts_with = "invite")]
    invite_file: Option<PathBuf>,
    /// Folder of the agent: its key, and results until they are stored
    #[arg(long, value_name = "FOLDER", default_value = ".neph-agent")]
    folder: PathBuf,
}

/// Serves controllers until ctrl-C.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut service = Service::find("agent");
    let identity = identity(args)?;
    identity.tls().map_err(Failure::usage)?;
    let worker = Worker::new(&args.folder, LocalExecutor::new(), version::VERSION);
    let mut worker = worker.map_err(Failure::refused)?;
    // Ready before its controller answers: a start that waited for it would fail where the controller is
    // away, and what was measured would wait for an agent that is ended and started in turns.
    service.ready("looks for its controller", vec![worker.pulse().clone()]);
    let mut rest = FIRST_REST;
    let mut addresses = args.controller.iter().cycle();
    while !stop.is_set() {
        let Some(address) = addresses.next() else {
            break;
        };
        match WebSocketLink::connect(address, &identity) {
            Ok(mut link) => {
                rest = FIRST_REST;
                output::say(&format!("neph agent: connected to {address}"));
                service.status(&format!("connected to {address}"));
                match serve(&mut worker, &mut link, &stop) {
                    Ok(()) => break,
                    Err(ServeError::Link(why)) => without(&service, &why.to_string()),
                    Err(ServeError::Worker(why)) => return Err(Failure::refused(why)),
                }
            }
            Err(why) => without(&service, &format!("{address}: {why}")),
        }
        wait(rest, &mut worker, &stop)?;
        rest = rest.times(2).min(LONGEST_REST);
    }
    Ok(Outcome::Done)
}

/// Reports why there is no connection.
fn without(service: &Service, why: &str) {
    output::say(&format!("neph agent: {why}"));
    service.status(&format!("without a controller: {why}"));
}

/// What is measured goes on without a connection.
fn wait(rest: Span, worker: &mut Worker<LocalExecutor>, stop: &Stop) -> Result<(), Failure> {
    let until = clock::raw().0 + rest.nanos();
    while clock::raw().0 < until && !stop.is_set() {
        // What it reports is asked for on the next connection.
        worker.work(Span::ZERO).map_err(Failure::refused)?;
        clock::nap(PATIENCE.to_duration());
    }
    Ok(())
}

/// The identity in the folder; with an invitation, a new one where there is none.
fn identity(args: &Args) -> Result<Identity, Failure> {
    match (Identity::load(&args.folder), &args.invite) {
        (Ok(identity), None) => Ok(identity),
        (Ok(_), Some(_)) => Err(Failure::usage(format!(
            "{} has a certificate already: leave --invite out, or give another --folder",
            args.folder.display()
        ))),
        (Err(IdentityError::None(_)), Some(invitation)) => redeem(args, invitation),
        (Err(error @ IdentityError::None(_)), None) => match &args.invite_file {
            Some(path) => redeem(args, &invitation_in(path)?),
            None => Err(Failure::usage(error)),
        },
        (Err(error), _) => Err(Failure::refused(error)),
    }
}

/// The invitation in a file.
fn invitation_in(path: &Path) -> Result<Invitation, Failure> {
    let failure = |why: String| Failure::usage(format!("--invite-file: {why}"));
    let bytes = read_private(FileKind::Secret, path).map_err(|error| failure(error.to_string()))?;
    let text = str::from_utf8(&bytes).unwrap_or_default();
    text.parse()
        .map_err(|error: NoInvitation| failure(format!("{}: {error}", path.display())))
}

fn redeem(args: &Args, invitation: &Invitation) -> Result<Identity, Failure> {
    let mut last = None;
    for address in &args.controller {
        match enrol(address, invitation, &args.folder) {
            Ok(identity) => {
                let name = &invitation.name;
                output::say(&format!("neph agent: enrolled at {address} as {name}"));
                return Ok(identity);
            }
            Err(EnrolError::Refused(why)) => {
                return Err(Failure::usage(format!("{address} refuses: {why}")));
            }
            Err(error) => last = Some(format!("{address}: {error}")),
        }
    }
    Err(Failure::refused(last.unwrap_or_default()))
}
