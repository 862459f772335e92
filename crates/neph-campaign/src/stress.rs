//! The load that a scenario asks for at sites of the lab: `"none"`, or `"vm1 80%, vm2 25%"`.
//!
//! Owns the words. Whoever has the lab makes the load.

use std::fmt;

use neph_text::{Fault, Node, Take, parse_percent};

/// A share of the processors of a site that is taken while something is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Stressed {
    /// The site, or the guest.
    pub site: String,
    /// Percent, from 1 to 100: of each core that it may use.
    pub percent: f64,
}

impl fmt::Display for Stressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}%", self.site, self.percent)
    }
}

/// What a plan writes where no load is meant.
const NONE: &str = "none";

/// The loads that `text` asks for.
///
/// # Errors
/// It is not written so, or names a site twice.
pub fn parse(text: &str) -> Result<Vec<Stressed>, Fault> {
    if text.trim() == NONE {
        return Ok(Vec::new());
    }
    let mut all: Vec<Stressed> = Vec::new();
    for part in text.split(',') {
        let one = one(part.trim()).ok_or_else(|| {
            let what = format!("\"{text}\" is no load");
            Fault::new(
                what,
                "write \"none\", or sites and shares such as \"vm1 80%, vm2 25%\"",
            )
        })?;
        if all.iter().any(|other| other.site == one.site) {
            let what = format!("site '{}' is named twice", one.site);
            return Err(Fault::new(what, "write one share for it"));
        }
        all.push(one);
    }
    Ok(all)
}

fn one(part: &str) -> Option<Stressed> {
    let (site, share) = part.split_once(char::is_whitespace)?;
    let percent = parse_percent(share.trim()).ok()?;
    (1.0..=100.0).contains(&percent).then(|| Stressed {
        site: site.to_owned(),
        percent,
    })
}

/// The parameter's value as a scenario keeps it.
pub(crate) fn read(node: &Node) -> Result<String, Fault> {
    let all = parse(&String::take(node)?)?;
    if all.is_empty() {
        return Ok(NONE.to_owned());
    }
    let words: Vec<String> = all.iter().map(Stressed::to_string).collect();
    Ok(words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_as_they_are_kept_and_nothing_else_is() {
        let two = parse("vm1  80%,vm2 2.5 %").expect("two");
        let words: Vec<String> = two.iter().map(Stressed::to_string).collect();
        assert_eq!(words, ["vm1 80%", "vm2 2.5%"]);
        assert_eq!(parse(&words.join(", ")), Ok(two));
        assert_eq!(parse("none"), Ok(Vec::new()));
        for wrong in [
            "",
            "vm1",
            "80%",
            "vm1 0%",
            "vm1 101%",
            "vm1 1%,",
            "a 1%, a 2%",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
