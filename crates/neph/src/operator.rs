//! Operators: campaigns through a controller at another host.
//!
//! Owns the options, and the operator's enrolment. neph-control connects to the controller.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_agent::remote::{
    ControllerAddress, EnrolError, Identity, IdentityError, Invitation, Role, enrol,
};
use neph_control::{CampaignSocketError, ControllerPlace, OperatorPort};

use crate::agent::read_invitation;
use crate::controller_commands::no_controller;
use crate::exit::Failure;
use crate::output;

/// The controller at another host, and the identity of the operator.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct OperatorArgs {
    /// Address of the controller (on another host) whose agents neph uses; neph connects to it as an operator
    #[arg(long, value_name = "wss://HOST:PORT", env = "NEPH_CONTROLLER")]
    controller: Option<ControllerAddress>,
    /// Folder with the key and certificate of the operator, for --controller. The first command with
    /// --invite-file writes it
    #[arg(
        long,
        value_name = "FOLDER",
        env = "NEPH_OPERATOR",
        default_value = ".neph-operator"
    )]
    operator: PathBuf,
    /// File with the operator's invitation (mode 0600), from `neph control invite --operator`; ignored
    /// if this operator has already enrolled
    #[arg(long, value_name = "FILE", requires = "controller")]
    invite_file: Option<PathBuf>,
}

/// The controller whose agents measure.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct ControllerArgs {
    /// Measure with agents: folder of their controller on this host, which `neph control serve` creates
    #[arg(long, value_name = "FOLDER")]
    pub(crate) control: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

impl ControllerArgs {
    /// The options that repeat this controller in a suggested command.
    pub(crate) fn option_text(&self) -> String {
        match &self.control {
            Some(folder) => format!(" --control {}", folder.display()),
            None if self.operator.is_typed() => format!(" {}", self.operator.option_text()),
            None => String::new(),
        }
    }
}

/// A controller at another host.
#[derive(Debug)]
pub(crate) struct OperatorController {
    pub(crate) controller_place: ControllerPlace,
    /// The certificate of its authority (PEM).
    pub(crate) authority: String,
}

impl OperatorArgs {
    /// The address, if there is one.
    pub(crate) const fn address(&self) -> Option<&ControllerAddress> {
        self.controller.as_ref()
    }

    /// Whether the address is on the command line, not only in the environment.
    pub(crate) fn is_typed(&self) -> bool {
        let variable = std::env::var("NEPH_CONTROLLER").ok();
        let environment_address = variable.and_then(|text| text.parse().ok());
        self.controller.is_some() && self.controller != environment_address
    }

    /// These options as command-line text.
    pub(crate) fn option_text(&self) -> String {
        let Some(address) = &self.controller else {
            return String::new();
        };
        format!(
            "--controller {address} --operator {}",
            self.operator.display()
        )
    }

    /// The controller at the address, if one was given; enrols first if an invitation was given.
    pub(crate) fn find(&self) -> Result<Option<OperatorController>, Failure> {
        let Some(address) = &self.controller else {
            return Ok(None);
        };
        if address.at_its_port().is_none() {
            return Err(Failure::usage(format!(
                "--controller {address}: an operator connects to the controller's own port, wss://HOST:PORT"
            )));
        }
        let identity = self.identity(address)?;
        identity.tls().map_err(Failure::usage)?;
        Ok(Some(OperatorController {
            authority: identity.authority().to_owned(),
            controller_place: ControllerPlace::Port(OperatorPort::new(address.clone(), identity)),
        }))
    }

    fn identity(&self, address: &ControllerAddress) -> Result<Identity, Failure> {
        match (Identity::load(&self.operator), &self.invite_file) {
            (Ok(identity), _) => Ok(identity),
            (Err(IdentityError::NotEnrolled(folder)), None) => Err(Failure::usage(format!(
                "{folder} has no operator's certificate: on the controller's host run neph control invite \
                 --operator NAME, and give its line here once, with --invite-file FILE"
            ))),
            (Err(IdentityError::NotEnrolled(_)), Some(file)) => {
                let invitation = read_invitation(file)?;
                if invitation.role != Role::Operator {
                    return Err(Failure::usage(format!(
                        "--invite-file: {} invites an agent, not an operator; neph control invite --operator NAME \
                         invites an operator",
                        file.display()
                    )));
                }
                let identity = enrol(address, &invitation, &self.operator);
                let identity =
                    identity.map_err(|error| enrolment_failure(address, &invitation, &error))?;
                let name = &invitation.name;
                output::say(&format!("neph: enrolled at {address} as operator {name}"));
                Ok(identity)
            }
            (Err(error), _) => Err(Failure::refused(error)),
        }
    }
}

fn enrolment_failure(
    address: &ControllerAddress,
    invitation: &Invitation,
    error: &EnrolError,
) -> Failure {
    match error {
        EnrolError::Refused(reason) => Failure::usage(invitation.refusal(address, reason)),
        EnrolError::Link(reason) => Failure::usage(format!(
            "cannot reach the controller at {address}: {}; is it running, and is this its address?",
            reason.why
        )),
        EnrolError::OtherController => Failure::usage(error),
        other => Failure::refused(other),
    }
}

/// Why a controller cannot be used. Errors that the user can correct are usage errors.
pub(crate) fn failure(error: CampaignSocketError) -> Failure {
    match error {
        CampaignSocketError::OperatorPort(error) => Failure::usage(error),
        CampaignSocketError::NoController { path, source }
            if matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused
            ) =>
        {
            Failure::usage(no_controller(&path))
        }
        error @ CampaignSocketError::NoController { .. } => Failure::usage(error),
        other => Failure::refused(other),
    }
}
