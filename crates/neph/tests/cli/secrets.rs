//! Secrets: read from private files and variables only, shown and stored nowhere.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::neph::{RunOutput, TestFolder, command, neph};
use crate::pings::start_with_key;

const SECRET: &str = "hunter2-never-stored";

/// A file with a secret, that nobody else can read.
fn private(folder: &TestFolder, name: &str, text: &str) {
    fs::write(folder.path(name), text).expect("a file");
    set_mode(&folder.path(name), 0o600);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
}

#[test]
fn a_secret_comes_from_a_file_or_a_variable_and_must_be_the_reflectors() {
    let reflector = start_with_key(Some("open sesame"));
    let target = format!("udp://{}", reflector.address());
    let folder = TestFolder::empty();
    private(&folder, "key", "open sesame\n");
    let file = format!("file:{}", folder.text("key"));
    for (source, variable, status) in [
        (&*file, "", 0),
        ("env:NEPH_TEST_KEY", "open sesame", 0),
        ("env:NEPH_TEST_KEY", "open barley", 1),
    ] {
        let args = ["ping", &target, "--no-icmp", "-c", "3", "-i", "20ms", "-q"];
        let ran: RunOutput = command()
            .args(args)
            .args(["--stamp-key", source, "--timeout", "300ms"])
            .env("NEPH_TEST_KEY", variable)
            .output()
            .expect("neph runs")
            .into();
        assert_eq!(ran.status, status, "{source}: {}{}", ran.out, ran.err);
    }
}

/// `ps` shows the arguments of a process to every user.
#[test]
fn a_bare_secret_is_refused_by_every_command_and_not_repeated() {
    for start in [
        &["ping", "udp://127.0.0.1:9"][..],
        &["flows", "udp://127.0.0.1:9"],
        &["clock", "127.0.0.1:9"],
        &["reflect", "--listen", "127.0.0.1:0"],
    ] {
        let ran = neph(start.iter().copied().chain(["--stamp-key", SECRET]));
        assert_eq!(ran.status, 2, "{start:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        let names_both = ran.err.contains("file:PATH") && ran.err.contains("env:NAME");
        assert!(names_both && !ran.err.contains(SECRET), "{}", ran.err);
    }
}

#[test]
fn a_key_file_that_others_can_read_is_refused_with_its_remedy() {
    let folder = TestFolder::empty();
    private(&folder, "key", SECRET);
    private(&folder, "empty", "\n");
    set_mode(&folder.path("key"), 0o644);
    let plan = "version = 1\nname = \"k\"\ninterval = \"10ms\"\nmessages = 2\n[[endpoint]]\n\
                name = \"a\"\nurl = \"udp://127.0.0.1:9\"\nkey_file = \"key\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    for (args, part) in [
        (&["run", "plan.toml"][..], "chmod 600 key"),
        (
            &["ping", "udp://127.0.0.1:9", "--stamp-key", "file:key"],
            "chmod 600 key",
        ),
        (
            &["ping", "udp://127.0.0.1:9", "--stamp-key", "file:empty"],
            "empty",
        ),
        (
            &["ping", "udp://127.0.0.1:9", "--stamp-key", "file:none"],
            "No such file",
        ),
        (
            &["ping", "udp://127.0.0.1:9", "--stamp-key", "env:NEPH_UNSET"],
            "is not set",
        ),
    ] {
        let ran = folder.neph(args.iter().copied());
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        let text = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part) && !text.contains(SECRET), "{text}");
    }
}

/// Flags of a lab's reflector stand in the plan, which is a file without protection.
#[test]
fn a_bare_secret_in_a_plan_is_refused_and_not_repeated() {
    let folder = TestFolder::empty();
    let topology = "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.80.1.1/24\"\n\
                    [[site]]\nname = \"server\"\naddress = \"10.80.1.2/24\"\n\
                    [[link]]\nname = \"path\"\na = \"client\"\nb = \"server\"\n";
    fs::write(folder.path("lab.toml"), topology).expect("a file");
    let plan = format!(
        "version = 1\nname = \"k\"\ninterval = \"10ms\"\nmessages = 2\n[[endpoint]]\n\
         name = \"a\"\nurl = \"udp://10.80.1.2:8080\"\n[lab]\ntopology = \"lab.toml\"\n\
         prober = \"client\"\n[[lab.reflector]]\nsite = \"server\"\n\
         flags = [\"--stamp-key\", \"{SECRET}\"]\n"
    );
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    for command in ["check", "run"] {
        let ran = folder.neph([command, "plan.toml"]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        let text = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("file:PATH") && text.contains("env:NAME"),
            "{text}"
        );
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(!folder.workspace().exists());
}

/// Fails if a file below `folder` holds the secret, plain or as its usual encodings.
fn search(folder: &Path, except: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files += search(&path, except);
        } else if path != except {
            holds_none(
                &path.display().to_string(),
                &fs::read(&path).expect("a file"),
            );
            files += 1;
        }
    }
    files
}

fn holds_none(message: &str, bytes: &[u8]) {
    let hex = "68756e746572322d6e657665722d73746f726564";
    let base64 = "aHVudGVyMi1uZXZlci1zdG9yZWQ";
    for form in [SECRET, hex, base64] {
        let found = bytes
            .windows(form.len())
            .any(|part| part == form.as_bytes());
        assert!(!found, "{message} holds the secret");
    }
}

#[test]
fn no_secret_is_stored_exported_or_shown() {
    let reflector = start_with_key(Some(SECRET));
    let target = format!("udp://{}", reflector.address());
    let folder = TestFolder::empty();
    private(&folder, "key", SECRET);
    let plan = format!(
        "version = 1\nname = \"k\"\ninterval = \"10ms\"\nmessages = 20\n[[endpoint]]\nname = \"a\"\n\
         url = \"{target}\"\nkey_file = \"key\"\n"
    );
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    for line in [
        "run plan.toml",
        "flows TARGET -n 4 -i 20ms -c 40 --save fleet --stamp-key env:NEPH_TEST_KEY --format json \
         -o fleet.json",
        "ping TARGET -c 3 -i 20ms --no-icmp --stamp-key file:key --format json -o ping.json",
        "list --format json",
        "show k",
        "show fleet",
        "export k --format jsonl -o k.jsonl",
        "report fleet",
    ] {
        let line = line.replace("TARGET", &target);
        let args: Vec<&str> = line.split_whitespace().collect();
        let mut command = folder.command(args.iter().copied());
        let output = command.env("NEPH_TEST_KEY", SECRET).output();
        let output = output.expect("neph runs");
        let (out, err) = (&output.stdout, &output.stderr);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(err)
        );
        holds_none(args[0], out);
        holds_none(args[0], err);
    }
    let files = search(&folder.path("."), &folder.path("./key"));
    assert!(files > 6, "{files} files were searched");
}
