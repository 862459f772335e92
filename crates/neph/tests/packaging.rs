//! The Debian package and the container image, made of the static binary. Not part of `make test`, which does not
//! build that: `make test-delivery` does, and runs these.

#[path = "delivery/image.rs"]
mod image;
#[path = "delivery/needs.rs"]
mod needs;
#[path = "delivery/package.rs"]
mod package;
