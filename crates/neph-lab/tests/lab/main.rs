//! Labs that come up, do what was asked, and leave nothing behind. Needs root.

mod accuracy;
mod balancers;
mod ecmp;
mod features;
mod life;
mod nodes;
mod overlays;
mod paths;
mod planned;
mod proxies;
mod schedule;
mod services;
mod support;
mod traffic;
mod undisturbed;
mod verified;
