//! Who may touch what, and what is committed (S4 §Auto-Commit).

use serde_json::json;

use crate::scenes::program::must_have;
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene, all_settings, event, is_there};

#[test]
fn what_a_planner_and_a_reviewer_change_is_put_back_and_they_are_told() {
    let scene = Scene::new(&[
        &format!("echo planner > src.txt; echo x > extra.txt; {PLAN}"),
        DONE,
        "echo reviewer > src.txt; say '<REQUEST_CHANGES>no</REQUEST_CHANGES>'",
        PLAN,
        DONE,
        "cat src.txt > $HOME/seen; tool Read .specs/a.md; say '<APPROVED>good</APPROVED>'",
    ]);
    let ran = scene.run().exits(0);
    assert_eq!(scene.read("src.txt"), "new\n");
    assert!(!is_there(&scene.root().join("extra.txt")));
    ran.err_has("extra.txt may not be changed by the planning agent");
    must_have(&scene.prompt(4), "put back:\n\n- extra.txt\n- src.txt\n");
    assert!(scene.prompt(6).contains("- src.txt\n") && !scene.prompt(5).contains("put back"));
}

#[test]
fn specs_are_changed_only_where_the_focus_asks_for_it() {
    let turns = [
        PLAN,
        "echo b > .specs/b.md; echo x > .cuggino.json; say '<DONE>all</DONE>'",
        APPROVE,
    ];
    let scene = Scene::new(&turns);
    scene.configure(&json!({}));
    let ran = scene.spec(&["run", "--focus", "Implement what .specs/a.md says"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        (scene.read(".specs/b.md"), scene.read(".cuggino.json")),
        (String::new(), "{}".to_owned())
    );
    ran.err_has("it was restored; ask for it in the focus: `Update .specs/b.md`\n");
    ran.err_has(".cuggino.json may not be changed by the implementing agent: it was restored\n");
    let scene = Scene::new(&turns);
    scene
        .spec(&["run", "--focus", "Write .specs/b.md"])
        .exits(0);
    assert_eq!(scene.read(".specs/b.md"), "b\n");
}

#[test]
fn what_the_configuration_protects_is_put_back_new_untracked_or_ignored() {
    let scene = Scene::new(&[
        PLAN,
        "for file in tests/tracked tests/untracked tests/ignored Tests/new tests/deep/new .gitignore src.txt; do \
            mkdir -p $(dirname $file); echo agent > $file; done; rm tests/gone; say '<DONE>all</DONE>'",
        APPROVE,
    ]);
    for file in ["tests/tracked", "tests/gone"] {
        scene.write(file, "mine\n");
    }
    scene.write(".gitignore", "tests/ignored\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-q", "-m", "tests"]);
    scene.write("tests/untracked", "mine\n");
    scene.write("tests/ignored", "mine\n");
    scene.write("code-commit.toml", "protect = ['tests/**', '.gitignore']\n");
    let ran = scene.run().exits(0);
    for file in [
        "tests/tracked",
        "tests/gone",
        "tests/untracked",
        "tests/ignored",
    ] {
        assert_eq!(scene.read(file), "mine\n", "{file}");
    }
    assert_eq!(scene.read(".gitignore"), "tests/ignored\n");
    assert_eq!(
        (scene.read("Tests/new"), scene.read("tests/deep/new")),
        (String::new(), String::new())
    );
    assert_eq!(scene.read("src.txt"), "agent\n");
    ran.err_has("tests/deep may not be changed by the implementing agent");
}

#[test]
fn a_commit_leaves_out_specs_and_what_a_person_had_not_committed() {
    let scene = Scene::new(&[
        PLAN,
        "echo task > src.txt; echo more >> touched.txt; echo s > .specs/a.md; say '<DONE>the task</DONE>'",
        APPROVE,
    ]);
    scene.write("mine.txt", "mine\n");
    scene.write("touched.txt", "mine\n");
    scene.write("staged.txt", "mine\n");
    scene.git(&["add", "staged.txt"]);
    scene.configure(&all_settings());
    scene.spec(&["run", "--focus", "Change .specs"]).exits(0);
    assert_eq!(
        scene.git(&["show", "--format=%s", "--name-only"]),
        "the task\n\nsrc.txt\ntouched.txt\n"
    );
    let status = scene.git(&["status", "--porcelain"]);
    assert_eq!(
        status,
        " M .specs/a.md\nA  staged.txt\n?? .cuggino.json\n?? mine.txt\n"
    );
}

#[test]
fn a_repository_that_an_agent_makes_within_the_project_is_not_committed_and_named() {
    let nested = "git init -q nested; cd nested; echo x > file; git add file; \
        git -c user.name=a -c user.email=a@a commit -qm x; cd ..";
    let scene = Scene::new(&[
        PLAN,
        &format!("{nested}; git init -q bare; {DONE}"),
        APPROVE,
    ]);
    scene.configure(&json!({ "commit": true }));
    let ran = scene.run();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        scene.git(&["show", "--format=", "--name-only"]),
        "src.txt\n"
    );
    ran.err_has("nested is a repository of its own: it is not committed");
}

#[test]
fn commit_scope_all_takes_everything_but_the_specs() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    scene.write("mine.txt", "mine\n");
    scene.write("code-commit.toml", "[spec]\ncommit_scope = 'all'\n");
    scene.configure(&json!({ "commit": true }));
    assert_eq!(scene.run().code, Some(0));
    assert!(scene.git(&["show", "--name-only"]).contains("mine.txt"));
}

#[test]
fn a_commit_that_fails_stops_nothing() {
    let scene = Scene::new(&[
        PLAN,
        &format!("{DONE}; touch .git/index.lock"),
        "rm .git/index.lock; tool Read .specs/a.md; say '<APPROVED>good</APPROVED>'",
    ]);
    scene.configure(&json!({ "commit": true }));
    let (code, events) = scene.events();
    assert_eq!(code, Some(0));
    must_have(
        event(&events, "CommitFailed")["message"].as_str().unwrap(),
        "index.lock",
    );
}

#[test]
fn a_repository_without_commits_is_reviewed_whole() {
    let scene = Scene::without_commits(&[PLAN, DONE, APPROVE]);
    scene.write(".specs/a.md", "# A\n");
    scene.configure(&json!({ "commit": true }));
    assert_eq!(scene.run().code, Some(0));
    assert!(!scene.prompt(3).contains("git diff"));
    assert_eq!(
        scene.git(&["show", "--format=%s", "--name-only"]),
        "the last task\n\nsrc.txt\n"
    );
}

#[test]
fn nothing_is_written_or_deleted_through_a_link_that_an_agent_puts_into_the_store() {
    let scene = Scene::new(&[
        PLAN,
        "ln -sf $HOME/profile $WIP.md; say '<NOTE>evil</NOTE>'; say '<DONE>all</DONE>'",
    ]);
    let profile = scene.home().join("profile");
    assert!(std::fs::File::create(&profile).is_ok());
    must_have(&scene.run().err, "cannot keep a marker of the implementing");
    assert_eq!(std::fs::read_to_string(&profile).unwrap(), "");
    let scene = Scene::new(&[
        PLAN,
        DONE,
        "rm -r .cuggino; mkdir $HOME/elsewhere; ln -s $HOME/elsewhere .cuggino; mkdir .cuggino/spec-issues; say '<SPEC_ISSUE>x</SPEC_ISSUE>'",
    ]);
    assert_eq!(scene.run().code, Some(6));
    assert!(
        scene
            .root()
            .join(".cuggino/spec-issues")
            .join(&scene.stored("spec-issues")[0])
            .is_file()
    );
    assert!(
        std::fs::read_dir(scene.home().join("elsewhere/spec-issues"))
            .unwrap()
            .next()
            .is_none()
    );
}
