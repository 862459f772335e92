//! Prefetching of memory that is needed soon.
//!
//! A flow takes nine cache lines, and flows are scattered in memory. One cache miss costs about as much as a
//! hundred instructions. With a prefetch the processor loads the lines while it does other work.

/// Prefetches the first cache line of `value`, without waiting for it.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_index::prefetch_index(std::slice::from_ref(value), 0);
}
