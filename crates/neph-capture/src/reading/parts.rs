//! Which files a capture's name stands for: TAPs write one for each direction, `a.pcap+b.pcap`.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands between the names of files.
const AND: char = '+';
/// The files that a name stands for: itself, or those that it joins by `+` where these are there. A file
/// whose own name has a `+` is one.
pub fn parts(path: &Path) -> Vec<PathBuf> {
    let single_part = || vec![path.to_path_buf()];
    let Some(text) = path.to_str().filter(|text| text.contains(AND)) else {
        return single_part();
    };
    if fs::metadata(path).is_ok() {
        return single_part();
    }
    let names: Vec<&str> = text.split(AND).collect();
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < names.len() {
        // The longest name that is there.
        let joined = |until: usize| names[from..until].join("+");
        let is_there = |until: &usize| fs::metadata(joined(*until)).is_ok();
        let until = (from + 1..=names.len())
            .rev()
            .find(is_there)
            .unwrap_or(from + 1);
        parts.push(PathBuf::from(joined(until)));
        from = until;
    }
    if parts.iter().any(|part| part.as_os_str().is_empty()) {
        return single_part();
    }
    parts
}
