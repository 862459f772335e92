//! The Debian package and the container image, made of the static binary, and the manifests against the schemas of
//! Kubernetes. Not part of `make test`, which builds no static binary and fetches no Go modules: `make test-delivery`
//! does, and runs these.

#[path = "delivery/image.rs"]
mod image;
#[path = "delivery/package.rs"]
mod package;
#[path = "delivery/prerequisites.rs"]
mod prerequisites;
#[path = "delivery/schemas.rs"]
mod schemas;
