//! Counts with their nouns.

/// `1 message`, `2 messages`.
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// `block 3`, `blocks 1, 2, 4`.
pub fn blocks(numbers: impl IntoIterator<Item = u32>) -> String {
    let listed: Vec<String> = numbers.into_iter().map(|block| block.to_string()).collect();
    let noun = if listed.len() == 1 { "block" } else { "blocks" };
    format!("{noun} {}", listed.join(", "))
}
