use super::*;

#[test]
fn a_message_under_way_is_small() {
    assert!(size_of::<Slot>() <= 128, "{}", size_of::<Slot>());
}
