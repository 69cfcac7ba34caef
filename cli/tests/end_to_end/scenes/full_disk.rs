//! A folder without room.

use std::path::Path;
use std::process::Command;

use crate::scenes::program::{Ran, where_mounted};

/// Mounts a disk of one page over `$0`, fills it, runs the rest, and names what it has left there.
const FULL: &str = "mount -t tmpfs -o size=4k none \"$0\" || exit 99
    head -c 4096 /dev/zero > \"$0/filler\"
    \"$@\"; code=$?
    echo \"left: $(ls \"$0\")\"
    exit $code";

/// What the program says that puts its record into `folder`, which has room for names and for nothing else. None where no disk can be
/// mounted, which is said.
pub(crate) fn on_a_full_disk(command: &Command, folder: &Path) -> Option<Ran> {
    std::fs::create_dir_all(folder).unwrap();
    where_mounted(FULL, folder, command)
}

/// That the run was refused before it began, with a remedy, and left nothing.
#[track_caller]
pub(crate) fn has_not_begun(done: &Ran) {
    let Ran { code, out, err } = done;
    assert_eq!(*code, Some(3), "{done}");
    assert!(
        err.contains("error: cannot begin the record") && err.contains("No space left on device"),
        "{err}"
    );
    assert!(
        err.contains(" help: make sure that you own the folder and that the disk has space"),
        "{err}"
    );
    assert!(out.ends_with("left: filler\n"), "{out}");
}
