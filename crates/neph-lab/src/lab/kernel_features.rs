//! Explains errors of programs that are due to missing features of this host's kernel.
//!
//! Owns the known error messages and their remedies. A correct topology can fail on another host, so this is
//! reported when a lab comes up, not when its file is checked.

use std::fs;

use super::LabError;
use crate::program::ProgramError;

/// The loaded congestion control algorithms.
const AVAILABLE_CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The error with a remedy, if it is a known one.
pub(super) fn add_remedy(error: ProgramError) -> LabError {
    let ProgramError::Refused {
        command,
        namespace,
        complaint,
    } = &error
    else {
        return error.into();
    };
    let word_after = |word: &str| {
        let mut words = command.split_whitespace();
        words
            .find(|argument| *argument == word)
            .and_then(|_| words.next())
    };
    if complaint.contains("Unknown tcp congestion algorithm") {
        // `congctl lock NAME`
        let name = word_after("lock").unwrap_or("unknown");
        let loaded_algorithms =
            fs::read_to_string(AVAILABLE_CONGESTION_CONTROLS).unwrap_or_default();
        let loaded_algorithms: Vec<&str> = loaded_algorithms.split_whitespace().collect();
        return LabError::MissingKernelFeature {
            problem: format!(
                "this kernel has no congestion control '{name}', which namespace {namespace} shall \
                 have"
            ),
            remedy: format!(
                "write another as congestion_control (loaded are {}), or load the module tcp_{name}",
                loaded_algorithms.join(", ")
            ),
        };
    }
    if complaint.contains("qdisc kind is unknown") {
        // `qdisc add dev NAME parent 1: handle 2: KIND`
        let interface = word_after("dev").unwrap_or("unknown");
        let inner_kind = word_after("handle").and_then(&word_after);
        let kind = inner_kind
            .or_else(|| word_after("root"))
            .unwrap_or("unknown");
        let replacement = match kind {
            "netem" => "leave kind = \"netem\" out, so that neph carries the link itself",
            _ => "leave out what needs it",
        };
        return LabError::MissingKernelFeature {
            problem: format!(
                "this kernel has no queue discipline '{kind}', which interface '{interface}' in namespace \
                 {namespace} shall have"
            ),
            remedy: format!("load its module (modprobe sch_{kind}), or {replacement}"),
        };
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_with_remedy(command: &str, complaint: &str) -> String {
        let refused = ProgramError::Refused {
            command: command.to_owned(),
            namespace: "neph-x-a".to_owned(),
            complaint: complaint.to_owned(),
        };
        add_remedy(refused).to_string()
    }

    #[test]
    fn missing_kernel_features_are_reported_with_a_remedy() {
        let congestion = message_with_remedy(
            "ip route add 10.0.0.1/32 dev a-b src 10.0.0.2 congctl lock nope",
            "Error: Unknown tcp congestion algorithm. Command failed -:5",
        );
        let expected =
            "no congestion control 'nope', which namespace neph-x-a shall have; write another";
        assert!(congestion.contains(expected), "{congestion}");
        assert!(
            congestion.ends_with("load the module tcp_nope"),
            "{congestion}"
        );
        let netem = message_with_remedy(
            "tc qdisc add dev a-b root handle 1: netem limit 100000 delay 1us",
            "Error: Specified qdisc kind is unknown. Command failed -:1",
        );
        assert_eq!(
            netem,
            "this kernel has no queue discipline 'netem', which interface 'a-b' in namespace \
             neph-x-a shall have; load its module (modprobe sch_netem), or leave kind = \"netem\" \
             out, so that neph carries the link itself"
        );
        let rate_limit = message_with_remedy(
            "tc qdisc add dev vm1 root tbf rate 1bit burst 15140 latency 50ms",
            "Error: Specified qdisc kind is unknown.",
        );
        assert!(
            rate_limit.contains("no queue discipline 'tbf'"),
            "{rate_limit}"
        );
        let child_qdisc = message_with_remedy(
            "tc qdisc add dev a-b parent 1: handle 2: tbf rate 1bit",
            "Error: Specified qdisc kind is unknown.",
        );
        assert!(
            child_qdisc.contains("no queue discipline 'tbf'"),
            "{child_qdisc}"
        );
        let other = message_with_remedy("ip link add x", "RTNETLINK answers: File exists");
        assert!(other.contains("File exists"), "{other}");
    }
}
