//! Random bits that cannot be guessed.

#![expect(
    unsafe_code,
    reason = "system calls; each block has the reason why it is sound"
)]

use std::io;

/// Random bytes from the kernel (getrandom(2)): needs no file. At most 256.
///
/// # Errors
/// Kernels before 3.17 have no such call.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256, "longer requests may be answered in part") };
    let mut bytes = [0_u8; N];
    // SAFETY: getrandom writes at most N bytes to `bytes`, which has that length; requests of up to 256
    // bytes are answered whole.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) == Ok(bytes.len()) {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// 64 random bits.
///
/// # Errors
/// As [`bytes`].
pub fn token() -> io::Result<u64> {
    bytes().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ() {
        assert_ne!(token().expect("Linux"), token().expect("Linux"));
    }
}
