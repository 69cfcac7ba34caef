//! Checks every entry of `fixtures/hostile_paths.jsonl` on a real tree: no hostile path is admitted, no
//! legitimate one refused. Setups that this machine cannot create are listed on standard error, not counted
//! as passed.
#![expect(
    clippy::disallowed_methods,
    reason = "a set-up needs git, mkfifo, mknod and mount"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_guard::{Configuration, Guard, Op, Policy, Request, Verdict};
use serde_json::{Map, Value};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../fixtures/hostile_paths.jsonl"
);

#[test]
fn no_hostile_path_is_admitted_and_no_legitimate_one_refused() {
    let corpus = fs::read_to_string(CORPUS).unwrap();
    let entries: Vec<Value> = corpus
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (mut ran, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    for entry in &entries {
        match judge(entry) {
            Ok(None) => ran += 1,
            Ok(Some(mistake)) => wrong.push(mistake),
            Err(reason) => skipped.push(format!("{}: {reason}", entry["id"])),
        }
    }
    for name in &skipped {
        eprintln!("SKIPPED: hostile path {name}");
    }
    eprintln!(
        "hostile paths: {ran} as expected, {} wrong, {} skipped of {}",
        wrong.len(),
        skipped.len(),
        entries.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        ran * 20 >= entries.len() * 19,
        "too few of the entries ran to mean anything"
    );
}

/// `Ok(Some(_))` is a wrong verdict, `Err(_)` a setup that cannot be created here.
fn judge(entry: &Value) -> Result<Option<String>, String> {
    let scratch = scratch();
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "-q"]);
    let setup = entry["setup"].as_object().cloned().unwrap_or_default();
    let made = Setup {
        root: root.clone(),
        mounted: Vec::new(),
    }
    .make(&setup)?;
    let guard = Guard::open(&root, policy(&setup)).unwrap();
    let op = if entry["op"] == "delete" {
        Op::Delete
    } else {
        Op::Write
    };
    let paths = paths(entry);
    let requests: Vec<Request<'_>> = paths
        .iter()
        .map(|path| Request {
            path,
            op,
            base_sha256: None,
        })
        .collect();
    let verdicts = guard.judge(&requests).unwrap();
    let refusals: Vec<String> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Refused(refusal) => Some(format!("{}: {refusal}", refusal.code())),
            Verdict::Admitted(_) => None,
        })
        .collect();
    let unflagged = verdicts.iter().find_map(|verdict| match verdict {
        Verdict::Admitted(admitted) if entry["flag"] == true && !admitted.is_flagged() => {
            Some(admitted.path())
        }
        Verdict::Admitted(_) | Verdict::Refused(_) => None,
    });
    if let Some(path) = unflagged {
        return Ok(Some(format!("{entry}\n    {path} was not flagged")));
    }
    drop(made);
    let expected = entry["expect"] == "refuse";
    if expected != refusals.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "{entry}\n    was {}",
        if expected {
            "admitted".to_owned()
        } else {
            refusals.join("; ")
        }
    )))
}

/// In memory if possible: hundreds of repositories are created.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn policy(setup: &Map<String, Value>) -> Policy {
    let protected = setup.get("protected").map(strings).unwrap_or_default();
    let protected = protected
        .iter()
        .map(|name| format!("/{}", name.trim_start_matches('/')));
    // Ignore rules are S1's to protect.
    Policy::new()
        .protect([".gitignore"])
        .protect(protected)
        .configuration(Configuration::RepositoryOnly)
}

fn paths(entry: &Value) -> Vec<Vec<u8>> {
    if let Some(batch) = entry.get("batch") {
        return strings(batch).into_iter().map(String::into_bytes).collect();
    }
    if let Some(hex) = entry["path_hex"].as_str() {
        let byte = |i| u8::from_str_radix(hex.get(i..i + 2).unwrap(), 16).unwrap();
        return vec![(0..hex.len()).step_by(2).map(byte).collect()];
    }
    vec![entry["path"].as_str().unwrap().as_bytes().to_vec()]
}

/// A tree on disk; unmounts what it mounted.
struct Setup {
    root: PathBuf,
    mounted: Vec<PathBuf>,
}

impl Drop for Setup {
    fn drop(&mut self) {
        for path in &self.mounted {
            let _ = Command::new("umount").arg(path).status();
        }
    }
}

impl Setup {
    fn make(mut self, setup: &Map<String, Value>) -> Result<Setup, String> {
        // First what other parts are in or point to.
        for kind in ["dirs", "files"] {
            if let Some(value) = setup.get(kind) {
                self.make_one(kind, value)?;
            }
        }
        for (kind, value) in setup {
            if kind != "dirs" && kind != "files" {
                self.make_one(kind, value)?;
            }
        }
        Ok(self)
    }

    fn make_one(&mut self, kind: &str, value: &Value) -> Result<(), String> {
        let root = self.root.clone();
        match kind {
            "files" => {
                pairs(value)
                    .for_each(|(name, content)| self.write(name, content.as_str().unwrap()));
            }
            "dirs" => strings(value)
                .iter()
                .for_each(|name| fs::create_dir_all(root.join(name)).unwrap()),
            "symlinks" => pairs(value).for_each(|(name, target)| {
                symlink(target.as_str().unwrap(), self.path(name)).unwrap();
            }),
            "hardlinks" => pairs(value).for_each(|(name, target)| {
                fs::hard_link(root.join(target.as_str().unwrap()), self.path(name)).unwrap();
            }),
            "hardlinks_outside" => pairs(value).for_each(|(name, target)| {
                let outside = root.parent().unwrap().join(target.as_str().unwrap());
                fs::create_dir_all(outside.parent().unwrap()).unwrap();
                fs::write(&outside, "outside").unwrap();
                fs::hard_link(outside, self.path(name)).unwrap();
            }),
            "gitignore" => self.write(".gitignore", &lines(value)),
            "nested_gitignore" => {
                pairs(value).for_each(|(name, rules)| self.write(name, &lines(rules)));
            }
            "info_exclude" => self.write(".git/info/exclude", &lines(value)),
            "submodules" => strings(value).iter().for_each(|name| self.submodule(name)),
            "repos" => strings(value)
                .iter()
                .for_each(|name| git(&root, &["init", "-q", name])),
            "bare" => strings(value)
                .iter()
                .for_each(|name| git(&root, &["init", "-q", "--bare", name])),
            "fifos" => strings(value)
                .iter()
                .for_each(|name| run("mkfifo", &[name], &root)),
            "sockets" => strings(value).iter().for_each(|name| {
                std::os::unix::net::UnixListener::bind(root.join(name)).unwrap();
            }),
            "devices" => return self.devices(value),
            "mounts" => return self.mounts(value),
            "tracked" => strings(value).iter().for_each(|name| {
                self.write(name, "tracked");
                git(&root, &["add", "-f", name]);
            }),
            // These two belong to the policy.
            "protected" | "protect_gitignore" => {}
            unknown => panic!("the test does not know how to make {unknown}"),
        }
        Ok(())
    }

    /// The path of a name; creates its parents.
    fn path(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// As git creates it: a `.git` file, and an index entry with a submodule's mode.
    fn submodule(&self, name: &str) {
        self.write(&format!("{name}/.git"), "gitdir: ../.git/modules/sub\n");
        let commit = format!("160000,{},{name}", "1".repeat(40));
        git(
            &self.root,
            &["update-index", "--add", "--cacheinfo", &commit],
        );
    }

    fn devices(&self, value: &Value) -> Result<(), String> {
        for (name, numbers) in pairs(value) {
            let (major, minor) = (numbers[0].to_string(), numbers[1].to_string());
            let made = Command::new("mknod")
                .arg(self.root.join(name))
                .args(["c", &major, &minor])
                .status();
            if !made.is_ok_and(|status| status.success()) {
                return Err("mknod is not permitted here".to_owned());
            }
        }
        Ok(())
    }

    fn mounts(&mut self, value: &Value) -> Result<(), String> {
        for (name, kind) in pairs(value) {
            let target = self.root.join(name);
            let mount = Command::new("mount")
                .args(["-t", kind.as_str().unwrap(), "none"])
                .arg(&target)
                .status();
            if !mount.is_ok_and(|status| status.success()) {
                return Err("mount is not permitted here".to_owned());
            }
            self.mounted.push(target);
        }
        Ok(())
    }
}

fn git(root: &Path, args: &[&str]) {
    run("git", args, root);
}

fn run(program: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let status = command
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()
        .unwrap();
    assert!(status.success(), "{program} {args:?}");
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

fn pairs(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().unwrap().iter()
}

fn lines(value: &Value) -> String {
    strings(value).join("\n") + "\n"
}
