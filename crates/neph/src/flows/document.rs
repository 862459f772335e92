//! The document at the end: the summary with each flow and each change, written one after the
//! other. 50,000 flows as one value would take more memory than the measurement.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::json;
use super::watch::Watched;

/// See the module.
pub(super) struct Document<'a> {
    summary: Map<String, Value>,
    /// Whose flows and changes come after it; `None` for the summary alone.
    whole: Option<&'a Watched>,
}

impl<'a> Document<'a> {
    /// The summary alone.
    pub(super) fn brief(watched: &Watched) -> Self {
        let summary = match json::summary(watched) {
            Value::Object(summary) => summary,
            _ => Map::new(),
        };
        let whole = None;
        Self { summary, whole }
    }

    /// With each flow and each change.
    pub(super) fn whole(watched: &'a Watched) -> Self {
        Self {
            whole: Some(watched),
            ..Self::brief(watched)
        }
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.summary {
            map.serialize_entry(key, value)?;
        }
        if let Some(watched) = self.whole {
            map.serialize_entry("flows", &Each(|| json::flows(watched)))?;
            map.serialize_entry("changes", &Each(|| json::changes(watched)))?;
        }
        map.end()
    }
}

/// A list whose values are made as they are written.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item = Value>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_that_is_made_as_it_is_written_reads_like_any_other() {
        let each = Each(|| (0..3).map(|number| json!({ "number": number })));
        let text = serde_json::to_string_pretty(&each).expect("it can be written");
        let whole = json!([{ "number": 0 }, { "number": 1 }, { "number": 2 }]);
        assert_eq!(text, serde_json::to_string_pretty(&whole).expect("as well"));
    }
}
