//! kill -9 of `neph run` at random moments: what was acknowledged is in the store, exactly.
//!
//! The campaign runs over loopback against a reflector of this process, so it needs no root.

#[path = "kill/mod.rs"]
mod kill;
