//! How often a diagnosis is right: random labs with no cause, one or two, carried out for real, and
//! the causes that `neph diagnose` names held against those that were put in.
//!
//! Needs root (network namespaces); says SKIP without. `NEPH_LABS=30` carries out thirty labs (two
//! without it), `NEPH_LABS_SEED` draws others, `NEPH_LABS_ONLY` carries out one of them by its
//! number, `NEPH_LABS_FOLDER` keeps plans, topologies and measurements there; labs
//! that were measured there before are only diagnosed again.

#[path = "diagnosis/carry.rs"]
mod carry;
#[path = "diagnosis/causes.rs"]
mod causes;
#[path = "diagnosis/decoys.rs"]
mod decoys;
#[path = "diagnosis/draw.rs"]
mod draw;
#[path = "diagnosis/endpoint.rs"]
mod endpoint;
#[path = "diagnosis/lab.rs"]
mod lab;
#[path = "diagnosis/randomised.rs"]
mod randomised;
#[path = "diagnosis/score.rs"]
mod score;
