//! What a build, a command or an agent may try with the tree, on every backend, as root and as another user: nothing of it is left, and
//! nothing that git would run later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit;
use crate::scenes::program::{Ran, if_mounted, in_reach, mounted};

mod trusted_base;

/// Each attack and its shell lines; `evil` prints a configuration with which `git status` runs a program, and `plant` makes a repository with
/// it.
const ATTACKS: [(&str, &str); 15] = [
    (
        "ignore rules",
        "echo '*' > src/.gitignore; mkdir new; echo made > new/.gitignore; echo x > new/made\n",
    ),
    ("a formatter", "echo formatted > formatted\n"),
    (
        "a repository in the empty folder of a submodule",
        "plant sub\n",
    ),
    (
        "a new repository",
        "plant fresh/deep; mkdir -p gitfile; echo 'gitdir: ../many/1/.git' > gitfile/.git\n",
    ),
    (
        "the configuration of repositories",
        "for it in many/*/.git; do evil >> $it/config; echo ../../../sub/.git > $it/commondir; mkdir $it/hooks; evil > $it/hooks/post-index-change; done\n",
    ),
    (
        "a file that the configuration includes",
        "evil >> included.cfg\n",
    ),
    (
        "a hook in the folder that the configuration names",
        "evil > hooks/post-index-change\n",
    ),
    ("a bare repository in a folder that exists", "bare data\n"),
    (
        "the rest of a bare repository",
        "mkdir parts/objects; evil > parts/config\n",
    ),
    (
        "files that the configuration names and that do not exist yet",
        "for it in later relative tilde through; do evil > $it.cfg; done\n",
    ),
    (
        "programs that the configuration names and that do not exist yet",
        "mkdir tools; evil | tee tools/watch > linked\n",
    ),
    (
        "repositories in ignored folders",
        "evil >> ignored/old/.git/config; mkdir ignored/old/.git/hooks; evil > ignored/old/.git/hooks/post-index-change; plant ignored/new; bare ignored/bare\n",
    ),
    (
        "the inputs of the next run",
        "echo planted | tee -a query.txt >> gemini-system-prompt.txt\n",
    ),
    (
        "what decides",
        "{ cat build.sh; echo '# changed'; } > b && mv b build.sh; chmod +x build.sh\n",
    ),
    (
        "links out of the tree",
        "rm -r docs src/file; ln -s /tmp docs; ln -s /etc/passwd src/file; mkfifo fifo\n",
    ),
];

/// Changes of ordinary files, which may stay: the account names them, and `undo` takes them back.
const ORDINARY: [&str; 5] = ["b", "docs/page", "formatted", "new.txt", "new/made"];
/// Parts of ignored repositories for which git runs nothing.
const HARMLESS: [&str; 2] = ["ignored/bare/HEAD", "ignored/new/.git/HEAD"];
/// What a run leaves, and what git itself writes.
const OWN: [&str; 5] = [
    "logs",
    "llm-user-output.txt",
    ".git/code-commit",
    ".git/index",
    "agent-config",
];

const BACKENDS: [&str; 3] = ["namespaces", "landlock", "off"];
/// On namespaces a build would work in a view, were there no mount below the tree.
const WITHOUT_VIEW: &str = "without a view";
const FEW_REPOSITORIES: usize = 2;
/// More than a sandbox protects.
const MANY_REPOSITORIES: usize = 501;
const NOBODY: u32 = 65534;

fn script(attacks: &[(&str, &str)], canary: &Path) -> String {
    let lines: String = attacks.iter().map(|(_, lines)| *lines).collect();
    let canary = canary.display();
    format!(
        "#!/bin/sh\nexec 2>/dev/null\n\
         evil() {{ printf '[core]\\n\\tfsmonitor = \"touch {canary}; false\"\\n'; }}\n\
         plant() {{ mkdir -p $1/.git/objects $1/.git/refs; echo 'ref: refs/heads/main' > $1/.git/HEAD; evil > $1/.git/config; }}\n\
         bare() {{ mkdir -p $1/objects $1/refs; echo 'ref: refs/heads/main' > $1/HEAD; {{ evil; printf '\\tworktree = ..\\n'; }} > $1/config; }}\n\
         {lines}exit 0\n"
    )
}

/// A project with everything that the attacks are about.
fn scene(repositories: usize) -> commit::Scene {
    let files = [
        ("query.txt", "say one\n"),
        ("gemini-system-prompt.txt", "Answer in fences.\n"),
        ("codeRollup.txt", "nothing\n"),
        ("included.cfg", "[alias]\n"),
        ("hooks/README", "none yet\n"),
        ("docs/page", "page\n"),
        ("formatted", "  formatted\n"),
        ("src/file", "file\n"),
        ("data/page", "page\n"),
        ("parts/HEAD", "ref: refs/heads/main\n"),
        ("parts/refs/kept", "\n"),
        ("src/.gitignore", "made\n"),
        (".gitignore", "/agent-config\n"),
        (
            ".gitmodules",
            "[submodule \"sub\"]\n\tpath = sub\n\turl = ./nowhere\n",
        ),
    ];
    let scene =
        commit::Scene::with_files(&files, Script::new([Step::text("^^^new.txt\n1\n^^^end\n")]));
    let (root, canary) = (scene.project.root(), scene.beside("canary"));
    scene.write("build.sh", script(&ATTACKS, &canary).as_bytes());
    scene.project.commit("a build").unwrap();
    let head = scene.git(&["rev-parse", "HEAD"]);
    let entry = format!("160000,{},sub", head.trim());
    scene.git(&["update-index", "--add", "--cacheinfo", &entry]);
    scene.git(&["commit", "-qm", "a submodule"]);
    fs::create_dir(root.join("sub")).unwrap();
    for (key, value) in [
        ("include.path", "../included.cfg"),
        ("core.hooksPath", "hooks"),
    ] {
        scene.git(&["config", key, value]);
    }
    let names_more = |key, value: &str| {
        scene
            .project
            .git(&["config", "--add", key, value])
            .map(drop)
            .unwrap();
    };
    names_more("include.path", "../later.cfg");
    names_more("core.fsmonitor", "tools/watch");
    std::os::unix::fs::symlink("../linked", root.join("hooks/pre-commit")).unwrap();
    scene.git(&["add", "hooks/pre-commit"]);
    scene.git(&["commit", "-qm", "a hook"]);
    let beside = scene.project.beside();
    std::os::unix::fs::symlink(root, beside.join("link")).unwrap();
    let below = root.strip_prefix(beside).unwrap().display();
    let through = beside.join("link/through.cfg");
    let paths = format!(
        "path = {below}/relative.cfg\npath = ~/{below}/tilde.cfg\npath = {}\n",
        through.display()
    );
    fs::write(beside.join(".gitconfig"), format!("[include]\n{paths}")).unwrap();
    scene.write(".git/info/exclude", "/ignored/\n");
    let gits = (0..repositories).map(|number| format!("many/{number}/.git"));
    for git in gits.chain(["ignored/old/.git".to_owned()]) {
        let git = root.join(git);
        ["objects", "refs"]
            .iter()
            .for_each(|name| fs::create_dir_all(git.join(name)).unwrap());
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
    }
    scene
}

/// Everything, inside of repositories too, except [`OWN`].
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(root).unwrap().to_owned();
            let stat = fs::symlink_metadata(&path).unwrap();
            if OWN
                .iter()
                .chain(&HARMLESS)
                .any(|own| below == Path::new(own))
            {
                continue;
            }
            if stat.is_dir() {
                todo.push(path);
            } else if stat.is_symlink() {
                found.insert(
                    below,
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes(),
                );
            } else {
                found.insert(
                    below,
                    if stat.is_file() {
                        fs::read(&path).unwrap()
                    } else {
                        Vec::new()
                    },
                );
            }
        }
    }
    found
}

fn differing(before: &BTreeMap<PathBuf, Vec<u8>>, root: &Path) -> BTreeSet<PathBuf> {
    let after = tree(root);
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}

/// Gives everything to this user.
fn give(folder: &Path, user: u32) {
    let owner = format!("{user}:{user}");
    assert!(
        Command::new("chown")
            .args(["-R", &owner])
            .arg(folder)
            .status()
            .unwrap()
            .success()
    );
}

/// Says so where the backend does not work.
fn is_skipped(ran: &Ran, backend: &str) -> bool {
    let refusals = [
        "does not work here",
        "behind Landlock a role could make no new file",
    ];
    let is_skipped =
        ran.code == Some(3) && refusals.iter().any(|refusal| ran.err.contains(refusal));
    if is_skipped {
        eprintln!("SKIPPED: attacks on {backend}: {}", ran.err.trim());
    }
    is_skipped
}

/// The run on this backend; `None` where it does not work.
fn attack(scene: &commit::Scene, backend: &str, user: u32) -> Option<Ran> {
    let sandbox = if backend == WITHOUT_VIEW {
        "namespaces"
    } else {
        backend
    };
    let args = [
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        sandbox,
        "--rounds",
        "1",
    ];
    let mut command = in_reach(&scene.keyed(&args, &[]), scene.project.beside());
    let ran = if backend == WITHOUT_VIEW {
        // The kernel allows no view of a tree with another mount below it.
        fs::create_dir(scene.at("mounted")).unwrap();
        let mount = "mount -t tmpfs none \"$0/mounted\" || exit 99; exec \"$@\"";
        if_mounted(Ran::of(
            mounted(mount, scene.project.root(), &command)
                .uid(user)
                .gid(user),
        ))?
    } else {
        Ran::of(command.uid(user).gid(user))
    };
    (!is_skipped(&ran, backend)).then_some(ran)
}

fn nothing_is_left(backend: &str, repositories: usize, user: u32) {
    let scene = scene(repositories);
    let (root, beside) = (scene.project.root(), scene.project.beside());
    give(beside, user);
    let before = tree(root);
    let Some(ran) = attack(&scene, backend, user) else {
        return;
    };
    let case = format!("{backend} as {user}: {ran}");
    // It broke the seal.
    assert_eq!(ran.code, Some(1), "{case}");
    let left = differing(&before, root);
    let is_ordinary = |path: &&PathBuf| {
        ORDINARY
            .iter()
            .any(|ordinary| path.as_path() == Path::new(ordinary))
    };
    assert_eq!(left.iter().find(|path| !is_ordinary(path)), None, "{case}");
    assert!(
        left.contains(Path::new("new.txt")) && ran.err.contains("M formatted"),
        "{case}"
    );
    let last = format!("many/{}", repositories - 1);
    let ignored = ["ignored/old", "ignored/new", "ignored/bare"];
    for repository in ["", "sub", "fresh/deep", "many/0", &last, "data", "parts"]
        .into_iter()
        .chain(ignored)
    {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "status"])
            .env("HOME", beside);
        // It need not be there any more.
        drop(
            git.current_dir(root.join(repository))
                .uid(user)
                .gid(user)
                .output(),
        );
    }
    assert!(!beside.join("canary").exists(), "a program was run: {case}");
    let undone = Ran::of(
        in_reach(&scene.command(&["undo"], &[]), beside)
            .uid(user)
            .gid(user),
    );
    assert_eq!(
        (undone.code, differing(&before, root)),
        (Some(0), BTreeSet::new()),
        "{case}\n{undone}"
    );
}

#[test]
fn nothing_is_left_of_attacks_on_the_tree_by_a_build() {
    let user = rustix::process::geteuid().as_raw();
    for (backend, repositories) in [
        ("namespaces", FEW_REPOSITORIES),
        (WITHOUT_VIEW, MANY_REPOSITORIES),
        ("landlock", FEW_REPOSITORIES),
        ("off", FEW_REPOSITORIES),
    ] {
        nothing_is_left(backend, repositories, user);
    }
}

#[test]
fn nothing_is_left_of_attacks_on_the_tree_by_a_build_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: attacks as another user, because only root can become one");
    }
    BACKENDS
        .into_iter()
        .chain([WITHOUT_VIEW])
        .for_each(|backend| nothing_is_left(backend, FEW_REPOSITORIES, NOBODY));
}

/// Otherwise the tests above would prove nothing.
#[test]
fn every_attack_changes_a_tree_that_nobody_defends() {
    let scene = scene(FEW_REPOSITORIES);
    let canary = scene.beside("canary");
    for attack in &ATTACKS {
        let before = tree(scene.project.root());
        let script = script(&[*attack], &canary);
        let ran = Command::new("sh")
            .args(["-c", &script])
            .current_dir(scene.project.root())
            .status()
            .unwrap();
        assert!(
            ran.success() && !differing(&before, scene.project.root()).is_empty(),
            "{}",
            attack.0
        );
    }
    drop(
        Command::new("git")
            .arg("status")
            .current_dir(scene.at("sub"))
            .output(),
    );
    assert!(canary.exists(), "git runs what a configuration names");
}
