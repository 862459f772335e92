//! What neph is built from: licences, sources, versions and known advisories of all crates, and the
//! bill of materials. Needs no network; `make deny` asks cargo-deny the same with the newest database.

#[path = "supply/advisories.rs"]
mod advisories;
#[path = "supply/bom.rs"]
mod bom;
#[path = "supply/crates.rs"]
mod crates;
#[path = "supply/rules.rs"]
mod rules;
