use super::*;
use crate::Key;
use code_commit_runner::{Apart, Captured, Confinement, Ended};

/// How a standard error is shown of which `out` bytes between its two ends are left out.
fn shown(head: &str, out: u64, tail: &str) -> String {
    let confinement = Confinement::off();
    let key = Some(Key::new("GEMINI_API_KEY", "AIza-0123-abcd"));
    let spawn = Spawn {
        key,
        ..Spawn::new(Path::new("/"), "do it", Path::new("/"), &confinement)
    };
    let total_bytes = head.len() as u64 + out + tail.len() as u64;
    let err = Captured {
        head: head.into(),
        tail: tail.into(),
        total_bytes,
    };
    let output = Output {
        ended: Ended::Exited(1),
        captured: err.clone(),
        apart: Some(Apart {
            err,
            ..Apart::default()
        }),
        elapsed: Duration::ZERO,
        survivors_killed: 0,
        survivors_left: 0,
        refused: Vec::new(),
    };
    outcome(Kind::Gemini, &spawn, Collected::default(), &output, false).stderr
}

#[test]
fn a_key_is_struck_out_also_where_the_middle_of_what_was_said_is_left_out() {
    let gap = |out: u64| format!("\n[… {out} bytes left out …]\n");
    assert_eq!(shown("key AIza-0123-", 0, "abcd is bad"), "key … is bad");
    for cut in 1..14 {
        let (begun, ended) = "AIza-0123-abcd".split_at(cut);
        assert_eq!(
            shown(&format!("key {begun}"), 9, "tail"),
            format!("key {}tail", gap(9 + cut as u64)),
            "{cut}"
        );
        let left_out = 9 + ended.len() as u64;
        assert_eq!(
            shown("head", 9, &format!("{ended} is bad")),
            format!("head{} is bad", gap(left_out)),
            "{cut}"
        );
    }
    let whole = "AIza-0123-abcd";
    assert_eq!(shown(whole, 9, whole), format!("…{}…", gap(9)));
}
