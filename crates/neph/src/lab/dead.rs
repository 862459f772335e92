//! Labs that commands bring up for themselves, and what a kill -9 leaves of them.

use neph_lab::{Lab, LabListing};

use crate::output;

/// What the lab of this process is called, where it has only one for a purpose.
pub(crate) fn own_name(purpose: &str) -> String {
    format!("{purpose}{}", std::process::id())
}

/// Takes down the labs of earlier commands for this purpose whose process is gone.
pub(crate) fn clear(purpose: &str) {
    for lab in Lab::list().unwrap_or_default().labs {
        if is_dead(&lab, purpose)
            && let Err(error) = Lab::down_if_left(&lab.name)
        {
            output::say(&format!("neph: {error}"));
        }
    }
}

/// A lab that somebody called so by hand has another number than its process.
fn is_dead(lab: &LabListing, purpose: &str) -> bool {
    let number = lab.name.strip_prefix(purpose).unwrap_or_default();
    let number: Option<u32> = number.parse().ok();
    number.is_some() && !lab.owner_alive && (lab.owner.is_none() || lab.owner == number)
}
