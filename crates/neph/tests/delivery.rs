//! How neph is delivered: units of systemd, the Debian package, the container image and the manifests of
//! Kubernetes. What a test needs and does not find (a program, a build, root) is reported as SKIP.

#[path = "delivery/image.rs"]
mod image;
#[path = "delivery/manifests.rs"]
mod manifests;
#[path = "delivery/needs.rs"]
mod needs;
#[path = "delivery/package.rs"]
mod package;
#[path = "delivery/services.rs"]
mod services;
#[path = "delivery/units.rs"]
mod units;
