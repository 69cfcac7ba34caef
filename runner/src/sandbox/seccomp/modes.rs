//! The modes that a command may not give to files.

use libc::c_long;
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule};

use super::{Rules, condition};

/// A program with this bit runs as its owner, whoever starts it. The same bit for groups is common on folders, which
/// the filter cannot tell from files.
const SET_USER_ID: u64 = 0o4000;

/// Flags of `open` that make a file, so that its mode counts.
const MAKING: [u64; 2] = [
    0o100,        /* O_CREAT */
    0o20_000_000, /* part of O_TMPFILE */
];

/// A call that gives a file its mode, and the places of the mode and of flags among its arguments: with flags, only
/// if they make a file.
type Giving = &'static [(c_long, u8, Option<u8>)];

/// All of them but `openat2`, whose mode is in memory, where a filter cannot read it: it is not listed.
const GIVING_MODES: [Giving; 2] = [
    &[
        (libc::SYS_fchmod, 1, None),
        (libc::SYS_fchmodat, 2, None),
        (452 /* SYS_fchmodat2 */, 2, None),
        (libc::SYS_mknodat, 2, None),
        (libc::SYS_openat, 3, Some(2)),
    ],
    GIVING_MODES_HERE,
];

#[cfg(target_arch = "x86_64")]
const GIVING_MODES_HERE: Giving = &[
    (libc::SYS_chmod, 1, None),
    (libc::SYS_creat, 1, None),
    (libc::SYS_mknod, 1, None),
    (libc::SYS_open, 2, Some(1)),
];
#[cfg(not(target_arch = "x86_64"))]
const GIVING_MODES_HERE: Giving = &[];

/// Forbids every call that makes a set-user-ID program: another user could run what a build left behind with the
/// rights of the user who built it.
pub(super) fn set_user_id() -> Result<Rules, BackendError> {
    let has = |argument, bit| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
    let calls = GIVING_MODES
        .into_iter()
        .flatten()
        .map(|&(call, mode, flags)| {
            let mode = has(mode, SET_USER_ID)?;
            let rules = match flags {
                None => vec![SeccompRule::new(vec![mode])?],
                Some(flags) => MAKING
                    .into_iter()
                    .map(|making| SeccompRule::new(vec![mode.clone(), has(flags, making)?]))
                    .collect::<Result<_, _>>()?,
            };
            Ok((call, rules))
        });
    calls.collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::thread;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, fchmod, mknodat, openat};
    use rustix::io::Errno;

    use super::super::{Sockets, filters, install};

    /// How each call ends that gives a file this mode.
    fn given(mode: u32) -> Vec<Result<(), Errno>> {
        let mode = Mode::from_raw_mode(mode);
        let folder = tempfile::tempdir().unwrap();
        let try_all = move || {
            let at = |name: &str| folder.path().join(name);
            std::fs::File::create(at("there")).unwrap();
            let there = openat(CWD, at("there"), OFlags::RDONLY, Mode::empty()).unwrap();
            install(&filters(Sockets::Allowed).unwrap()).unwrap();
            let open = |path, flags| openat(CWD, path, flags | OFlags::RDWR, mode).map(drop);
            vec![
                chmodat(CWD, at("there"), mode, AtFlags::empty()),
                fchmod(there.as_fd(), mode),
                mknodat(CWD, at("node"), FileType::RegularFile, mode, 0),
                open(at("new"), OFlags::CREATE),
                open(folder.path().to_owned(), OFlags::TMPFILE),
            ]
        };
        // The filter applies to this thread, and ends with it.
        thread::spawn(try_all).join().unwrap()
    }

    #[test]
    fn no_call_gives_a_file_the_set_user_id_bit() {
        assert_eq!(given(0o755), [Ok(()); 5]);
        assert_eq!(given(0o4755), [Err(Errno::PERM); 5]);
        assert_eq!(given(0o6755), [Err(Errno::PERM); 5]);
    }
}
