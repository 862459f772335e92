//! Counts as people say them.

/// `1 message`, `2 messages`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}
