//! How neph is delivered: units of systemd, reports to a service manager, the manifests of Kubernetes. What a test
//! needs and does not find (a program, root) is reported as SKIP. Package and image are in `packaging`.

#[path = "delivery/manifests.rs"]
mod manifests;
#[path = "delivery/prerequisites.rs"]
#[expect(dead_code, reason = "packaging needs more of it")]
mod prerequisites;
#[path = "delivery/services.rs"]
mod services;
#[path = "delivery/units.rs"]
mod units;
