//! What targets said to SYNs, in the same words wherever it is told.

use neph_model::SynAnswer;

/// Whether the port is open, and by what that is known.
pub const fn word(answer: SynAnswer) -> &'static str {
    match answer {
        SynAnswer::SynAck => "open (SYN-ACK)",
        SynAnswer::Rst => "closed (RST)",
    }
}

/// How so many answers were given; at least one.
pub fn sentence(accepted: u64, refused: u64) -> String {
    match (refused, accepted) {
        (0, 1) => "the answer was a SYN-ACK: somebody listens there (open)".to_owned(),
        (0, all) => format!("all {all} answers were SYN-ACK: somebody listens there (open)"),
        (1, 0) => {
            "the answer was a RST: nobody listens there (closed, or a firewall answers)".to_owned()
        }
        (all, 0) => format!(
            "all {all} answers were RST: nobody listens there (closed, or a firewall answers)"
        ),
        (refused, accepted) => format!(
            "of the answers {accepted} were SYN-ACK (open: somebody listens there) and {refused} RST (closed: nobody does, or a firewall answers)"
        ),
    }
}
