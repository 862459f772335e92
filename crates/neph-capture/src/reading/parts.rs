//! Which files a capture's name stands for: TAPs write one for each direction, `a.pcap+b.pcap`.

use std::fs;
use std::path::{Path, PathBuf};

/// Separates the names of files.
const SEPARATOR: char = '+';
/// The files that a name stands for: itself, or those that it joins by `+` if these exist. A file
/// whose own name has a `+` is one.
pub fn capture_files(path: &Path) -> Vec<PathBuf> {
    let single_part = || vec![path.to_path_buf()];
    let Some(path_text) = path
        .to_str()
        .filter(|path_text| path_text.contains(SEPARATOR))
    else {
        return single_part();
    };
    if fs::metadata(path).is_ok() {
        return single_part();
    }
    let names: Vec<&str> = path_text.split(SEPARATOR).collect();
    let (mut parts, mut first) = (Vec::new(), 0);
    while first < names.len() {
        // The longest name that exists.
        let joined = |end: usize| names[first..end].join("+");
        let exists = |end: &usize| fs::metadata(joined(*end)).is_ok();
        let end = (first + 1..=names.len())
            .rev()
            .find(exists)
            .unwrap_or(first + 1);
        parts.push(PathBuf::from(joined(end)));
        first = end;
    }
    if parts.iter().any(|part| part.as_os_str().is_empty()) {
        return single_part();
    }
    parts
}
