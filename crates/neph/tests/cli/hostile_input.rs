//! What comes from outside: text that a terminal would obey, files without end, and files that are
//! in the way of results.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use neph_sys::deadline::Stopwatch;
use neph_sys::process;

use crate::neph::{RunOutput, TestFolder};

/// Longer than any refusal takes on a busy machine, far shorter than reading without end.
const AT_ONCE: Duration = Duration::from_secs(10);
const HOSTILE: &str = "\x1b]52;c;QQ==\x07\x1b[2J\u{9b}31m\u{202e}\u{200b}\u{feff}\u{7f}";

fn is_safe(text: &str) -> bool {
    let is_obeyed = |letter: char| {
        (letter.is_control() && letter != '\n')
            || ('\u{200b}'..='\u{200f}').contains(&letter)
            || ('\u{202a}'..='\u{202e}').contains(&letter)
            || letter == '\u{feff}'
    };
    !text.contains(is_obeyed)
}

fn is_refused(ran: &RunOutput, part: &str) {
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(part), "{}", ran.err);
    assert!(is_safe(&ran.err) && is_safe(&ran.out), "{:?}", ran.err);
}

#[test]
fn file_contents_cannot_control_the_terminal() {
    let folder = TestFolder::empty();
    let texts = [
        format!("version = 1\nname = '{HOSTILE}'\n\"{HOSTILE}\" = 1\n"),
        format!("version = 1 {HOSTILE}\n"),
        format!("# {HOSTILE}\nbogus = \"{HOSTILE}\"\n# {HOSTILE}\n"),
    ];
    for text in texts {
        fs::write(folder.path("hostile.toml"), text).expect("written");
        for args in [&["check"][..], &["run"], &["lab", "check"], &["lab", "up"]] {
            let ran = folder.neph(args.iter().copied().chain(["hostile.toml"]));
            is_refused(&ran, "hostile.toml");
        }
    }
}

#[test]
fn a_name_on_the_command_line_makes_one_line() {
    let folder = TestFolder::empty();
    let name = format!("{HOSTILE}\nneph: all is well");
    for args in [
        &["check", &name][..],
        &["export", &name, "--format", "csv", "-o", "x.csv"],
        &["ping", "ws://127.0.0.1:9", "--ca-file", &name],
        &[
            "flows",
            "udp://127.0.0.1:9",
            "--stamp-key",
            &format!("file:{name}"),
        ],
    ] {
        let ran = folder.neph(args.iter().copied());
        assert!(is_safe(&ran.err), "{:?}", ran.err);
        assert!(!ran.err.contains("\nneph: all is well"), "{}", ran.err);
    }
}

#[test]
fn of_a_line_of_megabytes_little_is_shown() {
    let folder = TestFolder::empty();
    let text = format!("version = 1\nbogus = \"{}\"\n", "x".repeat(10_000_000));
    fs::write(folder.path("long.toml"), text).expect("written");
    let ran = folder.neph(["check", "long.toml"]);
    is_refused(&ran, "'bogus' is not known here");
    assert!(ran.err.len() < 10_000, "{}", ran.err.len());
}

/// The words of a command that reads a file.
type CommandArgs = &'static dyn Fn(&str) -> Vec<String>;

#[test]
fn endless_and_huge_files_are_refused_at_once() {
    let folder = TestFolder::empty();
    let status = process::command("mkfifo").arg(folder.path("pipe")).status();
    assert!(status.expect("mkfifo runs").success());
    let large = fs::File::create(folder.path("large")).expect("a file");
    large.set_len(1 << 36).expect("it is sparse");
    let commands: [CommandArgs; 6] = [
        &|file| vec!["check".into(), file.into()],
        &|file| vec!["run".into(), file.into()],
        &|file| vec!["lab".into(), "check".into(), file.into()],
        &|file| {
            let key = format!("file:{file}");
            vec![
                "ping".into(),
                "udp://127.0.0.1:9".into(),
                "--stamp-key".into(),
                key,
            ]
        },
        &|file| {
            let target = "wss://127.0.0.1:9".into();
            vec!["ping".into(), target, "--ca-file".into(), file.into()]
        },
        &|file| {
            let identity = ["--tls", "--cert", file, "--key", file].map(str::to_owned);
            [vec!["reflect".to_owned()], identity.to_vec()].concat()
        },
    ];
    for (file, part) in [
        ("/dev/zero", "it is a device, not a file"),
        ("pipe", "it is a pipe, not a file"),
        (".", "it is a folder"),
        ("large", "it has 68719476736 bytes, and at most "),
    ] {
        for args in commands {
            let args = args(file);
            let began = Stopwatch::start();
            let ran = folder.neph(args.iter().map(String::as_str));
            is_refused(&ran, part);
            assert!(began.elapsed() < AT_ONCE, "{args:?}");
        }
    }
}

#[test]
fn a_plan_may_come_through_a_pipe_of_the_shell() {
    let folder = TestFolder::empty();
    let ran = process::command("bash")
        .args(["-c", "\"$NEPH\" check <(echo 'version = 1')"])
        .env("NEPH", env!("CARGO_BIN_EXE_neph"))
        .current_dir(folder.path(""))
        .output();
    let ran = RunOutput::from(ran.expect("bash runs"));
    is_refused(&ran, "there is no endpoint");
}

#[test]
fn two_hundred_thousand_of_anything_take_no_square() {
    let folder = TestFolder::empty();
    let head = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 1\n";
    let repeat_lines = |line: &dyn Fn(usize) -> String| (0..200_000).map(line).collect::<String>();
    let endpoint = |at: usize, name: usize| {
        let [_, a, b, c] = u32::try_from(at).expect("few").to_be_bytes();
        format!("[[endpoint]]\nname = \"e{name}\"\nurl = \"udp://10.{a}.{b}.{c}\"\n")
    };
    let site = |at: usize| {
        let [_, a, b, c] = u32::try_from(at).expect("few").to_be_bytes();
        format!("[[site]]\nname = \"s{at}\"\naddress = \"10.{a}.{b}.{c}\"\n")
    };
    let texts = [
        (
            "check",
            format!("{head}{}", repeat_lines(&|at| format!("key{at} = 1\n"))),
        ),
        (
            "check",
            format!("{head}{}", repeat_lines(&|at| format!("[t{at}]\n"))),
        ),
        (
            "check",
            format!("{head}{}", repeat_lines(&|at| endpoint(at, at))),
        ),
        (
            "check",
            format!("{head}{}", repeat_lines(&|at| endpoint(at, 1))),
        ),
        ("lab", format!("version = 1\n{}", repeat_lines(&site))),
        (
            "lab",
            format!(
                "version = 1\n{}",
                repeat_lines(&|at| format!("key{at} = 1\n"))
            ),
        ),
    ];
    for (command, text) in texts {
        fs::write(folder.path("many.toml"), text).expect("written");
        let args = [command, "check", "many.toml"];
        let args = &args[usize::from(command == "check")..];
        let began = Stopwatch::start();
        let ran = folder.neph(args.iter().copied());
        is_refused(&ran, "many.toml");
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    }
}

fn reflector() -> Reflector {
    let here = ([127, 0, 0, 1], 0).into();
    Reflector::start(&ReflectorSpec::at(here)).expect("a reflector")
}

/// One message, with the output that the next word names.
const fn ping_into(target: &str) -> [&str; 8] {
    [
        "ping",
        target,
        "-c",
        "1",
        "--no-icmp",
        "--format",
        "csv",
        "-o",
    ]
}

#[test]
fn an_existing_file_is_kept_and_a_link_is_not_followed() {
    let own_reflector = reflector();
    let target = format!("udp://{}", own_reflector.address());
    let folder = TestFolder::empty();
    fs::write(folder.path("there"), "precious").expect("written");
    symlink("there", folder.path("link")).expect("a link");
    symlink("nothing", folder.path("loose")).expect("a link");
    let ping = ping_into(&target);
    let flows = [
        "flows", &target, "-c", "1", "-n", "1", "--format", "csv", "-o",
    ];
    let trace = ["trace", &target, "--format", "csv", "-o"];
    for args in [&ping[..], &flows, &trace] {
        for (file, part) in [
            (
                "there",
                "it exists; name another file, or replace it with --force",
            ),
            ("link", "it is a symbolic link, which is not followed"),
            ("loose", "it is a symbolic link, which is not followed"),
        ] {
            let ran = folder.neph(args.iter().copied().chain([file]));
            is_refused(&ran, part);
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        }
        let ran = folder.neph(args.iter().copied().chain(["link", "--force"]));
        is_refused(&ran, "it is a symbolic link");
    }
    let content = fs::read_to_string(folder.path("there")).expect("it is there");
    assert_eq!(content, "precious");
    assert!(!folder.path("nothing").exists());
    let ran = folder.neph(ping.iter().copied().chain(["there", "--force"]));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let replaced = fs::read_to_string(folder.path("there")).expect("it is there");
    assert!(replaced.starts_with("flow,seq,outcome,"), "{replaced}");
}

#[test]
fn devices_and_stdout_are_valid_outputs() {
    let own_reflector = reflector();
    let target = format!("udp://{}", own_reflector.address());
    let folder = TestFolder::empty();
    let ping = ping_into(&target);
    let ran = folder.neph(ping.iter().copied().chain(["/dev/null"]));
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);
    let ran = folder.neph(ping.iter().copied().chain(["/dev/stdout"]));
    assert!(ran.out.starts_with("flow,seq,"), "{}{}", ran.out, ran.err);
    let line = format!("\"$NEPH\" {} /dev/stdout > kept", ping.join(" "));
    let ran = process::command("bash")
        .args(["-c", &line])
        .env("NEPH", env!("CARGO_BIN_EXE_neph"))
        .current_dir(folder.path(""))
        .output();
    let ran = RunOutput::from(ran.expect("bash runs"));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let content = fs::read_to_string(folder.path("kept")).expect("it is there");
    assert!(content.starts_with("flow,seq,"), "{content}");
}

#[test]
fn man_pages_and_figures_replace_nothing_unasked() {
    let folder = TestFolder::empty();
    fs::create_dir(folder.path("man")).expect("a folder");
    fs::write(folder.path("man/neph-ping.1"), "mine").expect("written");
    let ran = folder.neph(["man", "--output", "man"]);
    is_refused(&ran, "man/neph-ping.1: it exists");
    assert!(!folder.path("man/neph.1").exists(), "nothing is written");
    let ran = folder.neph(["man", "--output", "man", "--force"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    fs::write(folder.path("f.svg"), "mine").expect("written");
    let ran = folder.neph(["clock", "127.0.0.1:9", "--figure", "f.svg"]);
    is_refused(&ran, "f.svg: it exists");
    fs::create_dir(folder.path("drawn")).expect("a folder");
    fs::write(folder.path("drawn/hops-cdf.svg"), "mine").expect("written");
    let ran = folder.neph(["hops", "a.pcap", "b.pcap", "--figure", "drawn"]);
    is_refused(&ran, "hops-cdf.svg exists");
}
