//! Random bits that cannot be guessed.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;

/// 64 random bits from the kernel (getrandom(2)): needs no file.
///
/// # Errors
/// Kernels before 3.17 have no such call.
pub fn token() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: getrandom writes at most 8 bytes to `bytes`, which has that length; requests of up to 256
    // bytes are answered whole.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) == Ok(bytes.len()) {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ() {
        assert_ne!(token().expect("Linux"), token().expect("Linux"));
    }
}
