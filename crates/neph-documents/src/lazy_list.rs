//! A list whose values are created while it is written: 50,000 flows as one value would take more
//! memory than the measurement.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Serialize, Serializer};

/// Creates the values, at each call.
type Make<'a, T> = dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + 'a;

/// A list of `T` whose values are created while it is written.
pub struct LazyList<'a, T>(Box<Make<'a, T>>);

impl<'a, T> LazyList<'a, T> {
    /// The list whose values this function creates.
    pub fn new<I: Iterator<Item = T> + 'a>(make: impl Fn() -> I + 'a) -> Self {
        Self(Box::new(move || Box::new(make())))
    }
}

impl<T> fmt::Debug for LazyList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LazyList")
    }
}

impl<T: Serialize> Serialize for LazyList<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

impl<T: JsonSchema> JsonSchema for LazyList<'_, T> {
    fn schema_name() -> Cow<'static, str> {
        Vec::<T>::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lazy_list_serializes_like_a_vector() {
        let lazy = LazyList::new(|| 0..3);
        let text = serde_json::to_string(&lazy).expect("it can be written");
        assert_eq!(text, "[0,1,2]");
    }
}
