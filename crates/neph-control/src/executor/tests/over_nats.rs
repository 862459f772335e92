//! The same contract over NATS; a server that is killed or disconnected loses nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use neph_agent::remote::{ControllerAddress, Identity, Invitation, enrol};
use neph_model::{
    AgentName, Ending, Executor, ExperimentId, ExperimentOrder, Order, OrderResult, Span, Update,
};
use neph_sys::deadline::{Deadline, wait_until};

use super::contract;
use super::nats_server::{Server, free_port, has_server};
use super::running::Running;
use crate::now::now;
use crate::{
    AgentsExecutor, CampaignSocket, Controller, ControllerPlace, NatsLink, Registry, Sites,
};

fn name() -> AgentName {
    "here".parse().expect("a name")
}

/// A controller and an enrolled agent, before any bus.
struct Enrolled {
    folder: PathBuf,
    identity: Identity,
}

impl Enrolled {
    fn in_folder(folder: &Path) -> Self {
        let control = folder.join("control");
        let address = ([127, 0, 0, 1], 0).into();
        let controller = Controller::start(&control, address, None).expect("it starts");
        let registry = Registry::open(&control).expect("writable");
        let invitation: Invitation = registry.invite(name(), now(), [1; 32]).expect("invited");
        let address = ControllerAddress::Port(controller.address().to_string());
        let identity = enrol(&address, &invitation, &folder.join("agent")).expect("enrolled");
        Self {
            folder: folder.to_owned(),
            identity,
        }
    }

    fn control(&self) -> PathBuf {
        self.folder.join("control")
    }

    fn controller(&self, servers: &str) -> Controller {
        let address = ([127, 0, 0, 1], 0).into();
        let mut started = None;
        // A server may reject it just after the start.
        let is_there = wait_until(Duration::from_secs(20), || {
            started = Controller::start(&self.control(), address, Some(servers)).ok();
            started.is_some()
        });
        assert!(
            is_there,
            "{:?}",
            Controller::start(&self.control(), address, Some(servers))
        );
        started.expect("it is there")
    }

    fn executor(&self) -> AgentsExecutor<CampaignSocket> {
        let bus = CampaignSocket::connect(ControllerPlace::Folder(self.control()), [name()].into())
            .expect("it runs");
        let sites = Sites {
            default: Some(name()),
            ..Sites::default()
        };
        let signer = Registry::open(&self.control())
            .expect("readable")
            .signer()
            .expect("a key");
        AgentsExecutor::new(&self.folder.join("inbox"), sites, bus, signer).expect("writable")
    }
}

/// The agent, connected to these servers.
fn running(enrolled: &Enrolled, servers: &str) -> Running {
    let servers = servers.to_owned();
    let folder = enrolled.folder.join("agent");
    Running::start(enrolled.identity.clone(), folder, move |identity| {
        let link = NatsLink::connect(&servers, identity).ok()?;
        Some(Box::new(link))
    })
}

#[test]
fn the_agents_executor_fulfils_the_contract_over_nats() {
    if !has_server("the_agents_executor_fulfils_the_contract_over_nats") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut controllers = Vec::new();
    contract::check(&mut || {
        let enrolled = Enrolled::in_folder(&folder.path().join(controllers.len().to_string()));
        let server = Server::start(&enrolled.control(), free_port(), "");
        let servers = format!("127.0.0.1:{}", server.port);
        let controller = enrolled.controller(&servers);
        let agent = running(&enrolled, &servers);
        let executor = enrolled.executor();
        controllers.push((agent, controller, server));
        Box::new(executor)
    });
}

/// An experiment of some seconds.
fn order(messages: u64) -> ExperimentOrder {
    let mut order = super::agent::order(&format!("ws://{}", super::agent::lasting()));
    order.scenario.interval = Span::from_millis(5);
    order.scenario.messages = messages;
    order.timeout = Span::from_secs(1);
    order
}

/// Runs experiments one after the other, and calls `meanwhile` during each. Each must be complete,
/// and its journal must have each message once.
fn carry_out(
    executor: &mut dyn Executor,
    orders: Vec<ExperimentOrder>,
    meanwhile: &mut dyn FnMut(usize),
) {
    let deadline = Deadline::after(Duration::from_mins(3));
    for (at, order) in orders.into_iter().enumerate() {
        let (id, messages) = (order.experiment.id, order.scenario.messages);
        executor.submit(Order::Experiments(vec![order]));
        let mut journal = None;
        let mut is_disturbed = false;
        let results = loop {
            assert!(!deadline.has_passed(), "experiment {at} does not end");
            let mut done = None;
            for (_, update) in executor.poll(Span::from_millis(50)).expect("it is there") {
                match update {
                    Update::Progress(_) if !is_disturbed => {
                        is_disturbed = true;
                        meanwhile(at);
                    }
                    Update::Journalled(of, folder) if of == id => journal = Some(folder),
                    Update::Done(result) => done = Some(result),
                    _ => {}
                }
            }
            if let Some(done) = done {
                break done;
            }
        };
        let Ok(OrderResult::Experiments(results)) = results else {
            panic!("{results:?}")
        };
        assert_eq!(
            results[0].as_ref().map(|result| &result.ending),
            Ok(&Ending::Complete)
        );
        let folder = journal.expect("it was measured");
        assert_eq!(contract::journalled(&folder, id).len() as u64, messages);
        executor.stored(ExperimentId::clone(&id)).expect("writable");
    }
}

#[test]
fn a_nats_server_killed_during_an_order_loses_no_messages() {
    if !has_server("a_nats_server_killed_during_an_order_loses_no_messages") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let enrolled = Enrolled::in_folder(folder.path());
    let mut server = Server::start(&enrolled.control(), free_port(), "");
    let servers = format!("127.0.0.1:{}", server.port);
    let _controller = enrolled.controller(&servers);
    let _agent = running(&enrolled, &servers);
    let mut executor = enrolled.executor();
    let orders = (0..4).map(|_| order(200)).collect();
    carry_out(&mut executor, orders, &mut |_| {
        server.kill();
        server.start_anew();
    });
}

#[test]
fn an_agent_switches_from_a_hanging_server_of_a_cluster_without_loss() {
    if !has_server("an_agent_whose_server_hangs_in_a_cluster_of_three") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let enrolled = Enrolled::in_folder(folder.path());
    let ports: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
    let routes: Vec<String> = ports
        .iter()
        .map(|(_, port)| format!("nats://127.0.0.1:{port}"))
        .collect();
    let servers: Vec<Server> = ports
        .iter()
        .map(|(port, cluster)| {
            let routes = routes.join(", ");
            let more = format!(
                "cluster {{ name: neph, listen: \"127.0.0.1:{cluster}\", routes: [{routes}], \
                 no_advertise: true }}\nserver_name: n{port}\n"
            );
            Server::start(&enrolled.control(), *port, &more)
        })
        .collect();
    let at = |index: usize| format!("127.0.0.1:{}", servers[index].port);
    let _controller = enrolled.controller(&at(0));
    let _agent = running(&enrolled, &format!("{},{}", at(1), at(2)));
    let mut executor = enrolled.executor();
    let orders = (0..2).map(|_| order(200)).collect();
    carry_out(&mut executor, orders, &mut |index| {
        // The agent uses one of the two; the second time the other one.
        servers[2 - index].pause("-CONT");
        servers[1 + index].pause("-STOP");
    });
    for server in &servers {
        server.pause("-CONT");
    }
}

/// Errors of the server when an agent uses subjects of another one.
fn refused(servers: &str, identity: &Identity) -> Vec<String> {
    let received = Arc::new(Mutex::new(Vec::new()));
    let refused = Arc::clone(&received);
    let callback = move |event: async_nats::Event| {
        refused.lock().expect("whole").push(event.to_string());
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    let tls = Arc::unwrap_or_clone(identity.tls().expect("a certificate"));
    runtime.block_on(async {
        let client =
            crate::nats::connect(servers, tls, crate::nats::Role::Controller, callback).await;
        let client = client.expect("it is a user");
        let _to = client.subscribe("neph.to.other").await.expect("sent");
        let _from = client.subscribe("neph.from.>").await.expect("sent");
        client
            .publish("neph.from.other", "x".into())
            .await
            .expect("sent");
        let deadline = Deadline::after(Duration::from_secs(20));
        while received.lock().expect("whole").len() < 4 && !deadline.has_passed() {
            client.flush().await.expect("sent");
        }
    });
    let received = received.lock().expect("whole");
    received.clone()
}

#[test]
fn a_nats_user_cannot_read_or_write_the_subjects_of_others() {
    if !has_server("a_nats_user_cannot_read_or_write_the_subjects_of_others") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let enrolled = Enrolled::in_folder(folder.path());
    let server = Server::start(&enrolled.control(), free_port(), "");
    let servers = format!("127.0.0.1:{}", server.port);
    let config = std::fs::read_to_string(&server.config).expect("readable");
    assert!(
        !config.contains("\"here\"") && config.contains("neph.from.here"),
        "{config}"
    );
    let refused = refused(&servers, &enrolled.identity);
    for part in [
        "Subscription to \"neph.to.other\"",
        "Subscription to \"neph.from.>\"",
        "Publish to \"neph.from.other\"",
    ] {
        assert!(
            refused.iter().any(|refusal| refusal.contains(part)),
            "{part}: {refused:?}"
        );
    }
    // A revoked agent that is in no configuration is rejected.
    Registry::open(&enrolled.control())
        .expect("readable")
        .revoke(&name())
        .expect("it was there");
    drop(server);
    let server = Server::start(&enrolled.control(), free_port(), "");
    let servers = format!("127.0.0.1:{}", server.port);
    NatsLink::connect(&servers, &enrolled.identity).expect_err("it is no user");
}
