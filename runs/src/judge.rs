//! May a model write these paths, and why not?

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use code_commit_guard::{Guard, Op, OpenError, Request, Verdict};
use code_commit_repo::WorkTree;
use code_commit_settings::Options;

use crate::exit::Failure;
use crate::host::Host;
use crate::{commit, config};

/// The verdicts about these paths below `root`, judged as one reply.
pub fn paths(root: &Path, paths: &[OsString], host: Host<'_>) -> Result<Vec<Verdict>, Failure> {
    let settings = config::load(root, &Options::default(), host)?;
    let git = WorkTree::at(root).ok();
    let policy = commit::policy(&settings, root, git.as_ref());
    let guard = Guard::open(root, policy).map_err(cannot_judge)?;
    let requests: Vec<Request<'_>> = paths
        .iter()
        .map(|path| Request {
            path: path.as_bytes(),
            op: Op::Write,
            base_sha256: None,
        })
        .collect();
    guard
        .judge(&requests)
        .map_err(|error| Failure::refused(error, "fix that and try again"))
}

fn cannot_judge(error: OpenError) -> Failure {
    let help = if matches!(error, OpenError::ForeignOwner { .. }) {
        "or run it as the user who owns the repository"
    } else {
        "name the project's root with --root"
    };
    Failure::refused(error, help)
}
