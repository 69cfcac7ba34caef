//! What the test programs share: a tree as it is on disk, and paths that were judged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use code_commit_guard::{Admitted, Configuration, Guard, Op, Policy, Request, Verdict};

/// Path to mode and content; a folder has no content.
pub(crate) type Files = BTreeMap<String, (u32, Option<Vec<u8>>)>;

pub(crate) fn files(root: &Path) -> Files {
    let mut files = Files::new();
    walk(root, "", &mut files);
    files
}

/// Judges these paths as one reply; all must be admitted.
pub(crate) fn admit(root: &Path, requests: &[(&str, Op)]) -> Vec<Admitted> {
    let guard = Guard::open(
        root,
        Policy::new().configuration(Configuration::RepositoryOnly),
    )
    .unwrap();
    let requests: Vec<Request<'_>> = requests
        .iter()
        .map(|(path, op)| Request {
            path: path.as_bytes(),
            op: *op,
            base_sha256: None,
        })
        .collect();
    let admitted = |verdict| match verdict {
        Verdict::Admitted(admitted) => admitted,
        Verdict::Refused(refusal) => panic!("{refusal}"),
    };
    guard
        .judge(&requests)
        .unwrap()
        .into_iter()
        .map(admitted)
        .collect()
}

fn walk(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        let metadata = entry.metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
            files.insert(path, (mode, None));
        } else {
            files.insert(path, (mode, Some(fs::read(entry.path()).unwrap())));
        }
    }
}
