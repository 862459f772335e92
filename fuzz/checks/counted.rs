//! An allocator that counts what is taken of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MAXIMUM: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MAXIMUM.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Bytes that one time through took at most, beside what was there before, and what came of it.
pub fn most_of<T>(read: impl FnOnce() -> T) -> (usize, T) {
    let before = NOW.load(Relaxed);
    MAXIMUM.store(before, Relaxed);
    let made = read();
    (MAXIMUM.load(Relaxed) - before, made)
}
