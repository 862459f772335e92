//! Bad input: exit status 2, a sentence with the place and the remedy, nothing half-written.

use std::fs;
use std::net::TcpListener;

use crate::neph::{TestFolder, neph};

#[test]
fn a_wrong_option_is_a_usage_error_with_a_hint() {
    let ran = neph(["list", "--formt", "json"]);
    assert_eq!(ran.status, 2);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("'--format'"), "{}", ran.err);
}

#[test]
fn a_missing_workspace_is_reported_and_not_created() {
    let folder = TestFolder::empty();
    for command in ["list", "show", "report", "resume"] {
        let ran = folder.neph([command]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        assert_eq!(ran.out, "");
        assert!(ran.err.contains("there is no workspace at"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    assert!(!folder.workspace().exists());
}

#[test]
fn an_invitation_needs_an_existing_controller() {
    let folder = TestFolder::empty();
    for operator in [&[][..], &["--operator"]] {
        let invite = ["control", "invite", "carl", "--output", "carl.invitation"];
        let ran = folder.neph(invite.iter().chain(operator).copied());
        assert_eq!(ran.status, 2, "{}", ran.err);
        let expected = ".neph-control is the folder of no controller";
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn a_missing_campaign_is_reported_with_how_to_list_campaigns() {
    let folder = TestFolder::with_campaign();
    let export = ["export", "nonesuch", "--format", "csv", "--output", "x.csv"];
    for arguments in [&["list", "nonesuch"][..], &["show", "nonesuch"], &export] {
        let ran = folder.neph(arguments.iter().copied());
        assert_eq!(ran.status, 2, "{arguments:?}");
        assert!(ran.err.contains("'nonesuch'"), "{}", ran.err);
        assert!(ran.err.contains("`neph list`"), "{}", ran.err);
    }
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn an_export_that_fails_leaves_no_file() {
    let folder = TestFolder::with_campaign();
    let into = |path: &str| folder.neph(["export", "--format", "csv", "--output", path]);
    let ran = into("missing/x.csv");
    assert_eq!(ran.status, 2);
    let expected = "cannot write missing/x.csv: No such file or directory (os error 2); make the folder missing first";
    assert!(ran.err.contains(expected), "{}", ran.err);
    fs::create_dir(folder.path("folder")).expect("a folder");
    let ran = into("folder");
    assert_eq!(ran.status, 2, "{}", ran.err);
    let ran = folder.neph(["export", "--format", "parquet", "--output", "-"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("--output FILE"), "{}", ran.err);
    assert_eq!(folder.files(), ["folder"]);
}

#[test]
fn mistakes_in_a_plan_are_reported_by_line_and_nothing_runs() {
    let folder = TestFolder::empty();
    let plan = "version = 1\nname = \"x\"\nintervall = \"25ms\"\ninterval = 0\n\n[[endpoint]]\n\
                name = \"a\"\nurl = \"ws://127.0.0.1:1/\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    for command in ["check", "plan", "run"] {
        let ran = folder.neph([command, "plan.toml"]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains("plan.toml:3:1"), "{}", ran.err);
        assert!(ran.err.contains("'interval'"), "{}", ran.err);
    }
    assert_eq!(folder.files(), ["plan.toml"]);
    assert!(!folder.workspace().exists());
}

#[test]
fn a_missing_plan_is_reported() {
    let folder = TestFolder::empty();
    for command in ["check", "plan", "run"] {
        let ran = folder.neph([command, "nonesuch.toml"]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains("nonesuch.toml"), "{}", ran.err);
    }
}

#[test]
fn a_folder_without_measurements_is_not_imported() {
    let folder = TestFolder::empty();
    let ran = folder.neph(["import", "nonesuch"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("is no folder"), "{}", ran.err);
    assert!(!folder.workspace().exists());
    fs::create_dir(folder.path("empty")).expect("a folder");
    let ran = folder.neph(["import", "empty"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("#client-send-timestamp"), "{}", ran.err);
    assert!(
        !folder.workspace().exists(),
        "nothing to keep, no workspace"
    );
}

#[test]
fn a_ping_that_cannot_be_is_refused_before_it_starts() {
    for (arguments, part) in [
        (&["ping"][..], "<TARGET>"),
        (&["ping", "gopher://localhost"], "gopher"),
        (&["ping", "udp://localhost:70000"], "70000"),
        (&["ping", "localhost", "--count", "0"], "--count"),
        (&["ping", "localhost", "--interval", "0"], "--interval"),
        (&["ping", "localhost", "--interval", "-1"], "'-1'"),
        (&["ping", "udp://127.0.0.1", "-s", "70000"], "65507"),
        (&["ping", "icmp://127.0.0.1", "-s", "70000"], "65507"),
        (&["ping", "udp://127.0.0.1", "--stamp-key", ""], "file:PATH"),
        (
            &["ping", "ws://127.0.0.1:1", "--congestion", "nonesuch"],
            "loaded here: ",
        ),
    ] {
        let ran = neph(arguments.iter().copied());
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn limits_with_nothing_between_them_make_no_report() {
    let folder = TestFolder::with_campaign();
    for (limits, printed) in [
        (
            ["--rtt-min", "5s", "--rtt-max", "1s"],
            "--rtt-min 5.000 s is not below --rtt-max 1.000 s",
        ),
        (
            ["--whisker-min", "20", "--whisker-max", "10"],
            "--whisker-min 20 is not below --whisker-max 10",
        ),
    ] {
        let ran = folder.neph(["report"].into_iter().chain(limits));
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(printed), "{}", ran.err);
        assert!(!folder.workspace().join("reports").exists());
    }
}

#[test]
fn blocks_that_were_not_measured_make_no_empty_report() {
    let folder = TestFolder::with_campaign();
    let ran = folder.neph(["report", "--blocks", "9"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""));
    let printed = "neph: nothing to show of block 9: the campaign has measured block 1\n";
    assert_eq!(ran.err, printed);
    assert!(!folder.workspace().join("reports").exists());
    // What can be shown is shown, and what cannot is told.
    let ran = folder.neph(["report", "--blocks", "1,9"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, printed));
}

#[test]
fn an_unknown_figure_in_a_plan_is_refused_with_the_known_ones() {
    let folder = TestFolder::empty();
    let plan = "version = 1\nname = \"x\"\ninterval = \"25ms\"\nduration = \"1s\"\n\
        request_size = 64\n\n[[endpoint]]\nname = \"a\"\nurl = \"ws://127.0.0.1:9/\"\n\n\
        [plot]\nfigures = [\"timeline\", \"box\"]\n";
    fs::write(folder.path("p.toml"), plan).expect("a file");
    for command in ["check", "plan", "run"] {
        let ran = folder.neph([command, "p.toml"]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        assert!(
            ran.err.contains("p.toml:12:24: there is no figure 'box'"),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("ledger-bars, boxes, circuits"),
            "{}",
            ran.err
        );
    }
    assert!(!folder.workspace().exists());
}

#[test]
fn external_references_of_a_plan_are_checked_at_their_position() {
    let folder = TestFolder::empty();
    let topology = "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.80.1.1/24\"\n\
                    [[site]]\nname = \"server\"\naddress = \"10.80.1.2/24\"\n\
                    [[link]]\nname = \"path\"\na = \"client\"\nb = \"server\"\n";
    fs::write(folder.path("lab.toml"), topology).expect("a file");
    let plan = r#"version = 1
name = "x"
interval = "25ms"
messages = 1
from = ["client", "clyent"]
[[endpoint]]
name = "a"
url = "udp://10.80.1.2:8080"
key_file = "missing.key"
[plot]
figures = ["cdf", "cfd"]
[lab]
topology = "lab.toml"
prober = "nowhere"
[[lab.reflector]]
site = "sever"
[[lab.reflector]]
site = "server"
flags = ["--tls", "--listn"]
[[endpoint]]
name = "b"
url = "udp://server:8080"
"#;
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    let expected = [
        ("plan.toml:5:19", "did you mean 'client'?"),
        ("plan.toml:9:12", "read missing.key: No such file"),
        ("plan.toml:11:19", "there is no figure 'cfd'"),
        ("plan.toml:14:10", "known here: client, server"),
        ("plan.toml:16:8", "did you mean 'server'?"),
        ("plan.toml:19:10", "'--listn'"),
        ("plan.toml:22:7", "write 10.80.1.2"),
    ];
    for command in ["check", "plan", "run"] {
        let ran = folder.neph([command, "plan.toml"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{command}");
        for (at, message) in expected {
            assert!(ran.err.contains(at), "{command}: {at}: {}", ran.err);
            assert!(
                ran.err.contains(message),
                "{command}: {message}: {}",
                ran.err
            );
        }
    }
    let remote = plan.replace("lab.toml", "lib.toml");
    fs::write(folder.path("plan.toml"), remote).expect("a file");
    let ran = folder.neph(["check", "plan.toml"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("plan.toml:13:12"), "{}", ran.err);
    assert!(ran.err.contains("lib.toml cannot be read"), "{}", ran.err);
    assert!(!folder.workspace().exists());
}

#[test]
fn a_reflector_that_cannot_be_is_refused_before_it_listens() {
    let folder = TestFolder::empty();
    fs::write(folder.path("empty.pem"), "").expect("a file");
    let (missing, empty) = (folder.text("missing.pem"), folder.text("empty.pem"));
    for (arguments, part) in [
        (&["--cert", &missing, "--key", &missing][..], "missing.pem"),
        (&["--cert", &empty, "--key", &empty], "empty.pem"),
        (&["--tls-version", "1.3"], "give --tls"),
        (&["--stamp-key", ""], "env:NAME"),
        (&["--max-rate", "0"], "--max-rate"),
        (&["--max-connections", "0"], "--max-connections"),
        (&["--listen", "localhost:1"], "--listen"),
    ] {
        let common = ["reflect", "--listen", "127.0.0.1:0"];
        let common = if arguments[0] == "--listen" {
            &common[..1]
        } else {
            &common
        };
        let ran = neph(common.iter().chain(arguments).copied());
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn missing_resources_are_reported_with_all_other_mistakes() {
    let folder = TestFolder::empty();
    let plan = "version = 1\nname = \"x\"\ninterval = \"25ms\"\nduration = \"1s\"\n\
        congestion = [\"reno\", \"nosuch\"]\n[[endpoint]]\nname = \"a\"\nurl = \"ws://127.0.0.1:9/\"\n\
        [[skip]]\nendpoint = \"b\"\n[plot]\nfigures = [\"timelin\"]\n";
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let check = |arguments: &[&str]| {
        let ran = folder.neph(["check", "p.toml"]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        for part in arguments {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
    };
    let missing = "p.toml:5:23: congestion control 'nosuch' cannot be had here";
    let figure = "p.toml:12:12: there is no figure 'timelin'";
    check(&[
        missing,
        figure,
        "p.toml:10:12: there is no endpoint 'b' to skip",
    ]);
    let single = plan.replace(
        "[[skip]]\nendpoint = \"b\"\n[plot]\nfigures = [\"timelin\"]\n",
        "",
    );
    fs::write(folder.path("p.toml"), single).expect("a file");
    check(&[missing]);
}

#[test]
fn contradictory_options_are_usage_errors_with_a_remedy() {
    for (arguments, part) in [
        (
            &["flows", "upd://127.0.0.1"][..],
            "udp, syn and tcp; did you mean 'udp'?",
        ),
        (
            &[
                "flows",
                "udp://127.0.0.1",
                "--first-port",
                "65500",
                "-n",
                "512",
            ],
            "only 36 ports are left there for 512 flows",
        ),
        (&["ping", "udp://[::1]:9", "-4"], "drop -4"),
        (&["flows", "udp://127.0.0.1", "-6"], "drop -6"),
        (&["trace", "::1", "-4"], "drop -4"),
        (
            &["trace", "127.0.0.1", "--site", "no-such-site"],
            "network namespace does not exist",
        ),
        (&["check", "nonesuch.toml"], "write its path"),
        (&["lab", "check", "nonesuch.toml"], "write its path"),
    ] {
        let ran = neph(arguments.iter().copied());
        assert_eq!(
            (ran.status, ran.out.as_str()),
            (2, ""),
            "{arguments:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_workspace_that_cannot_be_made_is_named_with_the_option() {
    let test_folder = TestFolder::with_campaign();
    fs::write(test_folder.path("file"), "mine").expect("a file");
    for folder in ["file", "/proc"] {
        let ran = test_folder.neph(["import", "raw-data", "--workspace", folder]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("--workspace FOLDER"), "{}", ran.err);
    }
    assert_eq!(test_folder.files(), ["file"]);
}

#[test]
fn a_reflector_on_a_busy_port_suggests_another_port() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("bound").to_string();
    let ran = neph(["reflect", "--listen", &at]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(
        ran.err.contains("choose another port with --listen"),
        "{}",
        ran.err
    );
}
