//! Labs that programs bring up for themselves, and what a kill -9 leaves of them.

use crate::{Lab, LabError, LabListing};

/// The name of the lab of this process, where it has only one for a purpose.
pub fn own_lab_name(purpose: &str) -> String {
    format!("{purpose}{}", std::process::id())
}

/// Takes down the labs of earlier processes for this purpose that are gone; why some could not be
/// taken down.
pub fn remove_left_over_labs(purpose: &str) -> Vec<LabError> {
    let labs = Lab::list().unwrap_or_default().labs.into_iter();
    let left_over = labs.filter(|lab| is_left_over(lab, purpose));
    left_over
        .filter_map(|lab| Lab::down_if_owner_ended(&lab.name).err())
        .collect()
}

/// A lab that a user gave such a name has another number than its process.
fn is_left_over(lab: &LabListing, purpose: &str) -> bool {
    let number = lab.name.strip_prefix(purpose).unwrap_or_default();
    let number: Option<u32> = number.parse().ok();
    number.is_some() && !lab.is_owner_alive && (lab.owner.is_none() || lab.owner == number)
}
