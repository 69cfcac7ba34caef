//! Projects that are hard to put in a sandbox: their repository lies elsewhere, or more is protected than a sandbox can hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, where_mounted};

const FILES: [(&str, &str); 3] = [
    (".gitignore", "/agent-config\n"),
    ("below/.gitignore", "/agent-config\n"),
    (
        "below/build.sh",
        "#!/bin/sh\ngit log -1 --format=%s && ! touch \"$(git rev-parse --git-dir)/x\"\n",
    ),
];

#[track_caller]
fn check_build_in(scene: &Scene, root: &Path) {
    for sandbox in ["namespaces", "landlock"] {
        for input in ["query.txt", "codeRollup.txt"] {
            files::write(&root.join("agent-config").join(input), "say one\n");
        }
        let mut command = scene.keyed(&scene.flags_in(sandbox), &[]);
        let ran = Ran::of(command.current_dir(root));
        if !is_missing(sandbox, &ran) {
            assert_eq!(ran.code, Some(0), "{sandbox}: {ran}");
        }
    }
}

/// Whether a run was refused because there is no such sandbox here; says so.
fn is_missing(sandbox: &str, ran: &Ran) -> bool {
    let is_missing = ran.code == Some(3) && ran.err.contains(&format!("--sandbox {sandbox}"));
    if is_missing {
        eprintln!("SKIPPED: no {sandbox} here: {ran}");
    }
    is_missing
}

fn scene() -> Scene {
    let reply = Step::text("^^^one.txt\n1\n^^^end\n");
    Scene::with_files(&FILES, Script::new([]).rule("enerateContent", reply))
}

fn built_at_the_top() -> Scene {
    let scene = scene();
    scene.git(&["mv", "below/build.sh", "build.sh"]);
    scene.project.commit("at the top").unwrap();
    scene
}

#[test]
fn a_build_in_a_linked_work_tree_can_ask_git() {
    let scene = built_at_the_top();
    let linked = scene.linked();
    check_build_in(&scene, &linked);
}

#[test]
fn a_build_in_a_work_tree_inside_its_bare_repository_can_ask_git() {
    let scene = built_at_the_top();
    let bare = scene.beside("all.git");
    scene.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let (dir, tree) = (bare.to_str().unwrap(), bare.join("trees/one"));
    let add = ["--git-dir", dir, "worktree", "add", "-q", "-b", "other"];
    scene.git(&[&add[..], &[tree.to_str().unwrap()]].concat());
    check_build_in(&scene, &tree);
}

const QUERY: (&str, &str) = ("agent-config/query.txt", "say one\n");

/// One round, and a commit.
fn in_sandbox(scene: &Scene, sandbox: &str) -> Ran {
    scene.git(&["config", "user.name", "A Person"]);
    scene.git(&["config", "user.email", "person@example.invalid"]);
    let args = scene.flags_in(sandbox);
    scene.run_keyed(&[&args[..], &["--rounds", "1", "--commit"]].concat())
}

/// Changes what git keeps, and what we keep there; reads the configuration.
const EVIL: &str = "#!/bin/sh\n\
    for git in .git .git-real deps/.git-sub; do\n\
    for file in HEAD config index info/exclude code-commit/runs hooks/pre-commit; do\n\
    echo evil 2>/dev/null >$git/$file\ndone\ndone\n\
    mv deps other && mkdir -p deps/.git-sub && echo evil >deps/.git-sub/config\n\
    ! grep -r 's3cre[t]' . 2>/dev/null\n";

#[test]
fn a_build_changes_nothing_of_git_s_wherever_a_dot_git_leads() {
    for (sandbox, dot_git) in ["namespaces", "landlock"].into_iter().flat_map(|sandbox| {
        ["gitdir: .git-real\n", "absolute", "symlink"].map(|how| (sandbox, how))
    }) {
        let files = [
            (".gitignore", "/agent-config\n.git-*\n"),
            ("build.sh", EVIL),
            ("deps/a", "a\n"),
            QUERY,
        ];
        let reply = Step::text("^^^one.txt\n1\n^^^end\n");
        let scene = Scene::with_files(&files, Script::new([]).rule("enerateContent", reply));
        let root = scene.project.root();
        scene.git(&["init", "-q", "--separate-git-dir=deps/.git-sub", "deps/sub"]);
        scene.write("deps/sub/.git", "gitdir: ../.git-sub\n");
        for git_dir in [".git", "deps/.git-sub"] {
            let git_dir = format!("--git-dir={git_dir}");
            scene.git(&[&git_dir, "config", "http.extraHeader", "s3cret"]);
        }
        let real = root.join(".git-real");
        std::fs::rename(root.join(".git"), &real).unwrap();
        match dot_git {
            "symlink" => std::os::unix::fs::symlink(".git-real", root.join(".git")).unwrap(),
            "absolute" => {
                let line = format!("gitdir: {}\n", real.display());
                scene.write(".git", line);
            }
            line => scene.write(".git", line),
        }
        let ran = in_sandbox(&scene, sandbox);
        if is_missing(sandbox, &ran) {
            continue;
        }
        assert_eq!(ran.code, Some(0), "{sandbox}, {dot_git}: {ran}");
        for git_dir in [&real, &root.join("deps/.git-sub")] {
            for file in ["HEAD", "config", "info/exclude"] {
                let text = std::fs::read_to_string(git_dir.join(file)).unwrap();
                assert!(
                    !text.contains("evil"),
                    "{sandbox}, {dot_git}: {file}: {ran}"
                );
            }
            assert!(
                !git_dir.join("hooks/pre-commit").exists(),
                "{sandbox}: {ran}"
            );
        }
        assert_eq!(
            scene.git(&["show", "--format=", "--name-only"]),
            "one.txt\n"
        );
        assert_eq!(
            scene.run(&["undo"]).code,
            Some(0),
            "the list of runs is as it was"
        );
    }
}

#[test]
fn a_dot_git_that_is_a_symlink_to_outside_works() {
    for sandbox in ["namespaces", "landlock", "off"] {
        let files = [
            (".gitignore", "/agent-config\n"),
            ("build.sh", "#!/bin/sh\n"),
            QUERY,
        ];
        let reply = Step::text("^^^one.txt\n1\n^^^end\n");
        let scene = Scene::with_files(&files, Script::new([]).rule("enerateContent", reply));
        let (dot_git, outside) = (scene.at(".git"), scene.beside("store"));
        std::fs::rename(&dot_git, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &dot_git).unwrap();
        let ran = in_sandbox(&scene, sandbox);
        if is_missing(sandbox, &ran) {
            continue;
        }
        assert_eq!(ran.code, Some(0), "{sandbox}: {ran}");
        assert!(dot_git.is_symlink());
        let committed = scene.git(&["show", "--format=", "--name-only"]);
        assert_eq!(committed, "one.txt\n", "{sandbox}");
    }
}

#[test]
fn more_protected_files_than_a_sandbox_can_hold_are_held_by_the_seal() {
    let build = "#!/bin/sh\n[ -e ../once ] || chmod u+w many many/*\necho x > many/3999 && touch ../once\ntrue\n";
    let config = "protect = ['many/**']\n";
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build),
        ("code-commit.toml", config),
    ];
    let scene = Scene::with_files(
        &files,
        Script::new([]).rule("enerateContent", Step::text("^^^one.txt\n1\n^^^end\n")),
    );
    for number in 0..4000 {
        scene.write(&format!("many/{number:04}"), "as it was\n");
    }
    scene.project.commit("many").unwrap();
    for input in ["query.txt", "codeRollup.txt"] {
        scene.write(&format!("agent-config/{input}"), "say one\n");
    }
    let args = [&scene.flags_in("landlock")[..], &["--rounds", "1"]].concat();
    let ran = scene.run_keyed(&args);
    if is_missing("landlock", &ran) {
        return;
    }
    ran.err_has("the build, or somebody else while it ran, changed many/3999");
    assert_eq!(scene.read("many/3999"), "as it was\n");
}

#[test]
fn a_project_whose_path_is_no_utf8_has_its_run_listed_shown_and_removed() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let odd = scene.beside(OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(scene.project.root(), &odd).unwrap();
    for args in [
        &["runs", "--json"][..],
        &["show", "--json"],
        &["clean", "--keep", "0", "--json"],
    ] {
        let ran = Ran::of(scene.command(args, &[]).current_dir(&odd)).exits(0);
        ran.out_has("odd\u{fffd}/agent-config/logs/");
    }
    std::fs::rename(&odd, scene.project.root()).unwrap();
}

/// Mounts `$0` once more over itself, then runs the rest.
const MOUNTED_TWICE: &str = "mount --bind \"$0\" \"$0\" || exit 99; exec \"$@\"";

/// The program where `what` is mounted by itself, as in a container: the same disk, and yet nothing can be renamed there.
fn mounted(what: &str, scene: &Scene, args: &[&str]) -> Option<Ran> {
    where_mounted(MOUNTED_TWICE, Path::new(what), &scene.command(args, &[]))
}

#[test]
fn a_repository_that_is_mounted_by_itself_is_on_another_disk() {
    let scene = Scene::with_replies([]);
    scene.write("agent-config/reply", MENDS_IT.as_bytes());
    std::fs::create_dir(scene.at(".git/code-commit")).unwrap();
    for mount in [".git", ".git/code-commit"] {
        for (args, changed) in [(&["apply", "agent-config/reply"][..], 2), (&["undo"], 0)] {
            let Some(done) = mounted(mount, &scene, args) else {
                return;
            };
            assert_eq!(done.code, Some(0), "{mount}, {args:?}: {done}");
            assert_eq!(scene.status().lines().count(), changed, "{mount}, {args:?}");
        }
    }
}

/// Only namespaces have a network of their own in which nothing but the proxy is.
#[test]
fn a_sandbox_that_cannot_open_single_hosts_is_refused_before_anything_is_paid_for() {
    let scene = Scene::with_replies([MENDS_IT]);
    let service = scene.model();
    let ran = scene.run_keyed(
        &[
            &service[..],
            &["--sandbox", "landlock", "--allow-host", "example.org"],
        ]
        .concat(),
    );
    assert_eq!((ran.code, scene.calls()), (Some(3), 0), "{ran}");
    assert!(
        ran.err.contains("use --sandbox namespaces") || ran.err.contains("landlock does not work"),
        "{ran}"
    );
    let ran = scene
        .run(&["check", "--allow-host", "https://example.org"])
        .exits(2);
    ran.err_has("write it like example.org");
}
