//! QEMU: a virtual machine with KVM or emulation, and a kernel of this host's /boot.
//!
//! Owns the choice of kernel and CPU. Shell commands choose when the lab comes up, so a topology does not
//! depend on the host.

use neph_text::{Fault, Fields, FromNode, Node, choice};

use super::guests::{self, GuestParameters, Machine};
use crate::topology::fixture::{FixtureBuilder, FixtureKind, Nodes};

#[derive(Debug)]
pub(crate) struct Qemu;

impl FixtureKind for Qemu {
    fn name(&self) -> &'static str {
        "qemu"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let accel = table.optional_with("accel", |node| choice(node, &Processor::NAMES));
        let kernel = table.optional_with("kernel", kernel_path);
        let vcpus = table.optional_with("vcpus", vcpus);
        let machine = QemuMachine {
            processor: accel.map_or(Processor::Automatic, |accel| accel.value),
            kernel: kernel.map(|kernel| kernel.value),
            vcpus: vcpus.map_or(1, |vcpus| vcpus.value),
        };
        guests::read(table, nodes, machine)
    }
}

/// What runs a guest's instructions.
#[derive(Clone, Copy, Debug)]
enum Processor {
    /// KVM on real hardware, else emulation.
    Automatic,
    Kvm,
    Emulation,
}

impl Processor {
    const NAMES: [(&str, Self); 2] = [("kvm", Self::Kvm), ("tcg", Self::Emulation)];

    /// The shell command that prints qemu's name of it. Inside a virtual machine KVM may be slower than
    /// emulation: a guest with nested KVM ran 0.8 million instructions a second.
    const fn command(self) -> &'static str {
        match self {
            Self::Automatic => {
                "if [ -w /dev/kvm ] && ! grep -qw hypervisor /proc/cpuinfo; then echo kvm; else echo tcg; fi"
            }
            Self::Kvm => "echo kvm",
            Self::Emulation => "echo tcg",
        }
    }
}

/// The maximum number of virtual CPUs of a guest.
const MAX_VCPUS: u32 = 16;

/// A number of virtual CPUs.
fn vcpus(node: &Node) -> Result<u32, Fault> {
    let number = u32::from_node(node)?;
    if (1..=MAX_VCPUS).contains(&number) {
        return Ok(number);
    }
    let message = format!("a guest has 1 to {MAX_VCPUS} virtual processors, not {number}");
    Err(Fault::new(message, "write for example vcpus = 2"))
}

/// A path without characters that are special in a shell.
fn kernel_path(node: &Node) -> Result<String, Fault> {
    let path = String::from_node(node)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if !path.starts_with('/') || !path.chars().all(is_plain) {
        let message = "this is no kernel's file";
        return Err(Fault::new(
            message,
            "write \"/boot/vmlinuz-6.1.0-50-amd64\"",
        ));
    }
    Ok(path)
}

#[derive(Debug)]
struct QemuMachine {
    processor: Processor,
    /// The file of its kernel; by default the newest that is installed.
    kernel: Option<String>,
    /// Its virtual CPUs, 1 to 16.
    vcpus: u32,
}

impl Machine for QemuMachine {
    fn prepare(&self, parameters: &GuestParameters<'_>) -> String {
        let GuestParameters { name, image, .. } = parameters;
        let accel = self.processor.command();
        // The kernel unpacks one archive after the other.
        format!(
            "{} && {} && {{ cat {image}; (cd {name}.files && find . | busybox cpio -o -H newc); }} \
             > {name}.initrd && accel=$({accel}) && ",
            self.find_kernel_command(),
            copy_modules_command(name)
        )
    }

    fn command(&self, parameters: &GuestParameters<'_>) -> String {
        let GuestParameters {
            name,
            mebibytes,
            tap,
            mac,
            console,
            kernel_parameters,
            ..
        } = parameters;
        let vcpus = self.vcpus;
        format!(
            "qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
             -machine pc -accel $accel -cpu max -smp {vcpus} -m {mebibytes} \
             -kernel \"$kernel\" -initrd {name}.initrd \
             -netdev tap,id=net,ifname={tap},script=no,downscript=no \
             -device virtio-net-pci,netdev=net,mac={mac},romfile= \
             -chardev stdio,id=log,signal=off -serial chardev:log \
             -chardev pipe,id=console,path={console} -serial chardev:console \
             -append \"console=ttyS0 quiet panic=-1 rootfstype=ramfs net.ifnames=0 \
             neph.dev=eth0 neph.console=ttyS1 {kernel_parameters}\""
        )
    }

    fn program(&self) -> &'static str {
        "qemu-system-x86_64"
    }

    fn trial_command(&self, total_mebibytes: u64) -> String {
        let accel = self.processor.command();
        format!(
            "{}; [ \"$({accel})\" != kvm ] || [ -w /dev/kvm ] || {{ \
             echo 'there is no /dev/kvm'; exit 1; }}; \
             [ \"$(busybox awk '/^MemAvailable/ {{ print int($2 / 1024) }}' /proc/meminfo)\" \
             -ge {total_mebibytes} ] || {{ echo \"{total_mebibytes} MiB of memory are not free\"; exit 1; }}",
            self.find_kernel_command()
        )
    }
}

impl QemuMachine {
    /// The shell commands that set `$kernel`, or report that there is none.
    fn find_kernel_command(&self) -> String {
        let (kernel, remedy) = match &self.kernel {
            Some(kernel) => (
                format!("kernel={kernel}"),
                "write the file of a kernel as kernel of [[guest]], or leave it out: then it is the \
                 newest in /boot",
            ),
            None => (
                "kernel=$(ls /boot/vmlinuz-* 2>/dev/null | sort -V | tail -n 1)".to_owned(),
                "install the package linux-image-cloud-amd64, or write kernel = \\\"FILE\\\" at \
                 [[guest]]",
            ),
        };
        // A kernel for x86 has its magic number at byte 514 (Documentation/arch/x86/boot.rst); ELF has one
        // too.
        format!(
            "{kernel}; [ -f \"$kernel\" ] && [ -r \"$kernel\" ] || {{ \
             echo \"there is no kernel ${{kernel:-in /boot}} to read: {remedy}\"; exit 1; }}; \
             [ \"$(tail -c +515 $kernel | head -c 4 | tr -d '\\0')\" = HdrS ] || \
             [ \"$(head -c 4 $kernel | tail -c 3 | tr -d '\\0')\" = ELF ] || {{ \
             echo \"$kernel is no kernel: {remedy}\"; exit 1; }}"
        )
    }
}

/// The shell commands that copy the modules of a guest's interface into a folder, named in loading order
/// (modules.dep has the reverse order). A kernel may have them built in, or as compressed files.
fn copy_modules_command(name: &str) -> String {
    format!(
        "mkdir -p {name}.files/modules && from=/lib/modules/${{kernel##*/vmlinuz-}} && number=100 && \
         for file in $(busybox awk -F '[: ]+' \
         '$1 ~ \"/virtio_(pci|net)[.]ko\" {{ for (i = NF; i > 0; i--) print $i }}' \
         $from/modules.dep 2>/dev/null); do number=$((number + 1)); \
         case $file in *.xz) unpack=xzcat ;; *.zst) unpack=\"zstd -dc\" ;; *.gz) unpack=zcat ;; *) unpack=cat ;; esac; \
         base=${{file##*/}}; \
         $unpack $from/$file > {name}.files/modules/$number-${{base%%.ko*}}.ko || exit 1; done"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program;

    #[test]
    fn a_file_that_is_no_kernel_is_reported_by_name_with_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel_complaint = |kernel: &str| {
            let machine = QemuMachine {
                processor: Processor::Emulation,
                kernel: Some(kernel.to_owned()),
                vcpus: 1,
            };
            program::complaint(&machine.find_kernel_command(), folder.path()).expect("a shell")
        };
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("a file");
            path.display().to_string()
        };
        let message = kernel_complaint("/boot/none").expect("there is none");
        assert!(
            message.starts_with("there is no kernel /boot/none to read: write the file of"),
            "{message}"
        );
        assert!(!message.contains("FILE"), "it was written: {message}");
        let message = kernel_complaint("/boot").expect("a folder");
        assert!(message.starts_with("there is no kernel /boot"), "{message}");
        let message = kernel_complaint(&file("text", b"root:x:0")).expect("a text");
        assert!(message.contains("text is no kernel: "), "{message}");
        let mut image = vec![0; 514];
        image.extend(b"HdrS and more");
        assert_eq!(kernel_complaint(&file("image", &image)), None);
        assert_eq!(kernel_complaint(&file("vmlinux", b"\x7fELF\x02\x01")), None);
    }
}
