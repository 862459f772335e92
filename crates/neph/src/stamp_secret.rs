//! What may be wrong with the secret of STAMP where a reflector is there and does not answer, in the same
//! words wherever it is printed.

/// `has_key`: whether one was given.
pub(crate) const fn suspicion(has_key: bool) -> &'static str {
    if has_key {
        "--stamp-key is not the reflector's secret"
    } else {
        "the reflector wants its secret (--stamp-key)"
    }
}
