//! Test trees, and verdicts as text.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use code_commit_guard::{Admitted, Code, Configuration, Guard, Op, Policy, Request, Verdict};

pub(crate) fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .status()
        .unwrap();
    assert!(status.success(), "git {args:?}");
}

/// A repository with these files; a name with a trailing slash is a folder.
pub(crate) fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    git(scratch.path(), &["init", "-q"]);
    for (name, content) in files {
        let path = scratch.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    scratch
}

pub(crate) fn open(root: &Path, policy: Policy) -> Guard {
    Guard::open(root, policy.configuration(Configuration::RepositoryOnly)).unwrap()
}

pub(crate) fn write(path: &str) -> Request<'_> {
    Request {
        path: path.as_bytes(),
        op: Op::Write,
        base_sha256: None,
    }
}

/// One line per verdict: `ok PATH`, or the code and the sentence.
pub(crate) fn check(guard: &Guard, paths: &[&str]) -> String {
    let requests: Vec<Request<'_>> = paths.iter().map(|path| write(path)).collect();
    render(&guard.judge(&requests).unwrap())
}

pub(crate) fn render(verdicts: &[Verdict]) -> String {
    let line = |verdict: &Verdict| match verdict {
        Verdict::Admitted(admitted) => format!("ok {}", admitted.path()),
        Verdict::Refused(refusal) => format!("{}: {refusal}", refusal.code()),
    };
    verdicts.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(crate) fn admit(guard: &Guard, path: &str) -> Admitted {
    match guard.judge(&[write(path)]).unwrap().pop() {
        Some(Verdict::Admitted(admitted)) => admitted,
        other => panic!("{path}: {other:?}"),
    }
}

pub(crate) fn code(guard: &Guard, path: &str) -> Option<Code> {
    match guard.judge(&[write(path)]).unwrap().pop() {
        Some(Verdict::Refused(refusal)) => Some(refusal.code()),
        _ => None,
    }
}

/// Root can read everything, so this runs in a thread that drops its privileges. The root of the tree is
/// opened to all; this path in it gets these permissions.
pub(crate) fn as_nobody<T: Send>(
    root: &Path,
    (path, mode): (&str, u32),
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let nobody = rustix::fs::Uid::from_raw(65534);
            let is_root = rustix::process::getuid().is_root();
            let may =
                !is_root || rustix::thread::set_thread_res_uid(nobody, nobody, nobody).is_ok();
            may.then(work)
        });
        worker.join().unwrap()
    });
    if done.is_none() {
        eprintln!("SKIPPED: a tree without permissions because this user cannot become another");
    }
    done
}
