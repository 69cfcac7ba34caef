#![doc = include_str!("../README.md")]

mod admitted;
mod batch;
mod existing;
mod fold;
mod inodes;
mod lexical;
mod patterns;
mod policy;
mod position;
mod refusal;
mod repository;
mod rules;
mod surroundings;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use admitted::{Admitted, Before, Op};
pub use code_commit_repo::Configuration;
pub use existing::ExistingError;
pub use patterns::Choice;
pub use policy::Policy;
pub use position::Position;
pub use refusal::{Code, Refusal, shown_path};
pub use repository::OpenError;
pub use surroundings::Surroundings;
pub use tree::JudgeError;

use batch::Batch;
use code_commit_dir::Folder;
use inodes::Inodes;
use repository::WorkTree;
use rules::{Rules, Unread};
use tree::{Halt, Tree};

/// Judges the paths of replies under one root, by the ignore rules at the time it was opened and by
/// the current `.gitignore` files.
#[derive(Debug)]
pub struct Guard {
    root: Arc<Folder>,
    path: PathBuf,
    policy: Policy,
    work_tree: Arc<WorkTree>,
    captured: Rules,
}

/// One path of a reply, as bytes, and the operation on it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Relative to the root, components separated by `/`.
    pub path: &'a [u8],
    /// The requested operation.
    pub op: Op,
    /// SHA-256, in lower-case hex, of the content that the file must have now; for a missing file,
    /// the hash of empty content (S2 §3.2). Any other text matches no file.
    pub base_sha256: Option<&'a str>,
}

/// The guard's answer to one request.
#[derive(Debug)]
pub enum Verdict {
    /// The path may be written, with this capability.
    Admitted(Admitted),
    /// The path may not be written, for this reason.
    Refused(Refusal),
}

impl Guard {
    /// Opens the root and captures the ignore rules of its whole tree.
    ///
    /// The root may be the top of a work tree, be below it, or be outside any repository. Raises
    /// the soft limit on open files to the hard limit for the whole process, because a reply may
    /// touch thousands of folders.
    pub fn open(root: &Path, policy: Policy) -> Result<Guard, OpenError> {
        Surroundings::find(root, policy.configuration)?.guard(policy)
    }

    /// The root, canonical.
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Whether this path, relative to the root, is `.git` or a folder in which git keeps this repository, whatever its
    /// name.
    pub fn is_git(&self, path: &Path) -> bool {
        // By bytes: a walk asks this of every path.
        let is = |other: &Path| path.as_os_str() == other.as_os_str();
        is(Path::new(".git")) || self.work_tree.git.iter().any(|folder| is(folder))
    }

    /// Why the user should review a change of `path`, if the policy says so.
    pub fn flags(&self, path: &str) -> Option<&str> {
        self.policy.flags(path)
    }

    /// The refusal that no later state of the disk can change: characters, protected names, scope.
    /// Used to stop a reply early.
    pub fn refused_for_good(&self, path: &str) -> Option<Refusal> {
        self.policy.refuses(path)
    }

    /// Judges all paths of one reply and returns one verdict per request, in the same order.
    ///
    /// Apply a reply only if every verdict is `Admitted`.
    pub fn judge(&self, requests: &[Request<'_>]) -> Result<Vec<Verdict>, JudgeError> {
        let lexical: Vec<_> = requests
            .iter()
            .map(|request| self.policy.check(request.path))
            .collect();
        let batch = Batch::of(lexical.iter().flatten().copied());
        let rules = self
            .work_tree
            .rules()
            .map_err(|Unread { path, source }| JudgeError {
                path: self.work_tree.whole(&path).display().to_string(),
                source,
            })?;
        let mut tree = Tree::new(
            Arc::clone(&self.root),
            rules,
            &self.work_tree.never_written.submodules,
            &self.work_tree.prefix,
        );
        let mut inodes = None;
        let judged = requests.iter().zip(lexical).map(|(request, lexical)| {
            let path = lexical.map_err(Halt::Refused)?;
            let admitted = self.admit(path, request, &batch, &mut tree)?;
            self.check_inode(&admitted, &mut inodes)?;
            Ok(admitted)
        });
        let judged: Vec<Result<Admitted, Halt>> = judged.collect();
        judged
            .into_iter()
            .map(|judged| finish(judged, &batch, &tree))
            .collect()
    }

    fn admit(
        &self,
        path: &str,
        request: &Request<'_>,
        batch: &Batch<'_>,
        tree: &mut Tree<'_>,
    ) -> Result<Admitted, Halt> {
        let refuse = |code| Halt::Refused(Refusal::new(code, path.as_bytes()));
        if let Some(refusal) = batch.refuses(path, &|one, other| tree.tells_apart(one, other)) {
            return Err(Halt::Refused(refusal));
        }
        let from_top = format!("{}{path}", self.work_tree.prefix);
        let heeds_ignore = self.policy.heeds_ignore;
        if heeds_ignore && self.captured.ignore(&from_top) {
            return Err(refuse(Code::Ignored));
        }
        if self.work_tree.keeps_out(&from_top) {
            return Err(refuse(Code::NotCheckedOut));
        }
        let admitted = tree.admit(path, request.op, batch)?;
        // The current rules were read while walking down the path.
        if heeds_ignore && tree.rules.ignore(&from_top) {
            return Err(refuse(Code::Ignored));
        }
        if let Some(base) = request.base_sha256 {
            let content = admitted.before().map_or(NO_BYTES, |before| before.sha256);
            let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
            if base != hex {
                return Err(refuse(Code::StaleBase));
            }
        }
        Ok(admitted)
    }

    /// Compares a file that has several hard links with every protected file of the tree, which are
    /// looked up when first needed.
    fn check_inode(&self, admitted: &Admitted, inodes: &mut Option<Inodes>) -> Result<(), Halt> {
        let Some(before) = admitted.before().filter(|before| before.links > 1) else {
            return Ok(());
        };
        let inodes = match inodes {
            Some(inodes) => inodes,
            None => {
                inodes.insert(inodes::protected(&self.root, &self.policy).map_err(Halt::Failed)?)
            }
        };
        if inodes.contains(&before.id) {
            return Err(Halt::Refused(Refusal::new(
                Code::ProtectedInode,
                admitted.path().as_bytes(),
            )));
        }
        Ok(())
    }
}

/// Refuses a path that would be inside a bare repository or complete one: git runs hooks and
/// settings that it finds there.
fn finish(
    judged: Result<Admitted, Halt>,
    batch: &Batch<'_>,
    tree: &Tree<'_>,
) -> Result<Verdict, JudgeError> {
    let admitted = match judged {
        Ok(admitted) => admitted,
        Err(Halt::Refused(refusal)) => return Ok(Verdict::Refused(refusal)),
        Err(Halt::Failed(error)) => return Err(error),
    };
    let path = admitted.path();
    let is_bare = |(folder, place): &(&str, batch::Place)| {
        let has = |name: &&str| batch.puts(*place, name) || tree.has_in(folder, name);
        has(&"HEAD") && BESIDE_HEAD.iter().any(|names| names.iter().all(has))
    };
    if batch.folders(path).iter().any(is_bare) {
        return Ok(Verdict::Refused(Refusal::new(
            Code::NestedRepository,
            path.as_bytes(),
        )));
    }
    Ok(Verdict::Admitted(admitted))
}

/// The entries that turn a folder with a `HEAD` into a repository for git: all of one row.
/// `commondir` says where the others are.
const BESIDE_HEAD: [&[&str]; 2] = [&["objects", "refs"], &["commondir"]];

/// SHA-256 of empty content.
const NO_BYTES: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Raises the soft limit on open files to the hard limit for the whole process, because code that
/// touches thousands of folders holds as many descriptors. If the limit cannot be raised, `EMFILE`
/// will occur later, with the path concerned.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}
