//! An allocator that records the peak of allocated memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct CountingAllocator;

static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(
            ALLOCATED_BYTES.fetch_add(layout.size(), Relaxed) + layout.size(),
            Relaxed,
        );
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED_BYTES.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Peak of the bytes that an operation allocated beyond what was allocated before, and its result.
pub fn measure<T>(operation: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATED_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let result = operation();
    (PEAK_BYTES.load(Relaxed) - before, result)
}
