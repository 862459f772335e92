//! What guests with kernels of their own share: an image and a console, in the network of [`super::guest_settings`].
//! If they cannot run, [`super::namespace`] replaces them.
//!
//! Owns the first process of a guest. IPv4 only, like pods. A guest runs within its site's share of the host,
//! but its tap is at its host. A capture there has each packet at the host's link, the bridge and the tap.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use neph_model::Span;
use neph_sys::netns;
use neph_text::Fields;

use super::guest_settings::{GuestSettings, routes_to_guest, tap_name};
use super::namespace::Namespaces;
use super::pods::{Pod, Pods, host_mac, pod_mac};
use super::proxy::file_path;
use crate::guest::{self, Guest, Kernel};
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureParts, Nodes, Trial};
use crate::topology::{Ready, ReadyCheck, Service};

/// An emulated machine that shares a core is slow to start.
const READY_TIMEOUT: Span = Span::from_secs(120);
/// It is killed at once: there is no state to save.
const STOP_TIMEOUT: Span = Span::ZERO;
/// Memory of a guest's kernel and programs in addition to the image, MiB.
const KERNEL_MEBIBYTES: u32 = 64;
/// Programs that must run without other files.
const STATIC_PROGRAMS: [&str; 1] = ["busybox"];
/// Shell command that ends the trial if taps cannot be created.
const TAP_CHECK: &str =
    "(: <>/dev/net/tun) 2>/dev/null || { echo 'there is no /dev/net/tun for taps'; exit 1; }";

/// A program that runs guests.
pub(super) trait Machine: Debug + Send + Sync + 'static {
    /// Shell commands that precede it, in the lab's folder; each ends with `&&`.
    fn prepare(&self, _parameters: &GuestParameters<'_>) -> String {
        String::new()
    }
    /// The shell command that becomes the guest. Its console is read from descriptor 5 and written to 6;
    /// kernel messages go to its output.
    fn command(&self, parameters: &GuestParameters<'_>) -> String;
    /// The name of the program.
    fn program(&self) -> &'static str;
    /// The shell command whose status is 0 if guests with this total memory in MiB can run; else its last
    /// line is the reason. Taps are available.
    fn trial_command(&self, total_mebibytes: u64) -> String;
}

/// The parameters of a guest.
#[derive(Debug)]
pub(super) struct GuestParameters<'s> {
    /// The guest's name in files of the lab, whose folder is the working directory.
    pub(super) name: &'s str,
    /// Its memory in MiB.
    pub(super) mebibytes: u64,
    /// The memory of all guests of its table in MiB.
    pub(super) total_mebibytes: u64,
    /// The file of its boot image.
    pub(super) image: &'s str,
    /// Its tap.
    pub(super) tap: &'s str,
    /// Its MAC address.
    pub(super) mac: &'s str,
    /// Its console's pipes, without the suffixes `.in` and `.out`.
    pub(super) console: &'s str,
    /// Added to its kernel's command line.
    pub(super) kernel_parameters: &'s str,
}

/// Guests of one kind.
#[derive(Debug)]
struct Guests<M> {
    settings: GuestSettings,
    /// Whether namespaces may replace them.
    allows_fallback: bool,
    machine: M,
}

/// Reads a `[[guest]]` table.
pub(super) fn read(
    table: &mut Fields<'_>,
    nodes: Nodes<'_>,
    machine: impl Machine,
) -> Option<Box<dyn FixtureBuilder>> {
    let settings = GuestSettings::read(table, nodes);
    let fallback = table.optional::<bool>("fallback");
    Some(Box::new(Guests {
        settings: settings?,
        allows_fallback: fallback.is_none_or(|fallback| fallback.value),
        machine,
    }))
}

impl<M: Machine> FixtureBuilder for Guests<M> {
    fn pods(&self) -> Vec<usize> {
        self.settings.sites.iter().map(|guest| guest.site).collect()
    }

    fn guests(&self) -> Vec<Guest> {
        self.settings.guests(Kernel::Own)
    }

    fn lines(&self) -> &[String] {
        &self.settings.run
    }

    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts {
        let pods = Pods {
            pods: &self.settings.sites,
            context: *context,
        };
        let first_namespace = pods.namespace(self.settings.sites[0].site);
        let mut operations = vec![Operation::image(
            first_namespace,
            &context.own_file("image"),
            self.init_script(),
        )];
        for host in pods.hosts() {
            let add_tap = |guest| format!("tuntap add dev {} mode tap", tap_name(guest));
            operations.extend(self.settings.bridge_operations(pods, host, add_tap));
        }
        for guest in pods.pods {
            operations.extend(routes_to_guest(pods, *guest));
        }
        let services = pods.pods.iter().map(|guest| self.service(pods, *guest));
        FixtureParts {
            operations,
            services: services.collect(),
            programs: self.programs(),
            static_programs: STATIC_PROGRAMS.to_vec(),
            ..FixtureParts::default()
        }
    }

    fn trial(&self) -> Option<Trial> {
        let fallback: Result<Arc<dyn FixtureBuilder>, &str> = match (
            self.allows_fallback,
            &self.settings.run,
        ) {
            (false, _) => Err("leave out fallback = false to have namespaces instead"),
            (true, run) if run.is_empty() => Ok(Arc::new(Namespaces::new(self.settings.clone()))),
            // Without permission, settings for another kernel are not applied to this one.
            _ => Err(
                "namespaces do not take their place by themselves, for 'run' would be run on this \
                 machine: write kind = \"namespace\" if it may be",
            ),
        };
        Some(Trial {
            programs: self.programs(),
            static_programs: STATIC_PROGRAMS.to_vec(),
            line: format!(
                "{TAP_CHECK}; {}",
                self.machine.trial_command(self.total_mebibytes())
            ),
            fallback,
        })
    }
}

impl<M: Machine> Guests<M> {
    fn programs(&self) -> Vec<&'static str> {
        vec![self.machine.program(), "nsenter", "mkfifo"]
    }

    fn total_mebibytes(&self) -> u64 {
        let mebibytes = self.settings.memory >> 20;
        mebibytes.saturating_mul(self.settings.sites.len() as u64)
    }

    fn service(&self, pods: Pods<'_>, guest: Pod) -> Service {
        let (context, site) = (&pods.context, &pods.site(guest.site).name);
        let (address, host) = (pods.address(guest.site), pods.address(guest.host));
        let (mac, tap) = (pod_mac(guest.site), tap_name(guest));
        let name = context.name_at(guest.site);
        let kernel_parameters = format!(
            "neph.name={site} neph.own={address} neph.host={host} neph.mac={} neph.mtu={}",
            host_mac(context.number, guest.host),
            pods.underlay_mtu(),
        );
        let (image, mebibytes) = (context.own_file("image"), self.settings.memory >> 20);
        let folder = file_path(context.folder, "");
        let pipes = guest::console_pipes(context.folder, site);
        let console = pipes[0].with_extension("").display().to_string();
        let parameters = GuestParameters {
            name: &name,
            mebibytes,
            total_mebibytes: self.total_mebibytes(),
            image: &image,
            tap: &tap,
            mac: &mac,
            console: &console,
            kernel_parameters: &kernel_parameters,
        };
        let (prepare, command) = (
            self.machine.prepare(&parameters),
            self.machine.command(&parameters),
        );
        let namespace_command = format!(
            "nsenter --net={}/{}",
            netns::FOLDER,
            pods.namespace(guest.host)
        );
        let [input_pipe, output_pipe] = pipes.map(|pipe| pipe.display().to_string());
        // The image and its unpacked content are in memory together, in addition to the kernel.
        let run = format!(
            "cd {folder} && need=$(( $(wc -c < {image}) * 2 / 1048576 + {KERNEL_MEBIBYTES} )) && \
             if [ $need -gt {mebibytes} ]; then \
             echo \"write memory = \\\"${{need}}MiB\\\" or more at [[guest]] {}\"; exit 1; fi && \
             mkfifo -m 600 {input_pipe} {output_pipe} && {prepare}\
             exec {namespace_command} {command} 5<>{input_pipe} 6<>{output_pipe}",
            context.name,
        );
        let check_line = format!(
            "{namespace_command} busybox nc -w 1 {address} {} </dev/null",
            self.settings.port
        );
        Service {
            name,
            site: guest.site,
            command: vec!["sh".to_owned(), "-c".to_owned(), run],
            environment: BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Command(vec!["sh".to_owned(), "-c".to_owned(), check_line]),
                timeout: READY_TIMEOUT,
            }),
            log: None,
            grace: STOP_TIMEOUT,
        }
    }

    /// The first process of a guest: it reads its name from the kernel's command line. Its shell never ends
    /// and runs one command of the console after the other.
    fn init_script(&self) -> String {
        let (run, port) = (self.settings.run_script(), self.settings.port);
        format!(
            "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin HOME=/tmp\n\
             mount -t proc proc /proc\nmount -t sysfs sys /sys\nmount -t devtmpfs dev /dev\n\
             for word in $(cat /proc/cmdline); do\n  \
             case $word in neph.*) export \"${{word#neph.}}\" ;; esac\ndone\n\
             for module in $(ls /modules); do\n  insmod /modules/$module\ndone 2>/dev/null\n\
             hostname $name\n\
             echo '0 2147483647' > /proc/sys/net/ipv4/ping_group_range\n\
             echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6\n\
             ip link set lo up\nip address add $own/32 dev lo\n\
             ip link set $dev mtu $mtu up\narp -i $dev -s $host $mac\n\
             ip route add $host dev $dev src $own\nip route add default via $host dev $dev src $own\n\
             neph reflect --listen 0.0.0.0:{port} &\n{run}\
             stty raw -echo -F /dev/$console\nexec 3<>/dev/$console\n\
             while true; do\n  read -r id command <&3 && [ -n \"$id\" ] || continue\n  \
             {{ echo $id begin; sh -c \"$command\" </dev/null; \
             printf '\\n%s end %s\\n' $id $?; }} >&3 2>&1\ndone\n"
        )
    }
}
