//! Labs that come up, do what was asked, and leave nothing behind. Needs root.

mod accuracy;
mod life;
mod nodes;
mod services;
mod support;
