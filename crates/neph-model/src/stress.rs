//! The load that a scenario fixes, and how the plan calls it.

use std::fmt;
use std::str::FromStr;

use crate::site_load::{LoadUnits, ParseLoadError, SiteLoad};

/// The load that a scenario fixes: loads at sites, or none; perhaps with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stress {
    /// How the plan calls it.
    name: Option<String>,
    /// The loads; without any, none is meant.
    loads: Vec<SiteLoad>,
    /// The loads as they are written.
    text: String,
}

/// Between a load's name and what it is: `busy neighbour = vm2 98%`.
const NAMES: &str = " = ";
/// The longest name, in characters.
const LONGEST_NAME: usize = 60;

impl Stress {
    /// The word for no load.
    pub const NONE: &'static str = "none";

    /// These loads, without a name.
    pub fn of(loads: Vec<SiteLoad>) -> Self {
        let texts: Vec<String> = loads.iter().map(SiteLoad::to_string).collect();
        let text = if texts.is_empty() {
            Self::NONE.to_owned()
        } else {
            texts.join(", ")
        };
        let name = None;
        Self { name, loads, text }
    }

    /// The same with a name: 1 to 60 characters, none of them a `=` or a control character, and not
    /// `none`.
    pub fn with_name(self, name: &str) -> Option<Self> {
        let is_plain = |character: char| !character.is_control() && character != '=';
        let length = name.chars().count();
        let is_name = (1..=LONGEST_NAME).contains(&length)
            && name.trim() == name
            && name != Self::NONE
            && name.chars().all(is_plain);
        is_name.then(|| Self {
            name: Some(name.to_owned()),
            ..self
        })
    }

    /// How the plan calls it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The loads; without any, none is meant.
    pub fn loads(&self) -> &[SiteLoad] {
        &self.loads
    }

    /// The loads without their name, as they are written: two scenarios of the same loads are one.
    pub fn unnamed(&self) -> &str {
        &self.text
    }

    /// Its name if it has one, else the loads.
    pub fn title(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.text)
    }
}

/// With its name, if it has one.
impl fmt::Display for Stress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}{NAMES}{}", self.text),
            None => f.pad(&self.text),
        }
    }
}

impl FromStr for Stress {
    type Err = ParseLoadError;

    /// As it is displayed.
    fn from_str(text: &str) -> Result<Self, ParseLoadError> {
        let (name, loads) = match text.split_once(NAMES) {
            Some((name, loads)) => (Some(name), loads),
            None => (None, text),
        };
        let plain = match loads.trim() {
            Self::NONE => Self::of(Vec::new()),
            loads => Self::of(LoadUnits::EXACT.loads(loads)?),
        };
        match name {
            Some(name) => plain
                .with_name(name)
                .ok_or_else(|| ParseLoadError::Text(text.to_owned())),
            None => Ok(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_roundtrip_through_text() {
        for text in [
            "none",
            "vm1 80%, vm2 2.5%",
            "busy neighbour = vm2 98%, vm3 98%",
        ] {
            let read: Stress = text.parse().expect(text);
            assert_eq!(read.to_string(), text);
        }
        let stress: Stress = "busy = vm1 80%".parse().expect("a load");
        let plain: Stress = "vm1 80%".parse().expect("a load");
        assert_eq!(stress.loads(), plain.loads());
        assert_eq!((stress.title(), plain.title()), ("busy", "vm1 80%"));
    }

    #[test]
    fn a_name_is_one_line_without_an_equals_sign() {
        let is_name = |name: &str| Stress::of(Vec::new()).with_name(name).is_some();
        for name in ["busy", "first hop, shared", "ünder load"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "none", "a = b", "a\nb", " a", &"x".repeat(61)] {
            assert!(!is_name(name), "{name}");
        }
        assert!("none = a 1%".parse::<Stress>().is_err());
    }
}
