use super::*;

#[test]
fn it_begins_with_the_state() {
    let _ = Limits::default();
}
