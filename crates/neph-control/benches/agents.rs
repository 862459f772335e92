//! Benchmarks the agents of a controller: connections, time of an order to each, memory and CPU.
//!
//! `cargo bench -p neph-control --bench agents [-- AGENTS ROUNDS [nats]]` starts a controller
//! (`NEPH`, or target/release/neph). In each round, each stub agent (with TLS and a certificate) gets an order
//! and answers at once without measuring. `nats`: over a NATS server on `PATH`.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]
#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first error")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use neph_agent::remote::{
    Beat, CONTROLLER_NAME, Ended, Enrolment, FromAgent, Grant, Granted, Hello, Identity,
    OrderState, PROTOCOL, ToAgent, decode_to_agent, encode_from_agent,
};
use neph_control::{
    AgentsExecutor, CampaignSocket, ControllerPlace, Registry, Sites, write_nats_config,
};
use neph_model::{
    AgentName, Executor, Order, OrderResult, Span, Ticket, TraceLimits, Traceroute,
    TracerouteOrder, Update, Wall,
};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<usize>().ok());
    let agents = numbers.next().unwrap_or(500);
    let rounds = numbers.next().unwrap_or(3);
    let folder = tempfile::tempdir().unwrap();
    let identities = enrol(folder.path(), agents);
    let has_bus = std::env::args().any(|argument| argument == "nats");
    let bus = has_bus.then(|| nats(folder.path()));
    let (controller, port) = controller(folder.path(), bus.as_ref().map(|(_, port)| *port));

    let connected = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    match &bus {
        None => connect(identities, port, &connected),
        Some((_, port)) => connect_over_nats(identities, *port, &connected),
    }
    while connected.load(Ordering::Relaxed) < agents {
        std::thread::sleep(Duration::from_millis(5));
        assert!(began.elapsed() < Duration::from_mins(5), "not all connect");
    }
    let took = began.elapsed();
    println!("{agents} agents connected in {:.2} s", took.as_secs_f64());
    let before = usage(controller.0.id());
    std::thread::sleep(Duration::from_secs(10));
    let idle = usage(controller.0.id());
    println!(
        "controller: {} KiB, {:.1} KiB an agent; idle {:.2} % of a core",
        idle.kib,
        idle.kib as f64 / agents as f64,
        (idle.cpu - before.cpu) * 10.0
    );
    for round in 1..=rounds {
        order_all(folder.path(), agents, round);
    }
    let after = usage(controller.0.id());
    if let Some((server, _)) = &bus {
        let server = usage(server.0.id());
        println!(
            "nats-server: {} KiB, {:.1} s CPU in all",
            server.kib, server.cpu
        );
    }
    println!(
        "controller: {} KiB, {:.3} s CPU for {} orders",
        after.kib,
        after.cpu - idle.cpu,
        agents * rounds
    );
}

/// Ends the controller when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn name(at: usize) -> AgentName {
    format!("agent-{at}").parse().unwrap()
}

/// Enrols all agents without a connection.
fn enrol(folder: &Path, agents: usize) -> Vec<Identity> {
    let registry = Registry::open(folder).unwrap();
    let now = Wall::from_unix_nanos(1);
    let enrol_one = |at| {
        let invitation = registry
            .invite(name(at), now, neph_sys::random::bytes().unwrap())
            .unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let enrolment = Enrolment {
            secret: invitation.secret,
            public_key: BASE64_STANDARD.encode(key.public_key_raw()),
        };
        let (_, certificate) = registry.enrol(&enrolment, now).unwrap();
        Identity::new(key.serialize_pem(), certificate, invitation.authority)
    };
    (0..agents).map(enrol_one).collect()
}

/// A NATS server with a user for each agent, and its port.
fn nats(folder: &Path) -> (Running, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let registry = Registry::open(folder).unwrap();
    let (listen, names) = (format!("127.0.0.1:{port}"), ["127.0.0.1".to_owned()]);
    let files = write_nats_config(&registry, &folder.join("nats"), &listen, &names).unwrap();
    let mut server = Command::new("nats-server");
    let server = server
        .arg("-c")
        .arg(files.config)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(50));
    }
    (Running(server), port)
}

/// Connects stubs over NATS on a separate thread.
fn connect_over_nats(identities: Vec<Identity>, port: u16, connected: &Arc<AtomicUsize>) {
    let connected = Arc::clone(connected);
    std::thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for identity in identities {
                let tls = Arc::unwrap_or_clone(identity.tls().unwrap());
                let options = async_nats::ConnectOptions::new().require_tls(true);
                let options = options.tls_client_config(tls).subscription_capacity(64);
                let client = options
                    .connect(format!("nats://127.0.0.1:{port}"))
                    .await
                    .unwrap();
                tasks.spawn(stub_over_nats(client, identity, Arc::clone(&connected)));
            }
            while tasks.join_next().await.is_some() {}
        });
    });
}

async fn stub_over_nats(
    client: async_nats::Client,
    identity: Identity,
    connected: Arc<AtomicUsize>,
) {
    use futures_util::StreamExt;
    let name = identity.name().unwrap();
    let from = format!("neph.from.{name}");
    let mut received = client.subscribe(format!("neph.to.{name}")).await.unwrap();
    // Heartbeats every 5 s, as from a real agent.
    let mut beats = tokio::time::interval(Duration::from_secs(5));
    let mut is_first = true;
    loop {
        let message = tokio::select! {
            message = received.next() => match message {
                Some(message) => match answer(&decode_to_agent(&message.payload).unwrap()) {
                    Some(answer) => answer,
                    None => continue,
                },
                None => return,
            },
            _ = beats.tick() => {
                if is_first {
                    is_first = false;
                    connected.fetch_add(1, Ordering::Relaxed);
                    hello()
                } else {
                    let sent = Wall::from_unix_nanos(1);
                    let (running, clock, refusals) = (0, None, BTreeMap::new());
                    FromAgent::Beat(Beat { sent, running, clock, refusals })
                }
            }
        };
        let bytes = encode_from_agent(&message).unwrap();
        if client.publish(from.clone(), bytes.into()).await.is_err() {
            return;
        }
    }
}

const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/neph");
fn controller(folder: &Path, bus: Option<u16>) -> (Running, u16) {
    let neph = std::env::var("NEPH").unwrap_or_else(|_| BUILT.to_owned());
    let child = Command::new(neph)
        .args(["control", "serve", "--listen", "127.0.0.1:0", "--control"])
        .arg(folder)
        .args(bus.map(|port| format!("--bus=nats://127.0.0.1:{port}")))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Running(child);
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    // A bus may have printed a line before.
    let line = lines.find_map(|line| Some(line.unwrap().split_once("listening at ")?.1.to_owned()));
    std::thread::spawn(move || lines.for_each(drop));
    let address = line.unwrap();
    let port = address
        .split(',')
        .next()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    (child, port.parse().unwrap())
}

/// Connects stubs on a separate thread.
fn connect(identities: Vec<Identity>, port: u16, connected: &Arc<AtomicUsize>) {
    let connected = Arc::clone(connected);
    std::thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for identity in identities {
                let tls = identity.tls().unwrap();
                let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let connected = Arc::clone(&connected);
                tasks.spawn(stub(stream, TlsConnector::from(tls), connected));
            }
            while tasks.join_next().await.is_some() {}
        });
    });
}

async fn stub(stream: TcpStream, tls: TlsConnector, connected: Arc<AtomicUsize>) {
    use futures_util::{SinkExt, StreamExt};
    let server = ServerName::try_from(CONTROLLER_NAME).unwrap();
    let stream = tls.connect(server, stream).await.unwrap();
    let url = format!("wss://{CONTROLLER_NAME}/agent");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let bytes = encode_from_agent(&hello()).unwrap();
    socket.send(Message::binary(bytes)).await.unwrap();
    connected.fetch_add(1, Ordering::Relaxed);
    while let Some(Ok(message)) = socket.next().await {
        let Message::Binary(bytes) = message else {
            continue;
        };
        let Some(answer) = answer(&decode_to_agent(&bytes).unwrap()) else {
            continue;
        };
        let bytes = encode_from_agent(&answer).unwrap();
        if socket.send(Message::binary(bytes)).await.is_err() {
            return;
        }
    }
}

fn hello() -> FromAgent {
    FromAgent::Hello(Hello {
        protocol: PROTOCOL,
        version: "stub".to_owned(),
        holds: Vec::new(),
        results: 0,
        policy: BTreeMap::new(),
        labels: neph_model::Labels::default(),
    })
}

/// The order of a grant. Real agents verify its signature; here one thread would verify all.
fn order_in(grant: &Grant) -> Order {
    let grant = serde_json::to_value(grant).unwrap();
    let granted: Granted = serde_json::from_str(grant["granted"].as_str().unwrap()).unwrap();
    granted.order
}

/// The answer of a stub.
fn answer(message: &ToAgent) -> Option<FromAgent> {
    let (id, state) = match message {
        ToAgent::Begin { id, grant } => (*id, ended(&order_in(grant))),
        ToAgent::Stored { id } => (*id, OrderState::Forgotten),
        ToAgent::Beat { .. } => return None,
        ToAgent::Ask { id } | ToAgent::Cancel { id } | ToAgent::Fetch { id, .. } => {
            (*id, OrderState::Unknown)
        }
    };
    Some(FromAgent::State { id, state })
}

/// The result of an empty traceroute.
fn ended(order: &Order) -> OrderState {
    let Order::Traceroute(order) = order else {
        return OrderState::Unknown;
    };
    let traceroute = Traceroute {
        block: order.block,
        endpoint: order.endpoint.clone(),
        site: None,
        destination: [127, 0, 0, 1].into(),
        started: Wall::from_unix_nanos(1),
        hops: Vec::new(),
        reached: false,
        failure: None,
    };
    OrderState::Ended(Box::new(Ended {
        prepared: None,
        result: Ok(OrderResult::Traceroute(traceroute)),
        files: Vec::new(),
    }))
}

fn order_all(folder: &Path, agents: usize, round: usize) {
    let sites = Sites {
        agents: (0..agents).map(|at| (at.to_string(), name(at))).collect(),
        default: None,
        reflectors: BTreeMap::new(),
    };
    let controller_place = ControllerPlace::Folder(folder.to_owned());
    let bus = CampaignSocket::connect(controller_place, (0..agents).map(name).collect()).unwrap();
    let signer = Registry::open(folder).unwrap().signer().unwrap();
    let mut executor = AgentsExecutor::new(&folder.join("inbox"), sites, bus, signer).unwrap();
    let mut out: BTreeMap<Ticket, Instant> = BTreeMap::new();
    let began = Instant::now();
    for at in 0..agents {
        let order = Order::Traceroute(TracerouteOrder {
            block: 0,
            endpoint: "x".repeat(1500),
            host: "h".to_owned(),
            limits: TraceLimits::default(),
            site: Some(at.to_string()),
        });
        out.insert(executor.submit(order), Instant::now());
    }
    let mut took = Vec::with_capacity(agents);
    while !out.is_empty() {
        assert!(
            began.elapsed() < Duration::from_mins(2),
            "{} are left",
            out.len()
        );
        for (ticket, update) in executor.poll(Span::from_millis(20)).unwrap() {
            if let Update::Done(result) = update {
                result.unwrap();
                took.push(out.remove(&ticket).unwrap().elapsed());
            }
        }
    }
    let elapsed = began.elapsed();
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "round {round}: {agents} orders in {:.2} s; an order p50 {:.1} ms, p99 {:.1} ms",
        elapsed.as_secs_f64(),
        at(50),
        at(99)
    );
}

struct Usage {
    kib: u64,
    cpu: f64,
}

/// Resident memory and CPU time of a process.
fn usage(pid: u32) -> Usage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let rss = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Usage {
        kib: rss.split_whitespace().next().unwrap().parse().unwrap(),
        cpu: ticks as f64 / 100.0,
    }
}
