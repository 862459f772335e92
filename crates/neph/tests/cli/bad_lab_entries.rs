//! What else lies where labs have their journals, and labs that nobody has any more. In a mount
//! namespace with a /run of its own: these commands are about all labs of a machine.

use std::fs;

use neph_sys::process;

use crate::labs::{TWO_SITES, privileged};
use crate::neph::{RunOutput, TestFolder};

/// A file, a name that no lab can have, a journal that is a folder, and half a journal.
const BAD_ENTRIES: &str = "mkdir -p /run/neph/half /run/neph/odd/journal '/run/neph/No Lab'\n\
    echo x > /run/neph/file\n\
    printf 'owner 999999 1\\nfuture thing\\nnamespace neph-half-a\\nnamespace ne' \\\n\
    > /run/neph/half/journal\n";

/// Runs a script that has no labs but its own; `$NEPH` is the program.
fn run_single(topology: &str, script: &str) -> RunOutput {
    let folder = TestFolder::empty();
    fs::write(folder.path("two.toml"), topology).expect("a file");
    let script = format!("mount -t tmpfs none /run || exit 99\n{script}");
    let output = process::command("unshare")
        .args(["-m", "sh", "-c", &script])
        .env("NEPH", env!("CARGO_BIN_EXE_neph"))
        .env("NO_COLOR", "1")
        .current_dir(folder.path(""))
        .output();
    RunOutput::from(output.expect("the program unshare"))
}

#[test]
fn a_bad_lab_entry_is_reported_and_blocks_no_other_lab() {
    let test = "a_bad_lab_entry_is_reported_and_blocks_no_other_lab";
    if !privileged(test) {
        return;
    }
    let script = format!(
        "\"$NEPH\" lab up two.toml --name good -d > /dev/null || exit 9\n{BAD_ENTRIES}\
         for words in 'list' 'status good' 'run a --lab good -- true' 'down file' 'down --all' \\\n\
         'list'; do echo \"# $words\" >&2; \"$NEPH\" lab $words > /dev/null; \
         echo \"$words: $?\"; done\n\
         ls /run/neph; ls /run/netns\n"
    );
    let ran = run_single(TWO_SITES, &script);
    let expected = "list: 1\nstatus good: 0\nrun a --lab good -- true: 0\ndown file: 1\n\
                down --all: 1\nlist: 1\nNo Lab\nfile\nodd\n";
    assert_eq!(ran.out, expected, "{}", ran.err);
    let of = |args: &str| {
        let printed = ran.err.split(&format!("# {args}\n")).nth(1);
        printed.expect(args).split("# ").next().expect("the first")
    };
    for args in ["list", "down --all"] {
        let printed = of(args);
        for sentence in [
            "neph: /run/neph/file is no lab's: remove it (rm -r '/run/neph/file')\n",
            "neph: /run/neph/No Lab is no lab's: remove it (rm -r '/run/neph/No Lab')\n",
            "neph: read the journal of lab odd: Is a directory",
        ] {
            assert!(printed.contains(sentence), "{args}: {printed}");
        }
    }
    let warning = "neph: warning: the journal of lab half has a line that this version of neph \
                   does not know: 'future thing'";
    assert_eq!(of("down --all").matches(warning).count(), 1, "{}", ran.err);
    assert!(of("down --all").contains("half is down"), "{}", ran.err);
    assert!(of("down --all").contains("good is down"), "{}", ran.err);
    assert!(!of("status good").contains("/run/neph/file"), "{}", ran.err);
}

#[test]
fn lab_verify_removes_only_leftovers_of_a_killed_verify() {
    let test = "lab_verify_removes_only_leftovers_of_a_killed_verify";
    if !privileged(test) {
        return;
    }
    let script = "for lab in v999999 v5 run999999; do mkdir -p /run/neph/$lab\n\
                  printf \"owner 999999 1\\nnamespace neph-$lab-a\\nwhole\\n\" \\\n\
                  > /run/neph/$lab/journal; done\n\
                  \"$NEPH\" lab verify two.toml > /dev/null; echo $?; ls /run/neph\n";
    let ran = run_single("version = 1\n[[site]]\nname = \"a\"\n", script);
    assert_eq!(ran.out, "0\nrun999999\nv5\n", "{}", ran.err);
}
