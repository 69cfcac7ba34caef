//! Checks of a path as a string, without access to the disk.

use bstr::ByteSlice;
use code_commit_names::{is_bidi, is_invisible};
use gix_validate::path::component::{self, Error};
use unicode_normalization::UnicodeNormalization;

use crate::fold::fold;
use crate::refusal::Code;

/// `NAME_MAX` of all common file systems.
const NAME_BYTES: usize = 255;
/// `PATH_MAX` without the terminating zero.
const PATH_BYTES: usize = 4095;
/// Deeper trees occur only in bug reports.
const NAMES: usize = 64;

/// Splits `path` into its names, or returns the rule that it breaks.
///
/// Splits the string by hand, because `Path::components` hides `//`, `/./` and a trailing slash.
pub(crate) fn check(path: &[u8]) -> Result<&str, Code> {
    let path = std::str::from_utf8(path).map_err(|_| Code::NotUtf8)?;
    if path.is_empty() {
        return Err(Code::EmptyPath);
    }
    if path.starts_with('/') {
        return Err(Code::Absolute);
    }
    path.chars().try_for_each(check_char)?;
    path.split('/').try_for_each(check_name)?;
    if is_too_long(path) {
        Err(Code::TooLong)
    } else {
        Ok(path)
    }
}

/// Whether the path is longer or deeper than the guard accepts.
pub(crate) fn is_too_long(path: &str) -> bool {
    path.len() > PATH_BYTES || path.split('/').nth(NAMES).is_some()
}

fn check_char(c: char) -> Result<(), Code> {
    match c {
        '\\' => Err(Code::Backslash),
        c if c.is_control() => Err(Code::ControlCharacter),
        c if is_bidi(c) => Err(Code::BidiCharacter),
        c if leaves_no_mark(c) => Err(Code::InvisibleCharacter),
        c if looks_like_a_separator(c) => Err(Code::ConfusableCharacter),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), Code> {
    match name {
        "" => return Err(Code::EmptyComponent),
        "." | ".." => return Err(Code::RelativeComponent),
        name if name.len() > NAME_BYTES => return Err(Code::TooLong),
        _ => {}
    }
    check_git_names(name)?;
    check_normalised(name)?;
    if name.contains([':', '*', '?', '<', '>', '|', '"']) {
        return Err(Code::ReservedCharacter);
    }
    if name.ends_with('.') || name.ends_with(char::is_whitespace) {
        return Err(Code::TrailingDotOrBlank);
    }
    if is_device(name) {
        return Err(Code::DeviceName);
    }
    Ok(())
}

/// Asks gix with every option on. Treats the name as a symlink's, because that adds all spellings
/// of `.gitmodules`.
fn check_git_names(name: &str) -> Result<(), Code> {
    let mode = Some(component::Mode::Symlink);
    match gix_validate::path::component(
        name.as_bytes().as_bstr(),
        mode,
        component::Options::default(),
    ) {
        Err(Error::DotGitDir) => Err(Code::DotGit),
        Err(Error::SymlinkedGitModules) => Err(Code::Protected),
        _ if is_short_git_name(&fold(name)) => Err(Code::DotGit),
        // Our own codes are finer than its other errors.
        _ => Ok(()),
    }
}

/// The 8.3 short names that NTFS and FAT give to `.git`, `.gitignore` and similar names: `git~2`,
/// `gitign~1`, `gi250a~1`.
fn is_short_git_name(folded: &str) -> bool {
    let Some((stem, number)) = folded.split_once('~') else {
        return false;
    };
    let numbered = number.starts_with(|c: char| c.is_ascii_digit());
    numbered
        && (stem.starts_with("git") || stem == "gi7eba" || stem == "gi250a" || stem == "gi7d29")
}

/// Full-width dots, ligatures and similar characters: checks what the name becomes on a system that
/// normalizes.
fn check_normalised(name: &str) -> Result<(), Code> {
    if name.is_ascii() {
        return Ok(());
    }
    let normalised: String = name.nfkc().collect();
    if normalised.contains(['/', '\\']) || normalised.chars().all(|c| c == '.') {
        return Err(Code::ConfusableCharacter);
    }
    check_git_names(&fold(name))
}

/// Windows strips the extension and blanks before it looks up a device, and treats `COM¹` as
/// `COM1`.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let folded = fold(stem);
    match folded.as_str() {
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" | "clock$" => true,
        folded => folded
            .strip_prefix("com")
            .or_else(|| folded.strip_prefix("lpt"))
            .is_some_and(|port| port.len() == 1 && port.starts_with(|c: char| c.is_ascii_digit())),
    }
}

/// Whether nothing is seen of it, it changes the writing direction, or it is the replacement
/// character or any blank except the plain space.
fn leaves_no_mark(c: char) -> bool {
    is_bidi(c)
        || is_invisible(c)
        || matches!(c, '\u{fffc}' | '\u{fffd}')
        || (c.is_whitespace() && c != ' ')
}

/// Whether the character must be escaped when shown.
pub(crate) fn misleads(c: char) -> bool {
    leaves_no_mark(c) || looks_like_a_separator(c)
}

fn looks_like_a_separator(c: char) -> bool {
    matches!(
        c,
        '\u{2044}'
            | '\u{2215}'
            | '\u{2216}'
            | '\u{2571}'
            | '\u{2572}'
            | '\u{29f5}'
            | '\u{29f8}'
            | '\u{29f9}'
            | '\u{29f6}'
            | '\u{ff0f}'
            | '\u{ff3c}'
            | '\u{fe68}'
            | '\u{2024}'
            | '\u{ff0e}'
            | '\u{fe52}'
    )
}
