//! The answers of targets to SYNs, in the same words in all outputs.

use neph_model::SynAnswer;

/// Whether the port is open, and the answer that shows it.
pub const fn port_state_text(answer: SynAnswer) -> &'static str {
    match answer {
        SynAnswer::SynAck => "open (SYN-ACK)",
        SynAnswer::Rst => "closed (RST)",
    }
}

/// The numbers of answers; at least one.
pub fn sentence(accepted: u64, refused: u64) -> String {
    match (refused, accepted) {
        (0, 1) => "the answer was a SYN-ACK: the port is open".to_owned(),
        (0, count) => format!("all {count} answers were SYN-ACK: the port is open"),
        (1, 0) => "the answer was a RST: the port is closed, or a firewall answers".to_owned(),
        (count, 0) => {
            format!("all {count} answers were RST: the port is closed, or a firewall answers")
        }
        (refused, accepted) => format!(
            "of the answers {accepted} were SYN-ACK (open) and {refused} RST (closed, or a firewall answers)"
        ),
    }
}
