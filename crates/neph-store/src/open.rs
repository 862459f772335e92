//! Opens a store by its URL or path. Each kind of store is one line of [`STORES`].

use std::path::Path;

use crate::embedded::Embedded;
use crate::{Access, Store, StoreError};

/// Opens a store by the part of the URL after the scheme.
pub type OpenStore = fn(&str, Access) -> Result<Box<dyn Store>, StoreError>;

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub struct StoreKind {
    /// Its URL scheme.
    pub scheme: &'static str,
    /// Description for `--help`.
    pub about: &'static str,
    /// Opens a store by the part after `scheme://`.
    pub open: OpenStore,
}

/// Every kind of store. The first one opens paths without a scheme.
pub const STORES: &[StoreKind] = &[StoreKind {
    scheme: "file",
    about: "a folder with an SQLite catalog and a Parquet file per experiment",
    open: open_embedded,
}];

/// Opens a store: a path, or a URL with a scheme of [`STORES`]. Writing creates a missing store and
/// migrates an old one; reading does neither.
///
/// # Errors
/// Unknown scheme, workspace locked by another process, newer schema, or a failed file operation.
pub fn open(url_or_path: &str, access: Access) -> Result<Box<dyn Store>, StoreError> {
    let Some((scheme, location)) = url_or_path.split_once("://") else {
        return (STORES[0].open)(url_or_path, access);
    };
    let Some(kind) = STORES.iter().find(|kind| kind.scheme == scheme) else {
        return Err(StoreError::UnknownScheme {
            scheme: scheme.to_owned(),
            known: STORES
                .iter()
                .map(|kind| kind.scheme)
                .collect::<Vec<_>>()
                .join(", "),
        });
    };
    (kind.open)(location, access)
}

fn open_embedded(path: &str, access: Access) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(Embedded::open(Path::new(path), access)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scheme_is_refused_with_the_known_ones() {
        let error = open("oracle://host/db", Access::Read).expect_err("there is no such store");
        assert_eq!(
            error.to_string(),
            "no store answers to 'oracle://' (known: file)"
        );
    }

    #[test]
    fn reading_a_missing_workspace_fails_and_creates_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ws");
        let error = open(&path.to_string_lossy(), Access::Read).expect_err("nothing is there");
        assert!(matches!(error, StoreError::NoWorkspace { .. }), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn a_second_writer_is_refused_and_a_reader_is_admitted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().to_string_lossy().into_owned();
        let first = open(&format!("file://{path}"), Access::Write).expect("free");
        let error = open(&path, Access::Write).expect_err("taken").to_string();
        let writer = format!("(process {})", std::process::id());
        assert!(error.contains(&writer), "{error}");
        let reader = open(&path, Access::Read).expect("reading needs no lock");
        assert!(reader.is_being_written().expect("known"));
        drop(first);
        assert!(!reader.is_being_written().expect("known"));
        open(&path, Access::Write).expect("free again");
    }
}
