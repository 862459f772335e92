//! The boot image of a guest: an initramfs with this neph, its libraries, busybox, and a script as the first
//! process.
//!
//! Owns the archive (cpio, "newc", as the kernel reads it) and the choice of files. It is not compressed:
//! decompression would take longer than reading.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Modes of a folder, a program and a character device (stat(2)).
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;
/// The console's device number: the kernel opens it before anything is mounted.
const CONSOLE: (u32, u32) = (5, 1);

/// Writes the image with `script` as its first process, and with `busybox` and neph.
///
/// # Errors
/// A file cannot be read, or the image cannot be written.
pub(crate) fn write(path: &Path, script: &str, busybox: &Path) -> io::Result<()> {
    let mut archive = Archive::new(BufWriter::new(File::create(path)?));
    for folder in ["proc", "sys", "tmp"] {
        archive.add_folder(folder)?;
    }
    archive.add_device("dev/console", CONSOLE)?;
    archive.add_program("init", script.as_bytes())?;
    archive.add_program("bin/busybox", &fs::read(busybox)?)?;
    let neph = fs::read("/proc/self/exe")?;
    if let Some(loader) = interpreter(&neph) {
        archive.add_program(loader, &fs::read(loader)?)?;
    }
    for library in libraries(&fs::read_to_string("/proc/self/maps")?) {
        archive.add_program(&library, &fs::read(&library)?)?;
    }
    archive.add_program("bin/neph", loaded_part(&neph))?;
    archive.finish()
}

/// The libraries among the files that a process has mapped (proc(5)), each once.
fn libraries(maps: &str) -> BTreeSet<String> {
    let files = maps.lines().filter_map(|line| line.split_once(" /"));
    let files = files.map(|(_, path)| format!("/{path}"));
    let is_library = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split('.').any(|part| part == "so")
    };
    files.filter(is_library).collect()
}

/// The needed fields of the program headers: kind, offset and length in the file (elf(5)).
fn segments(program: &[u8]) -> Vec<(u64, usize, usize)> {
    let integer = |at: usize, size: usize| -> Option<u64> {
        let bytes = program.get(at..at.checked_add(size)?)?;
        let mut padded_bytes = [0; 8];
        padded_bytes[..size].copy_from_slice(bytes);
        Some(u64::from_le_bytes(padded_bytes))
    };
    let read_usize = |at: usize, size: usize| usize::try_from(integer(at, size)?).ok();
    let table = (read_usize(32, 8), read_usize(54, 2), read_usize(56, 2));
    let (Some(first), Some(size), Some(count)) = table else {
        return Vec::new();
    };
    let segment_of_header = |header: usize| {
        Some((
            integer(header, 4)?,
            read_usize(header.checked_add(8)?, 8)?,
            read_usize(header.checked_add(32)?, 8)?,
        ))
    };
    let headers = (0..count).map(|index| first.saturating_add(index * size));
    headers.filter_map(segment_of_header).collect()
}

/// The loader of the program's libraries, if it has one.
fn interpreter(program: &[u8]) -> Option<&str> {
    const INTERPRETER: u64 = 3;
    let segments = segments(program);
    let (_, at, length) = segments.iter().find(|(kind, ..)| *kind == INTERPRETER)?;
    let path = program.get(*at..at.checked_add(*length)?)?;
    std::str::from_utf8(path)
        .ok()?
        .trim_end_matches('\0')
        .into()
}

/// The part of a program that is loaded: the rest is for debuggers, and may be far longer.
fn loaded_part(program: &[u8]) -> &[u8] {
    let segments = segments(program);
    let ends = segments
        .iter()
        .map(|(_, at, length)| at.saturating_add(*length));
    let end = ends.max().filter(|end| *end > 0);
    end.and_then(|end| program.get(..end)).unwrap_or(program)
}

/// An archive that is being written.
struct Archive<W> {
    out: W,
    entries: u32,
    folders: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            entries: 0,
            folders: BTreeSet::new(),
        }
    }

    fn add_program(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.create_parents(path)?;
        self.write_entry(&path, PROGRAM, (0, 0), bytes)
    }

    fn add_device(&mut self, path: &str, number: (u32, u32)) -> io::Result<()> {
        let path = self.create_parents(path)?;
        self.write_entry(&path, DEVICE, number, &[])
    }

    fn add_folder(&mut self, path: &str) -> io::Result<()> {
        if self.folders.insert(path.to_owned()) {
            self.write_entry(path, FOLDER, (0, 0), &[])?;
        }
        Ok(())
    }

    /// Creates the folders above `path`; returns the path without its first slash.
    fn create_parents(&mut self, path: &str) -> io::Result<String> {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            self.add_folder(&path[..end])?;
        }
        Ok(path.to_owned())
    }

    /// A header of 110 characters, the name with a zero byte, the content; each padded to four bytes.
    fn write_entry(
        &mut self,
        name: &str,
        mode: u32,
        (major, minor): (u32, u32),
        content: &[u8],
    ) -> io::Result<()> {
        let length = |bytes: usize| {
            u32::try_from(bytes).map_err(|_| io::Error::other("a file is too long for an image"))
        };
        self.entries += 1;
        let (size, name_length) = (length(content.len())?, length(name.len() + 1)?);
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            major,
            minor,
            name_length,
            0,
        ];
        let mut header = "070701".to_owned();
        for field in fields {
            header.push_str(&format!("{field:08X}"));
        }
        self.write_padded(format!("{header}{name}\0").as_bytes())?;
        self.write_padded(content)
    }

    fn write_padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        let padding_length = bytes.len().next_multiple_of(4) - bytes.len();
        self.out.write_all(&[0; 4][..padding_length])
    }

    fn finish(mut self) -> io::Result<()> {
        self.write_entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_lists_each_folder_once_before_its_files() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        archive
            .add_program("/usr/lib/a.so.1", b"12345")
            .expect("memory");
        archive.add_program("usr/lib/b.so.1", b"").expect("memory");
        archive.finish().expect("memory");
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<&str> = text
            .split("070701")
            .skip(1)
            .map(|entry| entry[104..].split('\0').next().expect("a name"))
            .collect();
        let expected = [
            "usr",
            "usr/lib",
            "usr/lib/a.so.1",
            "usr/lib/b.so.1",
            "TRAILER!!!",
        ];
        assert_eq!(names, expected);
        // 110 characters of header and 16 of the name with its zero byte: two more to a multiple of four.
        let begin = text.find("12345").expect("the content");
        assert_eq!(
            (begin % 4, &text[begin + 5..begin + 14]),
            (0, "\0\0\x00070701")
        );
    }

    #[test]
    fn libraries_are_the_mapped_files_with_a_library_name() {
        let maps = "7f-80 r-xp 00000000 fe:00 12   /usr/lib/libc.so.6\n\
                    80-81 r--p 00001000 fe:00 12   /usr/lib/libc.so.6\n\
                    55-56 r-xp 00000000 fe:00 9    /usr/bin/neph\n\
                    7d-7e rw-p 00000000 00:00 0    [heap]\n";
        let libraries: Vec<String> = libraries(maps).into_iter().collect();
        assert_eq!(libraries, ["/usr/lib/libc.so.6"]);
    }

    #[test]
    fn a_program_is_reduced_to_its_loaded_parts() {
        let program = fs::read("/proc/self/exe").expect("this test");
        let short = loaded_part(&program);
        assert!(short.len() < program.len() && short.len() > program.len() / 100);
        assert_eq!(loaded_part(b"#!/bin/sh\n"), b"#!/bin/sh\n");
        assert!(interpreter(&program).is_none_or(|path| Path::new(path).exists()));
    }
}
