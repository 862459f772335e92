//! The invitation with which an agent enrols at a controller: one line of text, used once.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};

use neph_model::AgentName;

use super::address::ControllerAddress;
use super::role::Role;

/// Beginning of the text: its kind and version.
const PREFIX: &str = "neph-invite-1.";

/// An invitation to one agent or operator. It enrols its holder in that place, once, until it expires.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    /// The name of the agent or operator.
    pub name: AgentName,
    /// Which of them it is for.
    #[serde(default, skip_serializing_if = "Role::is_agent")]
    pub role: Role,
    /// The secret that proves it.
    pub secret: String,
    /// The certificate of the controller's authority (PEM): the agent trusts no other.
    pub authority: String,
}

impl Invitation {
    /// That the controller at this address refuses it, and why.
    pub fn refusal(&self, address: &ControllerAddress, reason: &str) -> String {
        let Self { role, name, .. } = self;
        format!("{address} refuses the invitation for {role} {name}: {reason}")
    }
}

/// A text that is no invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no invitation, or one is damaged: copy the whole line that neph control invite printed"
)]
pub struct ParseInvitationError;

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invitation of {} {}", self.role, self.name)
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        write!(f, "{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(json))
    }
}

impl FromStr for Invitation {
    type Err = ParseInvitationError;

    fn from_str(text: &str) -> Result<Self, ParseInvitationError> {
        let encoded = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or(ParseInvitationError)?;
        let json = BASE64_URL_SAFE_NO_PAD
            .decode(encoded)
            .map_err(|_| ParseInvitationError)?;
        let invitation: Self = serde_json::from_slice(&json).map_err(|_| ParseInvitationError)?;
        // A damaged certificate would otherwise be found only at the connection.
        CertificateDer::from_pem_slice(invitation.authority.as_bytes())
            .map_err(|_| ParseInvitationError)?;
        Ok(invitation)
    }
}

/// The request with which an agent enrols.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrolment {
    /// The invitation's secret.
    pub secret: String,
    /// The agent's public key: an uncompressed point of P-256, in base64.
    pub public_key: String,
}

impl fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Enrolment")
    }
}

/// The answer of the controller to an enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Enrolled {
    /// The agent's certificate (PEM).
    Certificate(String),
    /// Why there is none.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_roundtrips_as_one_line_and_hides_its_secret_in_logs() {
        let invitation = Invitation {
            name: "ams-1".parse().expect("a name"),
            role: Role::Operator,
            secret: "s3cret".to_owned(),
            authority: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
        };
        let text = invitation.to_string();
        assert!(!text.contains(char::is_whitespace), "{text}");
        assert_eq!(format!(" {text}\n").parse(), Ok(invitation.clone()));
        assert!(!format!("{invitation:?}").contains("s3cret"));
        for invalid_text in ["", "neph-invite-1.", "neph-invite-1.e30", &text[1..]] {
            assert_eq!(
                invalid_text.parse::<Invitation>(),
                Err(ParseInvitationError),
                "{invalid_text}"
            );
        }
        let damaged = Invitation {
            authority: invitation.authority.replace("AAAA", "A*AA"),
            ..invitation
        };
        assert_eq!(
            damaged.to_string().parse::<Invitation>(),
            Err(ParseInvitationError)
        );
    }
}
