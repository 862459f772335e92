//! The parameters of a scenario: each at most once, in the order of their names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Parameter, ParameterName, ParseParameterError};

/// Parameters with their values, each parameter at most once. Serialised as a map of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    into = "BTreeMap<String, String>",
    try_from = "BTreeMap<String, String>"
)]
pub struct Parameters(BTreeMap<ParameterName, Parameter>);

impl Parameters {
    /// None at all.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The value of a parameter, if it is fixed.
    pub fn get(&self, name: ParameterName) -> Option<&Parameter> {
        self.0.get(&name)
    }

    /// Fixes a parameter, in the place of the value that it had.
    pub fn insert(&mut self, parameter: Parameter) {
        self.0.insert(parameter.name(), parameter);
    }

    /// Fixes it no more.
    pub fn remove(&mut self, name: ParameterName) {
        self.0.remove(&name);
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.0.values()
    }
}

impl Extend<Parameter> for Parameters {
    fn extend<I: IntoIterator<Item = Parameter>>(&mut self, parameters: I) {
        parameters
            .into_iter()
            .for_each(|parameter| self.insert(parameter));
    }
}

impl FromIterator<Parameter> for Parameters {
    fn from_iter<I: IntoIterator<Item = Parameter>>(parameters: I) -> Self {
        let mut result = Self::new();
        result.extend(parameters);
        result
    }
}

impl<const N: usize> From<[Parameter; N]> for Parameters {
    fn from(parameters: [Parameter; N]) -> Self {
        parameters.into_iter().collect()
    }
}

impl From<Parameters> for BTreeMap<String, String> {
    fn from(parameters: Parameters) -> Self {
        let text = |parameter: &Parameter| (parameter.name().as_str().to_owned(), parameter.text());
        parameters.iter().map(text).collect()
    }
}

impl TryFrom<BTreeMap<String, String>> for Parameters {
    type Error = ParseParameterError;

    fn try_from(texts: BTreeMap<String, String>) -> Result<Self, ParseParameterError> {
        let read = |(name, text): (String, String)| {
            Parameter::read(ParameterName::from_name(&name)?, &text)
        };
        texts.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn a_parameter_appears_once_with_its_last_value() {
        let flows = |count| Parameter::Flows(NonZeroU32::new(count).expect("some"));
        let parameters = Parameters::from([flows(2), Parameter::FollowRedirects(true), flows(3)]);
        let texts: Vec<_> = parameters.iter().map(Parameter::text).collect();
        assert_eq!(texts, ["3", "true"]);
        assert_eq!(parameters.flows().map(|flows| flows.get()), Some(3));
        assert_eq!(parameters.season(), None);
    }

    #[test]
    fn unknown_parameter_names_and_values_are_refused() {
        let read = |name: &str, text: &str| {
            Parameters::try_from(BTreeMap::from([(name.to_owned(), text.to_owned())]))
        };
        assert!(read("flows", "8").is_ok());
        assert!(read("flows", "many").is_err() && read("flaws", "8").is_err());
    }
}
