//! A folder of this process's own, in memory where the machine has such.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared = PathBuf::from("/dev/shm");
    let root = if shared.is_dir() {
        shared
    } else {
        std::env::temp_dir()
    };
    let folder = root.join(format!("neph-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder of one's own");
    folder
});

/// Its path. It stays when the process ends, which a fuzzer does by a signal.
pub fn path() -> PathBuf {
    FOLDER.clone()
}
