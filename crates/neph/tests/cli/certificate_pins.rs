//! A certificate that is pinned by its fingerprint, from what the reflector prints to the client.

use serde_json::Value;

use neph_sys::process;

use crate::neph::{RunOutput, TestFolder, command, neph, send_signal, start_and_read_line};

/// A reflector with TLS that prints where it listens and its certificate.
struct Tls {
    child: std::process::Child,
    port: String,
    certificate: String,
}

impl Tls {
    fn start(extra_args: &[&str]) -> Self {
        let mut command = command();
        command.args(["reflect", "--listen", "0.0.0.0:0", "--tls"]);
        let (child, mut lines, first) = start_and_read_line(command.args(extra_args));
        let mut certificate = String::new();
        std::io::BufRead::read_line(&mut lines, &mut certificate).expect("a line");
        let address = first.split(' ').nth(2).expect("an address");
        let port = address.rsplit(':').next().expect("a port").to_owned();
        Self {
            child,
            port,
            certificate,
        }
    }

    fn fingerprint(&self) -> &str {
        let (_, rest) = self
            .certificate
            .split_once("SHA-256 ")
            .expect("it is printed");
        rest.split(';').next().expect("a fingerprint")
    }

    fn ping(&self, host: &str, extra_args: &[&str]) -> RunOutput {
        let target = format!("wss://{host}:{}", self.port);
        let args = ["ping", &target, "--no-icmp", "-c", "2", "-i", "20ms", "-q"];
        neph(args.into_iter().chain(extra_args.iter().copied()))
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        send_signal("INT", self.child.id());
        let _ = self.child.wait();
    }
}

/// What openssl prints of the certificate that a server shows.
fn openssl(port: &str) -> String {
    let script = format!(
        "openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | \
         openssl x509 -noout -fingerprint -sha256"
    );
    let output = process::command("sh").args(["-c", &script]).output();
    let output = output.expect("openssl is installed for tests");
    String::from_utf8(output.stdout)
        .expect("ASCII")
        .trim()
        .to_owned()
}

#[test]
fn the_printed_fingerprint_is_openssls_and_pins_that_certificate_alone() {
    let (tls, other) = (Tls::start(&[]), Tls::start(&[]));
    let fingerprint = tls.fingerprint();
    assert_eq!(
        openssl(&tls.port),
        format!("sha256 Fingerprint={fingerprint}")
    );
    let bare = fingerprint.replace(':', "").to_lowercase();
    let either = format!("{},{fingerprint}", other.fingerprint());
    for pin in [fingerprint, &bare, &either] {
        let ran = tls.ping("127.0.0.1", &["--pin", pin]);
        assert_eq!(ran.status, 0, "{pin}: {}", ran.err);
    }
    let ran = tls.ping("127.0.0.1", &["--pin", other.fingerprint()]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let expected = format!(
        "its SHA-256 fingerprint is {fingerprint}, and pinned is {}",
        other.fingerprint()
    );
    assert!(ran.err.contains(&expected), "{}", ran.err);
    assert_eq!(
        tls.ping("127.0.0.1", &[]).status,
        1,
        "nobody vouches for it"
    );
}

#[test]
fn a_pin_that_is_none_is_one_sentence_before_anything_is_sent() {
    for wrong in ["", "12:34", "xyz"] {
        let ran = neph(["ping", "wss://127.0.0.1:9", "--pin", wrong]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert!(ran.err.contains("64 hexadecimal digits"), "{}", ran.err);
    }
    let pin = "ab".repeat(32);
    let ran = neph(["ping", "ws://127.0.0.1:9", "--pin", &pin]);
    assert!(
        ran.err.contains("--pin: only targets over TLS"),
        "{}",
        ran.err
    );
    let ran = neph(["ping", "wss://127.0.0.1:9", "--pin", &pin, "--insecure"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
}

#[test]
fn a_certificate_pin_comes_from_the_plan_or_the_command_line() {
    let tls = Tls::start(&[]);
    let folder = TestFolder::empty();
    let plan = |extra_lines: &str| {
        let text = format!(
            "version = 1\nname = \"p\"\ninterval = \"20ms\"\nmessages = 3\ntries = 1\n[[endpoint]]\n\
             name = \"a\"\nurl = \"https://127.0.0.1:{}\"\n{extra_lines}",
            tls.port
        );
        std::fs::write(folder.path("plan.toml"), text).expect("a file");
    };
    let wrong = "ab".repeat(32);
    plan(&format!("pin = \"{}\"\n", tls.fingerprint()));
    let ran = folder.neph(["run", "plan.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let ran = folder.neph(["run", "plan.toml", "--no-report", "--pin", &wrong]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    plan("pin = \"abc\"\n");
    let ran = folder.neph(["check", "plan.toml"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    plan("");
    let ran = folder.neph([
        "run",
        "plan.toml",
        "--no-report",
        "--pin",
        tls.fingerprint(),
    ]);
    assert_eq!(ran.status, 0, "{}", ran.err);
}

/// The names are those that a client uses: it verifies them where the certificate is its own authority.
#[test]
fn a_made_certificate_is_for_the_names_that_clients_use() {
    let tls = Tls::start(&["--tls-name", "probe.example"]);
    for name in ["probe.example", "localhost", "127.0.0.1"] {
        assert!(tls.certificate.contains(name), "{}", tls.certificate);
    }
    assert!(!tls.certificate.contains("0.0.0.0,"), "{}", tls.certificate);
    let folder = TestFolder::empty();
    let script = format!(
        "openssl s_client -connect 127.0.0.1:{} </dev/null 2>/dev/null | openssl x509",
        tls.port
    );
    let pem = process::command("sh")
        .args(["-c", &script])
        .output()
        .expect("openssl");
    std::fs::write(folder.path("own.pem"), pem.stdout).expect("a file");
    for host in ["127.0.0.1", "localhost"] {
        let ran = tls.ping(host, &["--ca-file", &folder.text("own.pem")]);
        assert_eq!(ran.status, 0, "{host}: {}", ran.err);
    }
}

#[test]
fn a_reflector_prints_its_certificate_and_counters_as_ndjson() {
    let mut command = command();
    let args = [
        "reflect",
        "--listen",
        "127.0.0.1:0",
        "--tls",
        "--format",
        "ndjson",
    ];
    command.args(args).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("neph runs");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    let start: Value = serde_json::from_str(&line).expect("JSON");
    let address = start["address"].as_str().expect("an address").to_owned();
    let sha256 = start["certificate"]["sha256"]
        .as_str()
        .expect("a fingerprint");
    assert_eq!(start["certificate"]["names"][1], "127.0.0.1", "{start}");
    let target = format!("https://{address}");
    let ran = neph([
        "ping",
        &target,
        "--no-icmp",
        "-c",
        "2",
        "-i",
        "20ms",
        "-q",
        "--pin",
        sha256,
    ]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    send_signal("INT", child.id());
    line.clear();
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    assert!(child.wait().expect("it ends").success());
    let end: Value = serde_json::from_str(&line).expect("JSON");
    assert!(end["counts"]["connections"].as_u64() >= Some(1), "{end}");
    assert_eq!(end["counts"]["bulk_stalled"], 0, "{end}");
}

#[test]
fn a_bare_host_with_a_pin_is_not_measured_in_plain_text() {
    let (tls, other) = (Tls::start(&[]), Tls::start(&[]));
    let bare = format!("127.0.0.1:{}", tls.port);
    let ping = |pin: &str| {
        let args = ["ping", &bare, "--no-icmp", "-c", "2", "-i", "20ms", "--pin"];
        neph(args.into_iter().chain([pin]))
    };
    let ran = ping(tls.fingerprint());
    assert_eq!(ran.status, 0, "{}", ran.err);
    let wanted = format!("wss://{bare} answers");
    assert!(ran.err.contains(&wanted), "{}", ran.err);
    assert!(
        !ran.out.contains("ws://127") || ran.out.contains("wss://"),
        "{}",
        ran.out
    );
    assert!(
        !ran.out.contains("udp://") && !ran.out.contains("tcp://"),
        "{}",
        ran.out
    );
    let ran = ping(other.fingerprint());
    assert_ne!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(tls.fingerprint()), "{}", ran.err);
}
