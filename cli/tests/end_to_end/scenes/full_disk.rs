//! A folder without room.

use std::path::Path;
use std::process::{Command, Output};

/// Mounts a disk of one page over `$0`, fills it, runs the rest, and names what it has left there.
const FULL: &str = "mount -t tmpfs -o size=4k none \"$0\" || exit 99
    head -c 4096 /dev/zero > \"$0/filler\"
    \"$@\"; code=$?
    echo \"left: $(ls \"$0\")\"
    exit $code";

/// What the program says that puts its record into `folder`, which has room for names and for nothing else. None where no disk can be
/// mounted, which is said.
pub(crate) fn on_a_full_disk(command: &Command, folder: &Path) -> Option<Output> {
    std::fs::create_dir_all(folder).unwrap();
    let mut full = Command::new("unshare");
    full.args(["-rm", "sh", "-c", FULL]).arg(folder).arg(command.get_program()).args(command.get_args());
    full.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = full.current_dir(command.get_current_dir().unwrap()).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(99) || err.contains("unshare") {
        eprintln!("SKIPPED: a full disk, because no mount can be had here: {}", err.trim());
        return None;
    }
    Some(done)
}

/// That the run was refused before it began, with a remedy, and left nothing.
#[track_caller]
pub(crate) fn has_not_begun(done: &Output) {
    let [out, err] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(done.status.code(), Some(3), "{out}{err}");
    assert!(
        err.contains("error: cannot begin the record") && err.contains("No space left on device"),
        "{err}"
    );
    assert!(err.contains(" help: see that the folder is yours and that the disk has room"), "{err}");
    assert!(out.ends_with("left: filler\n"), "{out}");
}
