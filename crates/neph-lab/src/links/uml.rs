//! User-Mode Linux: a Linux kernel as a program of this host, which starts within two seconds and needs no
//! CPU feature. It has one CPU. Its interface is a tap, by its "vector" driver.

use neph_text::Fields;

use super::guests::{self, GuestParameters, Machine};
use crate::topology::fixture::{FixtureBuilder, FixtureKind, Nodes};

/// Folders for a guest's memory, a file that must be executable: in memory if there is room. Containers often
/// have 64 MiB there, mounted noexec.
const MEMORY_FOLDERS: &str = "\"${TMPDIR:-/dev/shm}\" /dev/shm /tmp /var/tmp";

/// Timeout of the trial in seconds: it takes less than one on an idle host.
const TRIAL_TIMEOUT_SECONDS: u32 = 60;

#[derive(Debug)]
pub(crate) struct UserMode;

impl FixtureKind for UserMode {
    fn name(&self) -> &'static str {
        "uml"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        guests::read(table, nodes, Self)
    }
}

impl Machine for UserMode {
    fn command(&self, parameters: &GuestParameters<'_>) -> String {
        let GuestParameters {
            name,
            mebibytes,
            total_mebibytes,
            image,
            tap,
            mac,
            kernel_parameters,
            ..
        } = parameters;
        let folder_command = memory_folder_command(*total_mebibytes);
        // Its own files would be in the home folder.
        format!(
            "env TMPDIR=\"$({folder_command})\" linux.uml uml_dir=. umid={name}.uml mem={mebibytes}M initrd={image} \
             init=/init panic=-1 quiet rootfstype=ramfs vec0:transport=tap,ifname={tap},depth=128,gro=0,mac={mac} \
             con=null con0=null,fd:1 con1=fd:5,fd:6 neph.dev=vec0 neph.console=tty1 {kernel_parameters}"
        )
    }

    fn program(&self) -> &'static str {
        "linux.uml"
    }

    fn trial_command(&self, total_mebibytes: u64) -> String {
        let folder_command = fitting_folder_command(total_mebibytes);
        // Its last check before it starts: ptrace and its memory work by then. On a CPU with AMX, User-Mode
        // Linux before 6.12 cannot set the registers of its first process, and exits.
        format!(
            "case $(linux.uml --version) in 5.*|6.[0-9].*|6.1[01].*) \
             if grep -qw amx_tile /proc/cpuinfo; then \
             echo \"this version of User-Mode Linux cannot run on a processor with AMX; use kind = qemu\"; \
             exit 1; fi ;; esac; at=\"$({folder_command})\"; [ -n \"$at\" ] || {{ \
             echo \"of \\$TMPDIR, /dev/shm, /tmp and /var/tmp none that may hold programs (noexec) \
             has {total_mebibytes} MiB for their memory\"; exit 1; }}; \
             TMPDIR=\"$at\" busybox timeout -s KILL {TRIAL_TIMEOUT_SECONDS} busybox setsid sh -c 'echo $$; \
             exec linux.uml uml_dir=. umid=trial mem=32M con=null panic=-1' 2>&1 | {{ read -r pid; \
             while read -r line; do case $line in *PROT_EXEC*OK*) kill -9 -$pid; exit 0 ;; esac; \
             said=$line; done; echo \"linux.uml does not start: $said\"; exit 1; }}"
        )
    }
}

/// The shell command that prints the first folder with room for the guests' memory; nothing without one.
fn fitting_folder_command(mebibytes: u64) -> String {
    format!(
        "set -- {MEMORY_FOLDERS}; for at; do \
         case \",$(findmnt -no OPTIONS -T \"$at\"),\" in *,noexec,*) continue ;; esac; \
         [ \"$(busybox df -Pm \"$at\" | busybox awk 'NR == 2 {{ print $4 }}')\" \
         -ge {mebibytes} ] && {{ echo \"$at\"; exit; }}; done 2>/dev/null"
    )
}

/// The same, with the first folder as the default: the guest's last messages then report what is missing.
fn memory_folder_command(mebibytes: u64) -> String {
    let folder_command = fitting_folder_command(mebibytes);
    format!("{folder_command}; echo \"$1\"")
}
