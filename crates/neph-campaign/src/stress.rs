//! How a plan writes the load that a scenario asks for at sites of the lab: `"none"`,
//! `"vm1 80%, vm2 25%"`, traffic from them (`"vm2 flow 10.0.0.1:8080 max"`), or a table that names it.
//!
//! Owns how people write a load, and their mistakes. [`Stress`] owns what a load is; the ground that has
//! the lab makes it.

use neph_model::{BitRate, LoadUnits, ParseLoadError, Stress};
use neph_text::{
    Fault, FromNode, Node, Problems, Spanned, Value, is_hidden, parse_percent, parse_rate,
};

/// Numbers as people write them: `2.5 %`, `1.45Mbit/s`.
const UNITS: LoadUnits = LoadUnits {
    percent: |text| parse_percent(text).ok(),
    rate: |text| parse_rate(text).ok().map(BitRate),
};

/// The load that `text` asks for.
///
/// # Errors
/// It is not written so, or asks twice for the same of a site.
pub fn parse(text: &str) -> Result<Stress, Fault> {
    if text.trim() == Stress::NONE {
        return Ok(Stress::of(Vec::new()));
    }
    UNITS.loads(text).map(Stress::of).map_err(|error| {
        let remedy = match &error {
            ParseLoadError::Text(_) => {
                "write \"none\", sites and shares such as \"vm1 80%, vm2 25%\", or traffic such as \
                 \"vm2 flow 10.0.0.1:8080 max\" or \"vm2 stream 10.0.0.1:8080 1450kbit/s\""
            }
            ParseLoadError::DuplicateLoad(_) => "write one share or rate for it",
        };
        Fault::new(error.to_string(), remedy)
    })
}

/// The parameter's value: a load, or `{ name = "busy", load = "vm1 80%" }`.
pub(crate) fn read(node: &Node) -> Result<Stress, Fault> {
    let Value::Table(table) = &node.value else {
        let text = String::from_node(node)?;
        if text.contains('=') {
            let message = format!("\"{text}\" is no load");
            return Err(Fault::new(message, LOAD_REMEDY));
        }
        return parse(&text);
    };
    let (mut name, mut load) = (None, None);
    for entry in &table.entries {
        match entry.key.as_str() {
            "name" => name = Some(String::from_node(&entry.node)?),
            "load" => load = Some(String::from_node(&entry.node)?),
            other => {
                return Err(Fault::new(
                    format!("a load has no key '{other}'"),
                    LOAD_REMEDY,
                ));
            }
        }
    }
    let pair = name.zip(load);
    let (name, load) =
        pair.ok_or_else(|| Fault::new("a load lacks its name or its load", LOAD_REMEDY))?;
    let name = name.trim();
    let stress = parse(&load)?.with_name(name);
    let stress = stress.filter(|_| !name.contains(is_hidden));
    stress.ok_or_else(|| {
        let message = format!("\"{name}\" is no name of a load");
        let remedy = "write 1 to 60 characters without = and line breaks, and not \"none\"";
        Fault::new(message, remedy)
    })
}

const LOAD_REMEDY: &str =
    "write \"vm1 80%\", or { name = \"busy\", load = \"vm1 80%\" } to name it";

/// A name stands for one load only, and a load has one name: else two labels would be one, or one load two
/// scenarios.
pub(crate) fn check_names(requested: &[Spanned<Stress>], problems: &Problems<'_>) {
    for (index, requested_load) in requested.iter().enumerate() {
        let current = &requested_load.value;
        let clash = requested[..index]
            .iter()
            .map(|other| &other.value)
            .find(|other_load| {
                let (is_same_name, is_same_load) = (
                    current.name() == other_load.name(),
                    current.loads() == other_load.loads(),
                );
                let is_name_of_two = current.name().is_some() && is_same_name && !is_same_load;
                is_name_of_two || (is_same_load && !is_same_name)
            });
        if let Some(other_load) = clash {
            let quoted_name = |stress: &Stress| {
                let name = stress.name().map(|name| format!("'{name}'"));
                name.unwrap_or_else(|| "no name".to_owned())
            };
            let message = if current.loads() == other_load.loads() {
                let load = current.unnamed();
                format!(
                    "the load \"{load}\" is called {} and {}",
                    quoted_name(other_load),
                    quoted_name(current)
                )
            } else {
                let (other, load) = (other_load.unnamed(), current.unnamed());
                format!("{} names \"{other}\" and \"{load}\"", quoted_name(current))
            };
            let remedy = "give each load one name, and each name one load";
            problems.add(requested_load.span.clone(), Fault::new(message, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_spellings_of_a_load_have_one_stored_form() {
        for (written, stored) in [
            ("vm1  80%,vm2 2.5 %", "vm1 80%, vm2 2.5%"),
            ("vm1 stream h:80 1.45Mbit/s", "vm1 stream h:80 1450kbit/s"),
            (" none ", "none"),
        ] {
            let read = parse(written).expect(written);
            assert_eq!(read.to_string(), stored);
            assert_eq!(stored.parse(), Ok(read));
        }
    }

    #[test]
    fn a_mistake_in_a_load_is_reported_with_a_remedy() {
        let message_of = |text: &str| parse(text).expect_err(text).message;
        assert_eq!(message_of("vm1"), "\"vm1\" is no load");
        assert_eq!(
            message_of("a 1%, a 2%"),
            "site 'a' is named twice for the same load"
        );
    }
}
