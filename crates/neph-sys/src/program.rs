//! The pages of the program's own code that a process has in memory.
//!
//! Owns where they are, and giving them back. They are the file's, and shared by all its processes.

#![expect(
    unsafe_code,
    reason = "a system call; the block states why it is sound"
)]

use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::ptr;

/// Where the code of this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code(Range<usize>);

impl Code {
    /// As /proc reports it; `None` where it cannot be read.
    pub fn of_this_process() -> Option<Self> {
        let program = fs::read_link("/proc/self/exe").ok()?;
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        maps.lines()
            .find_map(|line| Self::of(line, program.to_str()?))
    }

    /// In this line of /proc/self/maps, if it is there: private, and not writable.
    fn of(line: &str, program: &str) -> Option<Self> {
        let mut text = line.split_whitespace();
        let (range, mode) = (text.next()?, text.next()?);
        let is_code = mode == "r-xp" && text.nth(3) == Some(program);
        let (from, until) = range.split_once('-').filter(|_| is_code)?;
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        Some(Self(address(from)?..address(until)?))
    }

    /// Takes the pages out of the process: those that run again come back from the page cache, one by one.
    /// What only the start needed stays away.
    pub fn give_back(&self) {
        let from = ptr::without_provenance_mut::<c_void>(self.0.start);
        // SAFETY: the range is one mapping of the program's file, private and never writable: reading it
        // again gives the same bytes.
        unsafe {
            // What is locked into memory stays.
            libc::madvise(from, self.0.len(), libc::MADV_DONTNEED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_executable_mapping_of_the_program_file() {
        let line = "5612b000-5612c000 r-xp 00b1f000 fe:00 1234   /usr/bin/neph";
        let code = Code::of(line, "/usr/bin/neph");
        assert_eq!(code, Some(Code(0x5612_b000..0x5612_c000)));
        assert_eq!(Code::of(line, "/usr/bin/other"), None);
        assert_eq!(
            Code::of(&line.replace("r-xp", "rwxp"), "/usr/bin/neph"),
            None
        );
        assert_eq!(Code::of("", "/usr/bin/neph"), None);
    }

    #[test]
    fn a_process_that_releases_its_code_uses_less_memory() {
        let code = Code::of_this_process().expect("/proc is there");
        let resident = || {
            let status = fs::read_to_string("/proc/self/status").expect("/proc is there");
            let line = status.lines().find(|line| line.starts_with("RssFile:"));
            let kib = line.and_then(|line| line.split_whitespace().nth(1));
            kib.and_then(|kib| kib.parse::<u64>().ok())
                .expect("a number")
        };
        let before = resident();
        code.give_back();
        assert!(resident() < before);
    }
}
