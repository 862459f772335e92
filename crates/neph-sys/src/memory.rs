//! Memory that may run out: a reserve for what cannot be refused, and large blocks that go back to the
//! system.
//!
//! Owns the allocator of the program. Code that can refuse work asks for memory in a way that may fail
//! (`try_reserve`); this is for the small allocations that cannot.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The reserve: address space, of which no page is used.
const RESERVE: usize = 16 << 20;
/// Allocations up to here may use it.
const SMALL: usize = 128 << 10;
/// Blocks from here on are mapped on their own, and unmapped when freed.
const LARGE: libc::c_int = 128 << 10;
/// Heaps that threads share: each keeps what was freed in it.
const HEAPS: libc::c_int = 4;

static HELD: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The system's allocator; a small allocation that fails gives up the reserve ([`keep_reserve`]) and is tried
/// once more.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: every block comes from the system's allocator and goes back to it; what it is asked is not changed.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system's allocator's.
        or_with_reserve(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_with_reserve(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; where it fails the block is as it was, so that it may be tried once more.
        or_with_reserve(size, || unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn or_with_reserve(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let block = allocate();
    if !block.is_null() || size > SMALL {
        return block;
    }
    if !give_up() {
        // Another thread may be giving it up at this moment.
        std::thread::yield_now();
    }
    allocate()
}

/// Reserves the memory, also after a release; returns whether it is reserved.
pub fn keep_reserve() -> bool {
    if is_reserved() {
        return true;
    }
    let Some(mapped) = map(RESERVE) else {
        return false;
    };
    let empty = ptr::null_mut();
    let previous = HELD.compare_exchange(empty, mapped, Ordering::AcqRel, Ordering::Acquire);
    if previous.is_err() {
        unmap(mapped, RESERVE);
    }
    true
}

/// Whether the memory is reserved. It is not after memory ran out, and before [`keep_reserve`].
pub fn is_reserved() -> bool {
    !HELD.load(Ordering::Acquire).is_null()
}

/// Whether the system would map so many bytes now.
pub fn is_there(bytes: usize) -> bool {
    let mapped = map(bytes);
    if let Some(mapped) = mapped {
        unmap(mapped, bytes);
    }
    mapped.is_some()
}

/// Frees the reserve; whether it was held.
fn give_up() -> bool {
    let reserve = HELD.swap(ptr::null_mut(), Ordering::AcqRel);
    if reserve.is_null() {
        return false;
    }
    unmap(reserve, RESERVE);
    true
}

fn map(bytes: usize) -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping anywhere, which no reference points into.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped)
}

fn unmap(mapped: *mut c_void, bytes: usize) {
    // SAFETY: `mapped` came from `map` with as many bytes. It has no other owner: it was not published, or
    // was taken out of `HELD`. A failure leaves address space taken, nothing else.
    let _ = unsafe { libc::munmap(mapped, bytes) };
}

/// From here on large blocks go back to the system when they are freed, and threads share few heaps: what
/// a process holds is what it uses. Only glibc has to be asked; musl does so.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        (libc::M_MMAP_THRESHOLD, LARGE),
        (libc::M_TRIM_THRESHOLD, LARGE),
        (libc::M_ARENA_MAX, HEAPS),
    ] {
        // SAFETY: mallopt takes two integers. It fails for a value out of range, and then nothing changes.
        let _ = unsafe { libc::mallopt(option, value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails while the memory is reserved, as if it had taken the last of the memory.
    fn scarce() -> *mut u8 {
        if is_reserved() {
            ptr::null_mut()
        } else {
            ptr::dangling_mut()
        }
    }

    #[test]
    fn a_small_allocation_that_fails_uses_the_reserve_once_and_a_large_one_does_not() {
        assert!(keep_reserve() && keep_reserve() && is_reserved());
        assert!(or_with_reserve(SMALL + 1, scarce).is_null());
        assert!(is_reserved());
        assert!(!or_with_reserve(SMALL, scarce).is_null());
        assert!(!is_reserved());
        assert!(or_with_reserve(1, ptr::null_mut).is_null());
        assert!(keep_reserve() && is_reserved());
        assert!(give_up());
    }

    #[test]
    fn an_allocation_above_the_address_space_fails() {
        assert!(is_there(1 << 20));
        assert!(!is_there(usize::MAX >> 1));
    }
}
