//! One step inside a namespace, and the program that runs it.

use super::Step;

/// One step inside a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The namespace.
    pub(crate) namespace: String,
    /// The program.
    pub(crate) program: Program,
    /// Its input: one line, except for rules and files.
    pub(crate) line: String,
}

/// A program that runs operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Ip,
    Tc,
    Bridge,
    /// `nft -f -`, with a complete file of rules.
    Nft,
    /// Writes the setting of this dotted name.
    Sysctl(String),
    /// Writes the file of this name in the lab's folder.
    File(String),
    /// `openssl`, for certificates.
    OpenSsl,
    /// Creates a boot image for guests, of this name in the lab's folder.
    Image(String),
}

impl Operation {
    fn new(program: Program, namespace: &str, line: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            program,
            line: line.into(),
        }
    }

    pub(crate) fn ip(namespace: &str, line: impl Into<String>) -> Self {
        Self::new(Program::Ip, namespace, line)
    }

    pub(crate) fn tc(namespace: &str, line: impl Into<String>) -> Self {
        Self::new(Program::Tc, namespace, line)
    }

    pub(crate) fn bridge(namespace: &str, line: impl Into<String>) -> Self {
        Self::new(Program::Bridge, namespace, line)
    }

    /// A file of nftables' rules.
    pub(crate) fn nft(namespace: &str, rules: impl Into<String>) -> Self {
        Self::new(Program::Nft, namespace, rules)
    }

    /// A setting, by its dotted name.
    pub(crate) fn sysctl(namespace: &str, setting: &str, value: &str) -> Self {
        Self::new(Program::Sysctl(setting.to_owned()), namespace, value)
    }

    /// A file in the lab's folder, which is removed with the lab; `namespace` is only a label.
    pub(crate) fn file(namespace: &str, name: &str, text: impl Into<String>) -> Self {
        Self::new(Program::File(name.to_owned()), namespace, text)
    }

    /// A boot image for guests in the lab's folder; its first process is `script`.
    pub(crate) fn image(namespace: &str, name: &str, script: impl Into<String>) -> Self {
        Self::new(Program::Image(name.to_owned()), namespace, script)
    }

    /// A certificate; arguments must not contain blanks.
    pub(crate) fn openssl(namespace: &str, line: impl Into<String>) -> Self {
        Self::new(Program::OpenSsl, namespace, line)
    }

    /// The operation as a shell command.
    pub(crate) fn step(&self) -> Step {
        let (namespace, line) = (&self.namespace, &self.line);
        let command_line = match &self.program {
            Program::Ip => format!("ip -n {namespace} {line}"),
            Program::Tc => format!("tc -n {namespace} {line}"),
            Program::Bridge => format!("bridge -n {namespace} {line}"),
            Program::Nft => format!("nft -f - <<'END'\n{line}END"),
            Program::Sysctl(setting) => format!("sysctl -w {setting}='{line}'"),
            Program::OpenSsl => format!("openssl {line}"),
            Program::Image(name) => format!(
                "neph: write {name}, an initramfs of neph, its libraries, busybox and this init:\n\
                 {line}"
            ),
            Program::File(name) => format!("cat > {name} <<'END'\n{line}END"),
        };
        Step::new(namespace, command_line)
    }
}
