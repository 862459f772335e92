//! Suggests the name that was probably meant.

use std::collections::HashSet;

/// The one of `known` that was probably meant by `given`, if one is near. A short name may have one
/// typing error, plus one for every four letters.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Far longer than any known name: no typing error, and the distance takes quadratic time.
    if given.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .take(COMPARED)
        .filter(|name| least_distance(given, name) <= max_errors(name))
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= max_errors(name))
        .min()
        .map(|(_, name)| name)
}

/// Allowed typing errors for a name.
const fn max_errors(name: &str) -> usize {
    1 + name.len() / 4
}

/// A lower bound of the distance in bytes, in linear time: a typing error changes the count of at
/// most two byte values by one each.
fn least_distance(given: &str, name: &str) -> usize {
    if name.len() > 4 * 64 {
        return usize::MAX;
    }
    let mut counts = [0_i16; 256];
    for byte in given.bytes() {
        counts[usize::from(byte)] += 1;
    }
    for byte in name.bytes() {
        counts[usize::from(byte)] -= 1;
    }
    let sum: u32 = counts
        .iter()
        .map(|count| u32::from(count.unsigned_abs()))
        .sum();
    // A character has up to four bytes, so an error changes up to eight counts.
    let counts_per_error = if given.is_ascii() && name.is_ascii() {
        2
    } else {
        8
    };
    usize::try_from(sum.div_ceil(counts_per_error)).unwrap_or(usize::MAX)
}

/// Maximum number of known names to compare: a file may have thousands of both.
const COMPARED: usize = 1000;
/// Maximum number of known names to sort by distance; of more, the first ones are listed.
const ORDERED: usize = 100;

/// Maximum characters of the listed names; of more, the nearest ones are listed.
const LISTED: usize = 240;

/// The remedy for a name that is not in `known`.
pub fn did_you_mean(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean '{name}'?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => format!("known here: {}", listed(given, known)),
    }
}

/// Each name once: all of them if they fit, else the nearest first, and the number of others.
fn listed(given: &str, known: &[&str]) -> String {
    let mut observed = HashSet::new();
    let unique_names = known.iter().filter(|name| observed.insert(**name));
    let mut names: Vec<&str> = unique_names.copied().collect();
    let joined = names.join(", ");
    if joined.len() <= LISTED {
        return joined;
    }
    let given: String = given.chars().take(64).collect();
    if names.len() <= ORDERED {
        names.sort_by_key(|name| strsim::damerau_levenshtein(&given, name));
    }
    let mut length = 0;
    let fitting = names.iter().take_while(|name| {
        length += name.len() + ", ".len();
        length <= LISTED
    });
    let shown: Vec<&str> = fitting.copied().collect();
    let more = names.len() - shown.len();
    format!("{}, and {more} more", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(
            nearest("intervall", ["interval", "timeout"]),
            Some("interval")
        );
        assert_eq!(nearest("dealy", ["delay", "rate"]), Some("delay"));
        assert_eq!(nearest("colour", ["delay", "rate"]), None);
    }

    #[test]
    fn the_lower_bound_is_never_above_the_distance() {
        for (given, name) in [
            ("intervall", "interval"),
            ("dealy", "delay"),
            ("abc", "xyz"),
            ("größe", "grosse"),
            ("日本", "a"),
            ("", "abcd"),
        ] {
            let distance = strsim::damerau_levenshtein(given, name);
            assert!(least_distance(given, name) <= distance, "{given} {name}");
        }
    }

    #[test]
    fn known_names_are_listed_once_and_never_truncated() {
        let suggestion = did_you_mean("colour", &["delay", "rate", "delay"]);
        assert_eq!(suggestion, "known here: delay, rate");
        let many: Vec<String> = (100..200).map(|number| format!("name_{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let suggestion = did_you_mean("xyz_177", &many);
        assert!(
            suggestion.starts_with("known here: name_177, "),
            "{suggestion}"
        );
        assert!(suggestion.ends_with(", and 76 more"), "{suggestion}");
        assert!(suggestion.len() < 300, "{suggestion}");
    }
}
