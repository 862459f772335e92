//! Tests of invitations, certificates and roles.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::*;

fn now(seconds: i64) -> Wall {
    Wall::from_unix_nanos(seconds * 1_000_000_000)
}

fn enrolment_of(invitation: &Invitation) -> Enrolment {
    let key = rcgen::KeyPair::generate().expect("a key");
    Enrolment {
        secret: invitation.secret.clone(),
        public_key: BASE64_STANDARD.encode(key.public_key_raw()),
    }
}

#[test]
fn an_invitation_is_valid_for_one_agent_and_one_hour() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::open(folder.path()).expect("writable");
    let name: AgentName = "ams".parse().expect("a name");
    let late = registry
        .invite(name.clone(), now(0), [1; 32])
        .expect("invited");
    let invalid = registry
        .enrol(&enrolment_of(&late), now(3601))
        .expect_err("it expired");
    assert!(
        matches!(invalid, RegistryError::InvalidInvitation),
        "{invalid}"
    );

    let invitation = registry
        .invite(name.clone(), now(0), [2; 32])
        .expect("invited");
    let (enrolled, _) = registry
        .enrol(&enrolment_of(&invitation), now(3600))
        .expect("in time");
    assert_eq!(enrolled, Holder::agent(name.clone()));
    let second = registry
        .enrol(&enrolment_of(&invitation), now(1))
        .expect_err("it is used");
    assert!(
        matches!(second, RegistryError::InvalidInvitation),
        "{second}"
    );
    let name_taken = registry
        .invite(name.clone(), now(2), [3; 32])
        .expect_err("it is there");
    assert!(
        matches!(name_taken, RegistryError::NameTaken { .. }),
        "{name_taken}"
    );
    registry.revoke(&name).expect("it was there");
    assert_eq!(registry.agents().expect("readable"), []);
    registry
        .invite(name, now(3), [4; 32])
        .expect("there is room");
}

#[test]
fn enrolment_with_an_invalid_public_key_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::open(folder.path()).expect("writable");
    let name: AgentName = "ams".parse().expect("a name");
    let invitation = registry.invite(name, now(0), [1; 32]).expect("invited");
    for public_key in ["", "AAAA", "?"] {
        let secret = invitation.secret.clone();
        let public_key = public_key.to_owned();
        registry
            .enrol(&Enrolment { secret, public_key }, now(1))
            .expect_err("no key");
    }
    assert_eq!(registry.agents().expect("readable"), []);
}

#[test]
fn the_authority_is_reused_and_its_key_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("control");
    let first = Registry::open(&folder)
        .expect("writable")
        .authority
        .certificate()
        .to_owned();
    let second = Registry::open(&folder).expect("readable");
    assert_eq!(second.authority.certificate(), first);
    for path in [folder.clone(), folder.join("authority.key.pem")] {
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn operators_and_agents_have_separate_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::open(folder.path()).expect("writable");
    let name: AgentName = "anna".parse().expect("a name");
    let as_operator = registry.invite_operator(name.clone(), now(0), [1; 32]);
    let as_operator = as_operator.expect("invited");
    let as_agent = registry
        .invite(name.clone(), now(0), [2; 32])
        .expect("invited");
    assert_eq!(as_operator.role, Role::Operator);
    let mut ders = Vec::new();
    for invitation in [&as_operator, &as_agent] {
        let (holder, pem) = registry
            .enrol(&enrolment_of(invitation), now(1))
            .expect("enrolled");
        assert_eq!(holder.role, invitation.role);
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        assert_eq!(registry.holder_of(&der).expect("readable"), Some(holder));
        ders.push(der);
    }
    let names = |agents: Vec<(AgentName, EnrolledAgent)>| {
        agents.into_iter().map(|enrolled| enrolled.0).collect()
    };
    let operators: Vec<AgentName> = names(registry.operators().expect("readable"));
    let agents: Vec<AgentName> = names(registry.agents().expect("readable"));
    assert_eq!(
        (operators, agents),
        (vec![name.clone()], vec![name.clone()])
    );
    registry.revoke_operator(&name).expect("it was there");
    assert_eq!(registry.holder_of(&ders[0]).expect("readable"), None);
    assert_eq!(
        registry.holder_of(&ders[1]).expect("readable"),
        Some(Holder::agent(name.clone()))
    );
    let unknown = registry
        .revoke_operator(&name)
        .expect_err("it is gone")
        .to_string();
    let start = "there is no operator anna; neph control operators --control /";
    assert!(unknown.starts_with(start), "{unknown}");
}
