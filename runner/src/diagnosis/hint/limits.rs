//! Failures for which a limit of the command is the likely cause.

use super::says;
use crate::Rung;

/// The system's messages if a file system is full, or a file is as large as it may be.
const FULL: [&str; 3] = ["No space left on device", "ENOSPC", "os error 28"];
const TOO_LARGE: [&str; 4] = [
    "File size limit exceeded",
    "File too large",
    "EFBIG",
    "os error 27",
];

/// The system's messages if a process has as many files open as it may.
const TOO_MANY: [&str; 3] = ["Too many open files", "EMFILE", "os error 24"];
const NO_MORE_FILES: &str = "a process of a build may not have as many files open as that: allow more with \
    `--build-open-files NUMBER` or `[build] open_files = NUMBER`";

const NO_SPACE: &str = "the sandbox limits the space for temporary files: allow more with `--build-temporary SIZE` or \
    `[build] temporary = \"SIZE\"`, unless your disk is full";
const NO_LARGE_FILE: &str = "a build may not make a file as large as that: allow it with `--build-file SIZE` or `[build] file = \"SIZE\"`";

/// The limit that the output speaks of, with the flag that gives more.
pub(super) fn of_a_limit(text: &str, rung: Rung) -> Option<&'static str> {
    if text.lines().any(|line| says(line, &TOO_LARGE)) {
        return Some(NO_LARGE_FILE);
    }
    if text.lines().any(|line| says(line, &TOO_MANY)) {
        return Some(NO_MORE_FILES);
    }
    // Under Landlock, temporary files are on the user's disk.
    (rung != Rung::Landlock && text.lines().any(|line| says(line, &FULL))).then_some(NO_SPACE)
}
