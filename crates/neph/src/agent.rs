//! `neph agent`: carries out orders of a controller at this host, until ctrl-C.
//!
//! Owns the command: the controller, the retries, and the privileges that the policy needs.
//! neph-agent has the functions of an agent. An agent only connects out. It listens only for
//! metrics, and for reflectors that are ordered and that its policy allows.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use clap::Args as ClapArgs;
use neph_agent::LocalExecutor;
use neph_agent::policy::{DEFAULT_POLICY, POLICY_FILE, Policy};
use neph_agent::remote::{
    AdmissionControl, ControllerAddress, EnrolError, Identity, IdentityError, Invitation, Link,
    LinkLost, ParseInvitationError, Role, ServeError, WebSocketLink, Worker, captures_in, enrol,
    serve,
};
use neph_control::NatsLink;
use neph_model::{Label, Labels, Span, Stop, Wall};
use neph_probe::read_private;
use neph_sys::clock;
use neph_sys::program::Code;
use neph_text::{Existing, FileKind, Source, read_text, write_whole};

use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::metrics::agent::AgentMetrics;
use crate::service::Service;
use crate::{interrupt, output, version};

mod privileges;

/// Time between two attempts to connect; doubled each time, up to the longest.
const MIN_RETRY_DELAY: Span = Span::from_millis(500);
const MAX_RETRY_DELAY: Span = Span::from_secs(30);
/// Interval at which an agent without a connection checks its measurements and ctrl-C.
const CHECK_INTERVAL: Span = Span::from_millis(50);

/// Options of `neph agent`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Address of the controller (wss://HOST:PORT), or of its NATS message server (nats://HOST:PORT). Repeatable:
    /// the agent tries the addresses in turn
    #[arg(long, value_name = "ADDRESS", required = true)]
    controller: Vec<ControllerAddress>,
    /// Invitation with which the agent enrols at the controller: the line that `neph control invite` prints
    #[arg(long, value_name = "LINE", env = "NEPH_INVITE", hide_env_values = true)]
    invite: Option<Invitation>,
    /// File with the invitation (mode 0600), from `neph control invite --output`; ignored if
    /// this agent has already enrolled
    #[arg(long, value_name = "FILE", conflicts_with = "invite")]
    invite_file: Option<PathBuf>,
    /// Folder with the agent's key, certificate, orders and results that the controller has not stored yet
    #[arg(long, value_name = "FOLDER", default_value = ".neph-agent")]
    folder: PathBuf,
    /// Policy file (TOML): the work that this agent accepts from the controller [default: agent.toml in
    /// --folder]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Label of this agent in `neph agents` and the controller's metrics, such as region=eu; repeatable,
    /// at most 16
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// Carries out orders until ctrl-C.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut service = Service::find("agent");
    let labels = Labels::new(args.labels.iter().cloned()).map_err(Failure::usage)?;
    let identity = load_identity(args)?;
    identity.tls().map_err(Failure::usage)?;
    let policy = read_policy(args)?;
    let metrics = args.metrics.bind("neph agent")?;
    // The process may lose its access to /proc afterwards.
    let code = Code::of_this_process();
    privileges::drop_privileges(&policy, &args.folder)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut worker = build_worker(args, &identity, policy)?.with_labels(labels);
    let exporter = metrics.begin(AgentMetrics {
        name: identity.name().map_err(Failure::usage)?,
        status: worker.status().clone(),
    })?;
    // Ready before its controller answers: waiting for it would make the start fail while the controller is
    // away. The service manager would then restart the agent in a loop, and results would wait.
    service.report_ready("looks for its controller", vec![worker.pulse().clone()]);
    let outcome = serve_all(
        args,
        &identity,
        &mut worker,
        &AgentProcess {
            service,
            stop,
            code,
        },
    );
    exporter.finish();
    outcome
}

/// The process of an agent.
struct AgentProcess {
    service: Service,
    stop: Stop,
    /// The program code in memory.
    code: Option<Code>,
}

/// Connects to the controllers in turn, and carries out their orders.
fn serve_all(
    args: &Args,
    identity: &Identity,
    worker: &mut Worker<LocalExecutor>,
    process: &AgentProcess,
) -> Result<Outcome, Failure> {
    let AgentProcess {
        service,
        stop,
        code,
    } = process;
    let mut retry_delay = MIN_RETRY_DELAY;
    let mut addresses = args.controller.iter().cycle();
    while !stop.is_set() {
        let Some(address) = addresses.next() else {
            break;
        };
        match dial(address, identity, worker, stop)? {
            None => break,
            Some(Ok(mut link)) => {
                retry_delay = MIN_RETRY_DELAY;
                tracing::info!("connected to {address}");
                service.report_status(&format!("connected to {address}"));
                // An agent waits for hours: release the code that only the start needed.
                code.iter().for_each(Code::give_back);
                match serve(worker, link.as_mut(), stop) {
                    Ok(()) => break,
                    Err(ServeError::Link(reason)) => {
                        report_disconnected(service, &reason.to_string());
                    }
                    Err(ServeError::Worker(reason)) => return Err(Failure::refused(reason)),
                }
            }
            Some(Err(reason)) => {
                if matches!(reason, EnrolError::Revoked) {
                    worker.revoked();
                }
                report_disconnected(service, &format!("{address}: {reason}"));
            }
        }
        wait_for_retry(retry_delay, worker, stop)?;
        retry_delay = retry_delay.times(2).min(MAX_RETRY_DELAY);
    }
    Ok(Outcome::Done)
}

fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

fn build_worker(
    args: &Args,
    identity: &Identity,
    policy: Policy,
) -> Result<Worker<LocalExecutor>, Failure> {
    let name = identity.name().map_err(Failure::usage)?;
    let admission = AdmissionControl::open(&args.folder, name, identity.authority(), policy, now());
    let admission = admission.map_err(Failure::refused)?;
    let executor = LocalExecutor::new()
        .with_permit(admission.permit().clone())
        .with_captures(captures_in(&args.folder));
    Worker::new(&args.folder, executor, version::VERSION, admission).map_err(Failure::refused)
}

type ConnectResult = Result<Box<dyn Link>, EnrolError>;

fn connect(address: &ControllerAddress, identity: &Identity) -> ConnectResult {
    match address {
        ControllerAddress::Port(_) => Ok(Box::new(WebSocketLink::connect(address, identity)?)),
        ControllerAddress::Nats(servers) => match NatsLink::connect(servers, identity) {
            Ok(link) => Ok(Box::new(link)),
            Err(error) if error.is_refused => Err(EnrolError::Revoked),
            Err(error) => Err(LinkLost::new(error.to_string()).into()),
        },
    }
}

/// Connects on a separate thread, so that measurements continue and end in time; `None` after ctrl-C.
fn dial(
    address: &ControllerAddress,
    identity: &Identity,
    worker: &mut Worker<LocalExecutor>,
    stop: &Stop,
) -> Result<Option<ConnectResult>, Failure> {
    let (address, identity) = (address.clone(), identity.clone());
    let builder = thread::Builder::new().name("dial".to_owned());
    let connecting_thread: JoinHandle<ConnectResult> = builder
        .spawn(move || connect(&address, &identity))
        .map_err(Failure::refused)?;
    while !connecting_thread.is_finished() {
        if stop.is_set() {
            // The thread ends with the process.
            return Ok(None);
        }
        continue_work(worker)?;
    }
    let result = connecting_thread.join();
    Ok(Some(
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    ))
}

/// Reports why there is no connection.
fn report_disconnected(service: &Service, reason: &str) {
    tracing::info!("{reason}");
    service.report_status(&format!("without a controller: {reason}"));
}

/// Continues measurements without a connection.
fn continue_work(worker: &mut Worker<LocalExecutor>) -> Result<(), Failure> {
    // The controller requests the results on the next connection.
    worker.work(Span::ZERO).map_err(Failure::refused)?;
    clock::nap(CHECK_INTERVAL.to_duration());
    Ok(())
}

fn wait_for_retry(
    retry_delay: Span,
    worker: &mut Worker<LocalExecutor>,
    stop: &Stop,
) -> Result<(), Failure> {
    let deadline = clock::raw().0 + retry_delay.nanos();
    while clock::raw().0 < deadline && !stop.is_set() {
        continue_work(worker)?;
    }
    Ok(())
}

/// The policy of the agent. Without a policy nothing is allowed, so the agent does not start.
fn read_policy(args: &Args) -> Result<Policy, Failure> {
    let default_path = args.folder.join(POLICY_FILE);
    let path = args.policy.as_deref().unwrap_or(&default_path);
    let text = read_text(FileKind::Policy, path).map_err(|error| {
        Failure::usage(format!(
            "policy {}: {error}; an agent does nothing without one: --policy names another file, and an \
             enrolment writes the usual one",
            path.display()
        ))
    })?;
    let source = Source::new(path.display().to_string(), text);
    let policy = Policy::parse(&source);
    let policy = policy.map_err(|problems| Failure::Text(source, problems))?;
    let is_known = |address: &ControllerAddress| {
        policy.controllers.is_empty() || policy.controllers.contains(&address.to_string())
    };
    match args.controller.iter().find(|address| !is_known(address)) {
        Some(address) => Err(Failure::usage(format!(
            "{} does not allow controller {address}: add it to controllers there, or dial another",
            path.display()
        ))),
        None => Ok(policy),
    }
}

/// The identity in the folder. With an invitation and no identity, a new one.
fn load_identity(args: &Args) -> Result<Identity, Failure> {
    match (Identity::load(&args.folder), &args.invite) {
        (Ok(identity), None) => Ok(identity),
        (Ok(_), Some(_)) => Err(Failure::usage(format!(
            "{} has a certificate already: leave --invite out, or give another --folder",
            args.folder.display()
        ))),
        (Err(IdentityError::NotEnrolled(_)), Some(invitation)) => redeem(args, invitation),
        (Err(error @ IdentityError::NotEnrolled(_)), None) => match &args.invite_file {
            Some(path) => redeem(args, &read_invitation(path)?),
            None => Err(Failure::usage(error)),
        },
        (Err(error), _) => Err(Failure::refused(error)),
    }
}

/// The invitation in a file.
pub(crate) fn read_invitation(path: &Path) -> Result<Invitation, Failure> {
    let failure = |reason: String| Failure::usage(format!("--invite-file: {reason}"));
    let bytes = read_private(FileKind::Secret, path).map_err(|error| failure(error.to_string()))?;
    let text = str::from_utf8(&bytes).unwrap_or_default();
    text.parse()
        .map_err(|error: ParseInvitationError| failure(format!("{}: {error}", path.display())))
}

fn redeem(args: &Args, invitation: &Invitation) -> Result<Identity, Failure> {
    if invitation.role != Role::Agent {
        return Err(Failure::usage(format!(
            "the invitation is for operator {}, not for an agent; neph control invite NAME invites an agent",
            invitation.name
        )));
    }
    let mut last_error = None;
    for address in &args.controller {
        match enrol(address, invitation, &args.folder) {
            Ok(identity) => {
                let name = &invitation.name;
                output::say(&format!("neph agent: enrolled at {address} as {name}"));
                if args.policy.is_none() {
                    write_policy(&args.folder)?;
                }
                return Ok(identity);
            }
            Err(EnrolError::Refused(reason)) => {
                return Err(Failure::usage(invitation.refusal(address, &reason)));
            }
            Err(error) => last_error = Some(format!("{address}: {error}")),
        }
    }
    Err(Failure::refused(last_error.unwrap_or_default()))
}

/// Writes the default policy, unless the folder has a policy.
fn write_policy(folder: &Path) -> Result<(), Failure> {
    let path = folder.join(POLICY_FILE);
    if path.exists() {
        return Ok(());
    }
    let result = write_whole(&path, DEFAULT_POLICY.as_bytes(), Existing::Keep);
    result.map_err(|error| Failure::refused(format!("write {}: {error}", path.display())))?;
    output::say(&format!(
        "neph agent: its policy is {}; change it as needed and restart the agent",
        path.display()
    ));
    Ok(())
}
