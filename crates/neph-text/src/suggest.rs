//! The name that was probably meant.

/// The one of `known` that `given` was probably meant to be, if one is near: at most one slip in a
/// short name, one more for every four letters.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Longer than any name of ours by far: not a slip, and the distance would cost its square.
    if given.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// A remedy for a name that is not among `known`.
pub fn did_you_mean(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean '{name}'?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
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
}
