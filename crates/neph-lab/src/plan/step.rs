//! Owns one step of a plan, in words.

/// One step of bringing a lab up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The namespace that it is done in, or makes.
    pub namespace: String,
    /// What one would type to do it by hand; what neph does itself begins with `neph:`.
    pub line: String,
}

impl Step {
    pub(crate) fn new(namespace: &str, line: String) -> Self {
        let namespace = namespace.to_owned();
        Self { namespace, line }
    }
}
