//! What a build may try with the tree, on every rung, as root and as another user: nothing of it is left.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, if_mounted, mounted};

/// Each attack and its shell lines; `evil` prints a configuration with which `git status` runs a program, and `plant` makes a repository with
/// it.
const ATTACKS: [(&str, &str); 9] = [
    ("a repository in the empty folder of a submodule", "plant sub\n"),
    (
        "a new repository",
        "plant fresh/deep; mkdir -p gitfile; echo 'gitdir: ../many/1/.git' > gitfile/.git\n",
    ),
    ("the configuration of many repositories", "for it in many/*/.git/config; do evil >> $it; done\n"),
    ("a file that the configuration includes", "evil >> included.cfg\n"),
    ("a hook in the folder that the configuration names", "evil > hooks/post-index-change\n"),
    ("ignore rules", "echo '*' > src/.gitignore; mkdir new; echo made > new/.gitignore; echo x > new/made\n"),
    ("the inputs of the next run", "echo planted | tee -a query.txt >> gemini-system-prompt.txt\n"),
    ("what decides", "{ cat build.sh; echo '# changed'; } > b && mv b build.sh; chmod +x build.sh\n"),
    (
        "links out of the tree",
        "rm -r docs src/file; ln -s /tmp docs; ln -s /etc/passwd src/file; mkfifo fifo\n",
    ),
];

/// More than a sandbox holds mounts for.
const REPOSITORIES: usize = 501;
/// On the first two a build works in a view; on the third it would, were there no mount below the tree.
const RUNGS: [&str; 5] = ["namespaces", "bwrap", WITHOUT_VIEW, "landlock", "off"];
const WITHOUT_VIEW: &str = "without a view";
const NOBODY: u32 = 65534;

fn script(attacks: &[(&str, &str)], canary: &Path) -> String {
    let lines: String = attacks.iter().map(|(_, lines)| *lines).collect();
    let canary = canary.display();
    format!(
        "#!/bin/sh\nexec 2>/dev/null\n\
         evil() {{ printf '[core]\\n\\tfsmonitor = \"touch {canary}; false\"\\n'; }}\n\
         plant() {{ mkdir -p $1/.git/objects $1/.git/refs; echo 'ref: refs/heads/main' > $1/.git/HEAD; evil > $1/.git/config; }}\n\
         {lines}exit 0\n"
    )
}

/// A project with everything that the attacks are about.
fn scene() -> Scene {
    let files = [
        ("query.txt", "say one\n"),
        ("gemini-system-prompt.txt", "Answer in fences.\n"),
        ("codeRollup.txt", "nothing\n"),
        ("included.cfg", "[alias]\n"),
        ("hooks/README", "none yet\n"),
        ("docs/page", "page\n"),
        ("src/file", "file\n"),
        ("src/.gitignore", "made\n"),
        (".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./nowhere\n"),
    ];
    let scene = Scene::with_files(&files, Script::new([Step::text("^^^new.txt\n1\n^^^end\n")]));
    let (root, canary) = (scene.project.root(), scene.project.beside().join("canary"));
    scene.project.write("build.sh", script(&ATTACKS, &canary).as_bytes()).unwrap();
    scene.project.commit("a build").unwrap();
    let head = scene.project.git(&["rev-parse", "HEAD"]).unwrap();
    let entry = format!("160000,{},sub", head.trim());
    scene.project.git(&["update-index", "--add", "--cacheinfo", &entry]).unwrap();
    scene.project.git(&["commit", "-qm", "a submodule"]).unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    for (key, value) in [("include.path", "../included.cfg"), ("core.hooksPath", "hooks")] {
        scene.project.git(&["config", key, value]).unwrap();
    }
    for number in 0..REPOSITORIES {
        let git = root.join(format!("many/{number}/.git"));
        ["objects", "refs"].iter().for_each(|name| fs::create_dir_all(git.join(name)).unwrap());
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
    }
    scene
}

/// Everything, inside of repositories too, except what a run leaves and what git itself writes.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let own = ["logs", "new.txt", "llm-user-output.txt", ".git/code-commit", ".git/index", "agent-config"];
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(root).unwrap().to_owned();
            let stat = fs::symlink_metadata(&path).unwrap();
            if own.iter().any(|own| below == Path::new(own)) {
                continue;
            }
            let content = if stat.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if stat.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if stat.is_dir() {
                todo.push(path);
            } else {
                found.insert(below, content);
            }
        }
    }
    found
}

fn differing(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let all = before.keys().chain(after.keys());
    let mut found: Vec<PathBuf> = all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect();
    found.dedup();
    found
}

/// Gives the project to this user.
fn give(scene: &Scene, user: u32) {
    let owner = format!("{user}:{user}");
    assert!(
        Command::new("chown").args(["-R", &owner]).arg(scene.project.beside()).status().unwrap().success()
    );
}

/// The run on this rung; `None` where it does not work, which is said.
fn attack(scene: &Scene, rung: &str, user: u32) -> Option<Ran> {
    let sandbox = if rung == WITHOUT_VIEW { "auto" } else { rung };
    let args = ["implement", "--base-url", scene.server.origin(), "--sandbox", sandbox, "--rounds", "1"];
    let mut command = scene.keyed(&args, &[]);
    let ran = if rung == WITHOUT_VIEW {
        // The kernel allows no view of a tree with another mount below it.
        fs::create_dir(scene.project.root().join("mounted")).unwrap();
        let mount = "mount -t tmpfs none \"$0/mounted\" || exit 99; exec \"$@\"";
        let mut command = mounted(mount, scene.project.root(), &command);
        if_mounted(Ran::of(command.uid(user).gid(user)))?
    } else {
        Ran::of(command.uid(user).gid(user))
    };
    if ran.code == Some(3) && ran.err.contains("does not work here") {
        eprintln!("SKIPPED: attacks on {rung} as {user}: {}", ran.err.trim());
        return None;
    }
    Some(ran)
}

fn nothing_is_left(user: u32) {
    for rung in RUNGS {
        let scene = scene();
        give(&scene, user);
        let before = tree(scene.project.root());
        let Some(ran) = attack(&scene, rung, user) else { continue };
        // It broke the seal twice.
        assert_eq!(ran.code, Some(1), "{rung}: {ran}");
        assert!(scene.project.root().join("new.txt").is_file(), "{rung}: {ran}");
        let left = differing(&before, &tree(scene.project.root()));
        assert!(left.is_empty(), "{rung} as {user}: {left:?}\n{ran}");
        for repository in ["", "sub", "fresh/deep", "many/1"] {
            let folder = scene.project.root().join(repository);
            let mut git = Command::new("git");
            git.args(["-c", "safe.directory=*", "status"]).env("HOME", scene.project.beside());
            // It need not be there any more.
            drop(git.current_dir(folder).uid(user).gid(user).output());
        }
        assert!(!scene.project.beside().join("canary").exists(), "{rung} as {user}: a program was run");
    }
}

#[test]
fn nothing_is_left_of_attacks_on_the_tree_by_a_build_of_root() {
    if rustix::process::geteuid().is_root() {
        nothing_is_left(0);
    } else {
        nothing_is_left(rustix::process::geteuid().as_raw());
    }
}

#[test]
fn nothing_is_left_of_attacks_on_the_tree_by_a_build_of_a_user() {
    if rustix::process::geteuid().is_root() {
        nothing_is_left(NOBODY);
    } else {
        eprintln!("SKIPPED: attacks as another user, because only root can become one");
    }
}

/// Otherwise the tests above would prove nothing.
#[test]
fn every_attack_changes_a_tree_that_nobody_defends() {
    let scene = scene();
    let canary = scene.project.beside().join("canary");
    let mut before = tree(scene.project.root());
    for attack in &ATTACKS {
        let script = script(&[*attack], &canary);
        let ran =
            Command::new("sh").args(["-c", &script]).current_dir(scene.project.root()).status().unwrap();
        assert!(ran.success());
        let after = tree(scene.project.root());
        assert_ne!(differing(&before, &after), Vec::<PathBuf>::new(), "{}", attack.0);
        before = after;
    }
}
