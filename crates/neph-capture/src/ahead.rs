//! Memory that will be needed soon.
//!
//! Flows lie far apart in memory: who needs one waits for it as long as a hundred instructions take, and
//! a flow lies in nine lines of memory. Told in time the processor fetches them while it does other
//! things.

/// The line of memory in which `value` begins is fetched; nobody waits for it.
#[inline]
pub(crate) fn fetch<T>(value: &T) {
    prefetch_index::prefetch_index(std::slice::from_ref(value), 0);
}
