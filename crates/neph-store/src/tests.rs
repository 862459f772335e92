//! Tests the contract on each kind of store, and reads stored files with other programs.

mod readers;

use crate::contract::{self, StoreLocation, Subject};

fn embedded() -> StoreLocation {
    let folder = tempfile::tempdir().expect("a temporary folder");
    StoreLocation {
        url: format!("file://{}", folder.path().display()),
        keeper: Box::new(folder),
    }
}

#[test]
fn the_embedded_store_fulfils_the_store_contract() {
    contract::check(Subject {
        fresh: embedded,
        child: "tests::child_that_records_until_it_is_killed",
    });
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_that_records_until_it_is_killed() {
    contract::child();
}
