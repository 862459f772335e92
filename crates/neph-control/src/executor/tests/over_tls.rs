//! The contract of executors over the real path: an agent enrols and connects by WebSocket over
//! TLS, and a campaign reaches it through the controller's socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_agent::remote::{
    ControllerAddress, EnrolError, Identity, Invitation, WebSocketLink, enrol,
};
use neph_model::AgentName;
use neph_sys::deadline::wait_until;

use super::contract;
use super::running::Running;
use crate::now::now;
use crate::{
    AgentsExecutor, CampaignSocket, Controller, ControllerPlace, OperatorPort, Registry, Sites,
    agents_at, is_running,
};

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

fn address_of(controller: &Controller) -> ControllerAddress {
    format!("wss://{}", controller.address())
        .parse()
        .expect("an address")
}

fn invite(folder: &Path, agent: &str, byte: u8) -> Invitation {
    let registry = Registry::open(folder).expect("writable");
    registry
        .invite(name(agent), now(), [byte; 32])
        .expect("invited")
}

fn eventually(condition: &str, fact: impl FnMut() -> bool) {
    assert!(wait_until(Duration::from_secs(30), fact), "{condition}");
}

fn controller(folder: &Path) -> Controller {
    let address: SocketAddr = ([127, 0, 0, 1], 0).into();
    Controller::start(folder, address, None).expect("it starts")
}

/// An agent that connects to the controller's port.
fn running(address: ControllerAddress, identity: Identity, folder: PathBuf) -> Running {
    Running::start(identity, folder, move |identity| {
        let link = WebSocketLink::connect(&address, identity).ok()?;
        Some(Box::new(link))
    })
}

#[test]
fn the_agents_executor_fulfils_the_contract_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut controllers = Vec::new();
    contract::check(&mut || {
        let folder = folder.path().join(controllers.len().to_string());
        let controller = controller(&folder.join("control"));
        let invitation = invite(&folder.join("control"), "here", 1);
        let address = address_of(&controller);
        let identity = enrol(&address, &invitation, &folder.join("agent")).expect("enrolled");
        let agent = running(address, identity, folder.join("agent"));
        let bus = CampaignSocket::connect(
            ControllerPlace::Folder(folder.join("control")),
            [name("here")].into(),
        )
        .expect("it runs");
        let sites = Sites {
            default: Some(name("here")),
            ..Sites::default()
        };
        controllers.push((agent, controller));
        let registry = Registry::open(&folder.join("control")).expect("readable");
        let signer = registry.signer().expect("a key");
        let executor = AgentsExecutor::new(&folder.join("inbox"), sites, bus, signer);
        Box::new(executor.expect("writable"))
    });
}

#[test]
fn only_enrolled_agents_may_connect_and_revoked_ones_are_disconnected() {
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = ["ours", "theirs"].map(|folder_name| folder.path().join(folder_name));
    let (here, other_controller) = (controller(&ours), controller(&theirs));
    let (address, other_address) = (address_of(&here), address_of(&other_controller));
    let invitation = invite(&ours, "ams", 1);
    let identity_of_ams =
        enrol(&address, &invitation, &folder.path().join("ams")).expect("enrolled");
    let used = enrol(&address, &invitation, &folder.path().join("x")).expect_err("it is used");
    assert!(matches!(used, EnrolError::Refused(_)), "{used}");
    let forged = Invitation {
        secret: "guessed".to_owned(),
        ..invitation
    };
    enrol(&address, &forged, &folder.path().join("x")).expect_err("no such invitation");
    assert!(!folder.path().join("x").exists(), "nothing is left of it");

    let foreign = invite(&theirs, "ams", 2);
    let other = enrol(&other_address, &foreign, &folder.path().join("other")).expect("enrolled");
    // Neither trusts the other's authority.
    WebSocketLink::connect(&address, &other).expect_err("another controller's agent");
    let error =
        WebSocketLink::connect(&other_address, &identity_of_ams).expect_err("another controller");
    assert!(matches!(error, EnrolError::OtherController), "{error}");
    drop(other_controller);

    let agent = running(address, identity_of_ams, folder.path().join("ams"));
    let present = || {
        let other_agents = agents_at(&ControllerPlace::Folder(ours.clone()));
        other_agents.expect("it runs").connected
    };
    eventually("it is connected", || {
        present()
            .first()
            .is_some_and(|agent| agent.version.is_some())
    });
    assert_eq!(present()[0].agent, name("ams"));
    Registry::open(&ours)
        .expect("readable")
        .revoke(&name("ams"))
        .expect("it was there");
    eventually("it is cut off", || present().is_empty());
    drop(agent);
    drop(here);
    assert!(!is_running(&ours).expect("readable"));
}

/// Each role connects to the path of the other role.
#[test]
fn the_certificate_of_one_role_is_not_accepted_for_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let here = controller(folder);
    let address = address_of(&here);
    let registry = Registry::open(folder).expect("writable");
    let invitation = registry.invite_operator(name("anna"), now(), [1; 32]);
    let invitation = invitation.expect("invited");
    let anna = enrol(&address, &invitation, &folder.join("anna")).expect("enrolled");
    let ams = enrol(&address, &invite(folder, "ams", 2), &folder.join("ams")).expect("enrolled");
    let port = |identity: &Identity| {
        ControllerPlace::Port(OperatorPort::new(address.clone(), identity.clone()))
    };
    agents_at(&port(&anna)).expect("she is an operator");
    let refused = agents_at(&port(&ams))
        .expect_err("it is an agent")
        .to_string();
    assert!(refused.contains("it is an agent's"), "{refused}");
    WebSocketLink::connect(&address, &ams).expect("it is an agent");
    let refused = WebSocketLink::connect(&address, &anna).expect_err("an operator");
    assert!(refused.to_string().contains("403"), "{refused}");

    // An operator's campaign claims its agents like any other.
    let busy = CampaignSocket::connect(port(&anna), [name("ams")].into()).expect("free");
    let second = CampaignSocket::connect(port(&anna), [name("ams")].into()).expect_err("taken");
    assert!(
        second
            .to_string()
            .starts_with("agent ams measures for another"),
        "{second}"
    );
    drop(busy);
    registry
        .revoke_operator(&name("anna"))
        .expect("it was there");
    let refused = agents_at(&port(&anna)).expect_err("revoked").to_string();
    assert!(refused.contains("knows no operator"), "{refused}");
}

#[test]
fn a_folder_has_one_controller_and_an_agent_one_campaign() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = controller(folder.path());
    Controller::start(folder.path(), ([127, 0, 0, 1], 0).into(), None).expect_err("one runs there");
    let connect = |agents: &[&str]| {
        let agents = agents.iter().map(|agent| name(agent)).collect();
        CampaignSocket::connect(ControllerPlace::Folder(folder.path().to_owned()), agents)
    };
    let campaign = connect(&["a", "b"]).expect("it runs");
    let busy = connect(&["b", "c"]).expect_err("b measures").to_string();
    assert!(
        busy.starts_with("agent b measures for another campaign"),
        "{busy}"
    );
    let other = connect(&["c", "d"]).expect("these measure nothing");
    drop(campaign);
    eventually("there is room", || connect(&["a", "b"]).is_ok());
    connect(&["d"]).expect_err("it still measures");
    drop(other);
    drop(first);
    connect(&["a"]).expect_err("none runs");
}
