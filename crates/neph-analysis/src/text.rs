//! Numbers, lists and titles in words.
//!
//! Owns how counts and lists are written in sentences; numbers with units are [`crate::numbers`].

/// `1 block`, `3 blocks`.
pub fn plural(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", crate::numbers::count(number))
}

/// Of a list of scenarios so many are named, the others counted.
const MAX_LISTED: usize = 3;

/// `a; b; c and 2 more scenarios`.
pub fn first_few<L: AsRef<str>>(labels: &[L]) -> String {
    let listed: Vec<&str> = labels.iter().take(MAX_LISTED).map(AsRef::as_ref).collect();
    let more_scenarios = match labels.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more_scenarios => format!(" and {}", plural(more_scenarios, "more scenario")),
    };
    format!("{}{more_scenarios}", listed.join("; "))
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "counts in memory")]
pub const fn to_f64(count: usize) -> f64 {
    count as f64
}

/// With a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
