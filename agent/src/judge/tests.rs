use super::*;
use crate::Event;

#[test]
fn nothing_at_all_is_no_result() {
    let told = Told::default();
    let facts = Facts { kind: Kind::Claude, ended: Ended::Exited(0), was_idle: false, told: &told, stderr: "" };
    assert_eq!(judge(&facts), End::NoResult);
    let _ = Event::Ping;
}
