//! `neph ping` against real servers: openssl, a Python ASGI server, nginx and haproxy, with and without
//! TLS, and how they end connections.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use neph_sys::process;
use serde_json::Value;
use tempfile::TempDir;

use crate::neph::{RunOutput, TIMEOUT, eventually, neph};
use crate::pings::reflector;

/// A server's process, ended with it.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a skipped test is counted by what it prints"
)]
pub(crate) fn skip(test: &str, why: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "{test}: {why}");
    println!("SKIP {test}: {why}");
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("an address").port()
}

/// Starts a program that will listen at `port`; `None` where it is not installed.
pub(crate) fn serve(test: &str, port: u16, command: &mut Command) -> Option<Server> {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(process) = quiet.stdin(Stdio::null()).spawn() else {
        skip(
            test,
            &format!("{} is not installed", command.get_program().display()),
        );
        return None;
    };
    let server = Server { process, port };
    eventually("the server listens", TIMEOUT, || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some(server)
}

/// A folder with a certificate for localhost and 127.0.0.1, as `openssl req -x509` makes it.
pub(crate) fn certificate() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let openssl = process::command("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-keyout", "k.pem", "-out", "c.pem", "-days", "30"])
        .args(["-subj", "/CN=localhost", "-addext"])
        .arg("subjectAltName=DNS:localhost,IP:127.0.0.1")
        .current_dir(folder.path())
        .output()
        .expect("openssl runs");
    assert!(
        openssl.status.success(),
        "{}",
        String::from_utf8_lossy(&openssl.stderr)
    );
    folder
}

fn ping(target: &str, extra_args: &[&str]) -> (RunOutput, Value) {
    let some = ["ping", target, "--no-icmp", "--format", "json"];
    let ran = neph(some.into_iter().chain(extra_args.iter().copied()));
    let document = serde_json::from_str(&ran.out).unwrap_or(Value::Null);
    (ran, document)
}

/// Replies, errors, lost and not sent of the first flow.
fn outcome_counts(document: &Value) -> [u64; 4] {
    ["replies", "errors", "lost", "failed"].map(|key| {
        document["flows"][0]["tally"][key]
            .as_u64()
            .expect("a count")
    })
}

/// On how many connections the messages went.
fn connection_count(document: &Value) -> usize {
    let messages = document["messages"].as_array().expect("messages");
    let mut entries: Vec<_> = messages
        .iter()
        .filter_map(|message| message["connection"].as_u64())
        .collect();
    entries.sort_unstable();
    entries.dedup();
    entries.len()
}

#[test]
fn close_notify_ends_a_reply_and_a_given_certificate_is_trusted() {
    let folder = certificate();
    let port = free_port();
    let at = port.to_string();
    let mut command = process::command("openssl");
    command.args([
        "s_server", "-accept", &at, "-cert", "c.pem", "-key", "k.pem", "-www",
    ]);
    let test = "close_notify_ends_a_reply_and_a_given_certificate_is_trusted";
    let Some(server) = serve(test, port, command.current_dir(folder.path())) else {
        return;
    };
    let target = format!("https://localhost:{}", server.port);
    let file = folder.path().join("c.pem");
    let trust = ["--ca-file", file.to_str().expect("UTF-8")];
    let (ran, document) = ping(
        &target,
        &[&["-c", "3", "-i", "100ms", "-4"][..], &trust].concat(),
    );
    assert_eq!(
        (ran.status, outcome_counts(&document)),
        (0, [3, 0, 0, 0]),
        "{}",
        ran.err
    );
    // Each answer ends with close_notify and nothing else: the next message takes a new connection,
    // and its ledger has it.
    assert_eq!(connection_count(&document), 3);
    let last = document["messages"][2]["ledger"].to_string();
    assert!(last.contains("handshake"), "{last}");
    let (ran, _) = ping(&target, &["-c", "1", "-4"]);
    assert!(
        ran.err
            .contains("give this very certificate with --ca-file"),
        "{}",
        ran.err
    );
}

const ASGI: &str = r#"
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    await send(head)
    await send({"type": "http.response.body", "body": b"ok"})
"#;

#[test]
fn no_message_is_lost_where_a_keep_alive_ends_between_two_messages() {
    let test = "no_message_is_lost_where_a_keep_alive_ends_between_two_messages";
    let Some(python) = env::var_os("NEPH_PYTHON") else {
        skip(
            test,
            "NEPH_PYTHON names no Python with uvicorn (make test makes one)",
        );
        return;
    };
    let folder = certificate();
    fs::write(folder.path().join("app.py"), ASGI).expect("write");
    for tls in [false, true] {
        let port = free_port();
        let at = port.to_string();
        let mut command = process::command(&python);
        command
            .args([
                "-m",
                "uvicorn",
                "app:app",
                "--port",
                &at,
                "--timeout-keep-alive",
                "1",
            ])
            .current_dir(folder.path());
        let scheme = if tls {
            command.args(["--ssl-certfile", "c.pem", "--ssl-keyfile", "k.pem"]);
            "https"
        } else {
            "http"
        };
        let Some(server) = serve(test, port, &mut command) else {
            return;
        };
        let target = format!("{scheme}://127.0.0.1:{}", server.port);
        // After the keep-alive, and as it ends.
        for interval in ["1500ms", "1s"] {
            let trust: &[&str] = if tls { &["--insecure"] } else { &[] };
            let some = ["-c", "4", "-i", interval];
            let (ran, document) = ping(&target, &[&some[..], trust].concat());
            let expected = format!("{scheme} every {interval}: {}", ran.err);
            assert_eq!(
                (ran.status, outcome_counts(&document)),
                (0, [4, 0, 0, 0]),
                "{expected}"
            );
        }
    }
}

/// nginx with this inside of its server block.
pub(crate) fn nginx(test: &str, folder: &TempDir, inside: &str) -> Option<Server> {
    let port = free_port();
    let path = folder.path().display();
    let settings = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/error;\n\
         events {{}}\nhttp {{ access_log off; server {{ listen 127.0.0.1:{port}; {inside} }} }}\n"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, settings).expect("write");
    let mut command = process::command("nginx");
    serve(
        test,
        port,
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file),
    )
}

#[test]
fn shares_of_all_time_add_up_although_only_some_messages_connect() {
    let test = "shares_of_all_time_add_up_although_only_some_messages_connect";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = nginx(
        test,
        &folder,
        "keepalive_requests 5; location / { return 200 ok; }",
    ) else {
        return;
    };
    let target = format!("http://127.0.0.1:{}", server.port);
    let (ran, document) = ping(&target, &["-c", "20", "-i", "20ms"]);
    assert_eq!(
        (ran.status, outcome_counts(&document)),
        (0, [20, 0, 0, 0]),
        "{}",
        ran.err
    );
    // The warm-up's HEAD has a connection of its own.
    assert_eq!(connection_count(&document), 4);
    let stages = document["flows"][0]["stages"].as_array().expect("stages");
    let shares = stages
        .iter()
        .map(|stage| stage["share"].as_f64().expect("a share"));
    let sum: f64 = shares.sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}

#[test]
fn a_status_that_is_not_expected_is_an_error_and_never_a_latency() {
    let test = "a_status_that_is_not_expected_is_an_error_and_never_a_latency";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inside = "location /ok { return 200 ok; } location /no { return 503; } \
                  location /moved { return 302 /ok; }";
    let Some(server) = nginx(test, &folder, inside) else {
        return;
    };
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    let some = ["-c", "4", "-i", "50ms"];
    for (path, status) in [("/no", "http-503"), ("/moved", "http-302")] {
        let (ran, document) = ping(&at(path), &some);
        assert_eq!(
            (ran.status, outcome_counts(&document)),
            (1, [0, 4, 0, 0]),
            "{}",
            ran.err
        );
        let flow = &document["flows"][0];
        assert_eq!(flow["answers"][status], 4);
        assert_eq!(flow["response_ns"], Value::Null, "no latency of an error");
        assert_eq!(document["messages"][0]["answer"], status);
    }
    let (ran, document) = ping(
        &at("/no"),
        &["-c", "4", "-i", "50ms", "--expect-status", "503"],
    );
    assert_eq!(
        (ran.status, outcome_counts(&document)),
        (0, [4, 0, 0, 0]),
        "{}",
        ran.err
    );
    let ran = neph(["ping", &at("/no"), "--no-icmp", "-c", "4", "-i", "50ms"]);
    assert!(ran.out.contains("4 errors (100.00 %)"), "{}", ran.out);
    assert!(ran.out.contains("4 x HTTP status 503"), "{}", ran.out);
}

/// haproxy in front of these servers of ours.
pub(crate) fn haproxy(
    test: &str,
    folder: &TempDir,
    extra_lines: &str,
    servers: &[SocketAddr],
) -> Option<Server> {
    let port = free_port();
    let mut settings = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n {extra_lines}\n\
         frontend f\n bind 127.0.0.1:{port}\n default_backend b\nbackend b\n balance roundrobin\n"
    );
    for (number, server) in servers.iter().enumerate() {
        settings.push_str(&format!(" server s{number} {server}\n"));
    }
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, settings).expect("write");
    let mut command = process::command("haproxy");
    serve(test, port, command.arg("-db").arg("-f").arg(&file))
}

#[test]
fn a_proxy_that_ends_idle_connections_loses_no_message() {
    let test = "a_proxy_that_ends_idle_connections_loses_no_message";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let reflector = reflector();
    let extra_lines = "timeout http-keep-alive 300ms\n timeout http-request 300ms";
    let Some(server) = haproxy(test, &folder, extra_lines, &[reflector.address()]) else {
        return;
    };
    let target = format!("http://127.0.0.1:{}", server.port);
    for interval in ["300ms", "450ms"] {
        let (ran, document) = ping(&target, &["-c", "6", "-i", interval]);
        let expected = format!("every {interval}: {}", ran.err);
        assert_eq!(
            (ran.status, outcome_counts(&document)),
            (0, [6, 0, 0, 0]),
            "{expected}"
        );
    }
}

/// A reflector whose clock is 5000 s ahead of ours.
pub(crate) fn reflector_with_other_clock(test: &str) -> Option<Server> {
    let port = free_port();
    let mut command = process::command("unshare");
    command.args(["--time", "--monotonic", "5000", "--fork", "--kill-child"]);
    command.arg(env!("CARGO_BIN_EXE_neph"));
    command.args(["reflect", "--listen", &format!("127.0.0.1:{port}")]);
    let allowed = process::command("unshare")
        .args(["--time", "--monotonic", "5000", "--fork", "true"])
        .stderr(Stdio::null())
        .status();
    if !allowed.is_ok_and(|status| status.success()) {
        skip(test, "time namespaces need root");
        return None;
    }
    serve(test, port, &mut command)
}

#[test]
fn two_reflectors_behind_one_address_are_reported_and_share_no_clock() {
    let test = "two_reflectors_behind_one_address_are_reported_and_share_no_clock";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let own_reflector = reflector();
    let Some(ahead) = reflector_with_other_clock(test) else {
        return;
    };
    let servers = [
        own_reflector.address(),
        SocketAddr::from(([127, 0, 0, 1], ahead.port)),
    ];
    let Some(balancer) = haproxy(test, &folder, "", &servers) else {
        return;
    };
    let target = format!("http://127.0.0.1:{}", balancer.port);
    let (ran, document) = ping(&target, &["-c", "12", "-i", "50ms"]);
    assert_eq!(
        (ran.status, outcome_counts(&document)),
        (0, [12, 0, 0, 0]),
        "{}",
        ran.err
    );
    let flow = &document["flows"][0];
    assert_eq!(
        (&flow["backends"], &flow["same_clock"]),
        (&2.into(), &false.into())
    );
    let ran = neph(["ping", &target, "--no-icmp", "-c", "12", "-i", "50ms"]);
    assert!(
        ran.out.contains("2 machines answer by turns"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("the same clock"), "{}", ran.out);
}
