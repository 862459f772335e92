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

/// Characters of all known names together that are listed; of more, the nearest ones.
const LISTED: usize = 240;

/// A remedy for a name that is not among `known`.
pub fn did_you_mean(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean '{name}'?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => format!("known here: {}", listed(given, known)),
    }
}

/// Each name once and whole: all of them where they fit, else the nearest first, and how many more.
fn listed(given: &str, known: &[&str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let all = names.join(", ");
    if all.len() <= LISTED {
        return all;
    }
    let given: String = given.chars().take(64).collect();
    names.sort_by_key(|name| strsim::damerau_levenshtein(&given, name));
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
    fn known_names_are_listed_once_and_whole() {
        let told = did_you_mean("colour", &["delay", "rate", "delay"]);
        assert_eq!(told, "known here: delay, rate");
        let many: Vec<String> = (100..200).map(|number| format!("name_{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let told = did_you_mean("xyz_177", &many);
        assert!(told.starts_with("known here: name_177, "), "{told}");
        assert!(told.ends_with(", and 76 more"), "{told}");
        assert!(told.len() < 300, "{told}");
    }
}
