//! The default loop (S1).

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{KEY, Scene, texts};
use crate::scenes::files;

#[test]
fn a_reply_whose_build_passes_ends_the_run_at_once() {
    let scene = Scene::with_replies([MENDS_IT]);
    let ran = scene.commit(&[]);
    insta::assert_snapshot!(ran, @r#"
    exit 0
    --- out
    greet now takes its name from the first argument and falls back to "world". I added a README that says so.
    ✓ done after 1 round: the build passes
      A README.md +3   M src/greet.sh +2 −2 (named by the build)
      1 round · 815 tokens in, 100 out · cost unknown · [TIME] · agent-config/logs/[STAMP]-commit
      next: git diff · code-commit undo
    --- err
    warning: the price of gemini/gemini-test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    sandbox: OFF, commands run with all your rights (asked for)
    round 1/4  asking gemini/gemini-test (3.1 kB)
    round 1/4  replied in [TIME]: 398 B, 815 tokens in, 100 out
    round 1/4  wrote src/greet.sh, created README.md
    round 1/4  build passed ([TIME])
    "#);
    assert_eq!(scene.status(), " M src/greet.sh\n?? README.md\n");
    assert_eq!(scene.calls(), 1);
}

#[test]
fn packages_that_git_does_not_ignore_are_named_by_their_folder_with_the_rule() {
    let scene = Scene::with_replies([MENDS_IT]);
    for path in [
        "web/node_modules/a/node_modules/x.js",
        "web/node_modules/b.js",
        ".venv/lib/y.py",
        "new.txt",
    ] {
        scene.write(path, "x\n");
    }
    let ran = scene.commit(&[]).exits(0);
    for said in [
        "warning: .venv/ (1 file) is not ignored by git: add `/.venv/` to .gitignore\n",
        "warning: web/node_modules/ (2 files) is not ignored by git: add `/web/node_modules/` to .gitignore\n",
        "warning: not committed: new.txt; ",
    ] {
        assert!(ran.err.contains(said), "{said}: {ran}");
    }
}

#[test]
fn a_green_run_of_the_daily_use_prints_eight_lines_beside_the_words_of_the_model_and_no_warning() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.user_file("[[price]]\nprefix = \"gemini-test\"\ninput = 1.0\noutput = 10.0\n");
    let flags = scene.model();
    let ran = scene.run_keyed(&flags).exits(0);
    let printed = format!("{}{}", ran.out, ran.err);
    let weaker = printed.lines().filter(|line| line.starts_with("sandbox: "));
    let said = printed
        .lines()
        .filter(|line| line.starts_with("greet now takes"));
    let lines = printed.lines().count() - weaker.count() - said.count();
    assert!(lines <= 8 && !printed.contains("warning"), "{lines}: {ran}");
}

#[test]
fn the_initial_and_the_repair_prompts_have_the_order_of_the_specification() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, BREAKS_THE_BUILD, MENDS_IT]);
    scene.commit(&[]);
    insta::assert_snapshot!("initial_prompt", scene.recorded("1-query.txt"));
    insta::assert_snapshot!("second_repair_prompt", scene.recorded("3-query.txt"));
    let sent: Vec<String> = scene
        .server
        .requests()
        .iter()
        .map(|request| {
            request.json()["contents"][0]["parts"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let logged = ["1-query.txt", "2-query.txt", "3-query.txt"].map(|file| scene.recorded(file));
    assert_eq!(sent, logged);
}

#[test]
fn the_run_folder_has_its_files_numbered_alike() {
    let scene = Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    scene.commit(&[]);
    let names: Vec<String> = scene.record().into_iter().map(|(name, _)| name).collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    1-build.txt
    1-query.txt
    1-response.json
    1-response.txt
    2-build.txt
    2-query.txt
    2-response.json
    2-response.txt
    3-build.txt
    3-query.txt
    3-response.json
    3-response.txt
    backup/2/0.old
    backup/2/manifest.json
    backup/3/0.old
    backup/3/manifest.json
    events.jsonl
    run.json
    summary.json
    ");
    insta::assert_snapshot!(scene.recorded("1-build.txt"), @r"
    The reply was not used and no file was changed, because:
    - `.git/hooks/pre-commit` is or looks like git's own folder; leave it unchanged.
    ");
    insta::assert_snapshot!(scene.recorded("2-build.txt"), @r"
    ok: a name is greeted
    FAILED: nobody is the world: expected 'Hello, world!', got 'Hello, !'
    exit code: 1
    ");
    insta::assert_snapshot!(scene.recorded("3-build.txt"), @r"
    ok: a name is greeted
    ok: nobody is the world
    exit code: 0
    ");
    assert_eq!(scene.recorded("3-response.txt"), MENDS_IT);
}

/// They were said before the build, whose output may be long.
#[test]
fn what_deserves_a_look_stands_in_the_summary_and_in_the_record() {
    let crlf = "^^^a.txt\none\ntwo\n^^^end\n";
    let scene = Scene::new(Script::new(
        [crlf, BREAKS_THE_BUILD, MENDS_IT].map(Step::text),
    ));
    scene.write("a.txt", b"one\r\nTWO\r\n");
    scene.project.commit("lines of Windows").unwrap();
    let ran = scene.commit(&[]).exits(0);
    let said: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.contains("a.txt"))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @"
    A README.md +3   M a.txt +2 −2   M src/greet.sh +2 −2 (named by the build)
    warning: `a.txt` had lines that end in CRLF; now it has LF.
    ");
    let summary = scene.json("summary.json");
    insta::assert_snapshot!(summary["warnings"], @r#"[{"code":"line-ends","message":"`a.txt` had lines that end in CRLF; now it has LF.","path":"a.txt"}]"#);
}

#[test]
fn the_key_is_sent_in_a_header_and_found_nowhere_else() {
    let scene = Scene::with_replies([
        format!("^^^a.txt\nmy key is {KEY}\n^^^end\n").as_str(),
        MENDS_IT,
    ]);
    let ran = scene.commit(&["--verbose"]).exits(0);
    assert!(
        !scene.at("a.txt").exists(),
        "a reply with a key was applied"
    );
    for request in scene.server.requests() {
        assert_eq!(request.header("x-goog-api-key"), Some(KEY));
        assert!(!request.path.contains(KEY));
    }
    for (name, text) in scene.record() {
        assert!(!text.contains(KEY), "{name} holds the key");
    }
    assert!(!ran.to_string().contains(KEY), "{ran}");
    assert!(scene.recorded("1-response.txt").contains("[key …77]"));
}

#[test]
fn json_is_one_object_a_line_and_nothing_else_on_standard_output() {
    let scene = Scene::with_replies([TOUCHES_GIT, MENDS_IT]);
    let ran = scene.commit(&["--json"]);
    let mut events: Vec<String> = ran
        .out
        .lines()
        .map(|line| {
            let object: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            let what = object["fact"]["what"]
                .as_str()
                .map(|what| format!(" {what}"))
                .unwrap_or_default();
            format!("{}{what}", object["event"].as_str().unwrap())
        })
        .collect();
    // What a build prints comes in one piece or in several.
    events.dedup();
    insta::assert_snapshot!(events.join("\n"), @r"
    ask-begins
    fact asked
    fact attempted
    fact answered
    fact rejected
    ask-begins
    fact asked
    fact attempted
    fact answered
    said
    fact applied
    build-begins
    build-prints
    fact built
    fact ended
    summary
    ");
}

#[test]
fn a_project_that_is_the_home_folder_is_not_built_in_a_sandbox() {
    let scene = Scene::with_replies([MENDS_IT]);
    let home = scene.project.root().display().to_string();
    let args = scene.model();
    let ran = scene.run_with(&args, &[("GEMINI_API_KEY", KEY), ("HOME", &home)]);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert_eq!(scene.calls(), 0);
}

#[test]
fn no_build_changes_or_makes_what_no_model_may_write() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    let names = [
        "docs/UserSpecification.md",
        "src/.gitignore",
        ".gitmodules",
        "LLMInstructions.md",
        "UserSpecification.md",
        "codeRollup.sh",
        ".cuggino.json",
        "code-commit.toml",
    ];
    for name in &names[..2] {
        scene.write(name, "# as it was\n");
    }
    scene.project.commit("more").unwrap();
    let build = format!(
        "#!/bin/sh\n[ -e ../once ] || for name in {}; do echo x >> $name; done\ntouch ../once\n",
        names.join(" ")
    );
    scene.write("build.sh", build.as_bytes());
    let ran = scene.commit(&[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let told = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in names {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert_eq!(
        scene.status(),
        " M build.sh\n M src/greet.sh\n?? README.md\n"
    );
}

#[test]
fn a_repair_prompt_fits_the_window_of_its_model() {
    let noisy = "#!/bin/sh\nseq 60000 | sed 's/$/ is a line of its own/'; exit 1\n";
    let scene = |model: &str| {
        let files = [FILES[0], ("build.sh", noisy), FILES[2], FILES[4]];
        let scene = Scene::with_files(&files, Script::new([MENDS_IT, MENDS_IT].map(Step::text)));
        let args = [
            "--base-url",
            scene.server.origin(),
            "--model",
            model,
            "--sandbox",
            "off",
            "--rounds",
            "2",
        ];
        scene.run_keyed(&args).exits(1);
        scene.recorded("2-query.txt")
    };
    // Nobody knows the window of the second one: it counts as 128,000 tokens of three bytes.
    assert!(scene("gemini/gemini-test").len() > 1_000_000);
    let prompt = scene("gemini/next-year");
    assert!(prompt.len() < 3 * 128_000, "{}", prompt.len());
    assert!(prompt.contains("\n1 is a line") && prompt.contains("\n60000 is a line"));
    assert!(prompt.contains("[code-commit] ") && prompt.contains(" bytes left out"));
}

#[test]
fn however_much_a_build_prints_memory_and_prompt_hold_only_its_ends() {
    let config = "[build]\noutput_limit = \"1GiB\"\n";
    for more in [&["--rounds", "2"][..], &["--rounds", "2", "--verbose"]] {
        // The second build tells what the harness that started it has needed so far.
        let ran = |bytes: u32| {
            let noisy = format!(
                "#!/bin/sh\ngrep -q '^second' src/greet.sh && exec grep VmHWM /proc/$PPID/status\n\
                echo begins; head -c {bytes} /dev/zero | tr '\\0' x; echo ends; exit 1\n"
            );
            let files = [FILES[0], ("build.sh", &noisy), FILES[2], FILES[4]];
            let replies =
                ["first", "second"].map(|word| format!("^^^src/greet.sh\n{word}\n^^^end\n"));
            let scene = Scene::with_files(&files, Script::new(texts(&replies)));
            scene.user_file(config);
            scene.commit(more).exits(0);
            let told = scene.recorded("2-build.txt");
            let kilobytes: u64 = told.split_whitespace().nth(1).unwrap().parse().unwrap();
            (kilobytes, scene.recorded("2-query.txt"))
        };
        let (ends_alone, _) = ran(2_000_000);
        let (needed, prompt) = ran(24_000_000);
        assert!(
            needed < ends_alone + 16_000,
            "{more:?}: {needed} kB, and {ends_alone} kB where a build prints 2 MB"
        );
        assert!(
            prompt.contains("begins\nxxx") && prompt.contains("xxxends\n"),
            "the ends are there"
        );
        assert!(
            prompt.contains("[code-commit] 22951449 bytes left out") && prompt.len() < 1_100_000,
            "{}",
            prompt.len()
        );
    }
}

#[test]
fn every_rule_by_which_git_ignores_agent_config_is_taken() {
    let scene = Scene::with_replies([]);
    let home = scene.project.beside();
    let root = scene.project.root();
    let global = home.join(".config/git/ignore");
    let places = [
        root.join(".gitignore"),
        root.join(".git/info/exclude"),
        global,
        root.join("agent-config/.gitignore"),
    ];
    for (place, line) in [
        (0, "agent-config"),
        (0, "/agent-config/"),
        (0, "agent-config/*"),
        (0, "**/agent-config/"),
        (0, "agent-*"),
        (0, "/*\n!/agent-config.txt"),
        (1, "/agent-config"),
        (1, "agent-config/*"),
        (2, "agent-config/"),
        (3, "*"),
    ] {
        for other in &places {
            files::write(other, "*.o\n");
        }
        files::write(&places[place], format!("*.o\n{line}\n"));
        let before = scene.read(".gitignore");
        let ran = scene.commit(&["--new"]);
        assert_eq!(ran.code, Some(4), "{line}: {ran}");
        assert_eq!(scene.read(".gitignore"), before, "{line}");
    }
}

#[test]
fn a_run_that_misses_the_rule_adds_it_and_its_undo_takes_it_back() {
    const HIDES: &str = "added /agent-config, where keys and logs are kept";
    for (before, after) in [
        (None, "/agent-config\n"),
        (Some("*.o"), "*.o\n/agent-config\n"),
        (
            Some("agent-config/logs\n"),
            "agent-config/logs\n/agent-config\n",
        ),
        (Some("#agent-config\n"), "#agent-config\n/agent-config\n"),
        (
            Some("agent-config\n!agent-config/\n"),
            "agent-config\n!agent-config/\n/agent-config\n",
        ),
        (
            Some("agent-config/*\n!agent-config/query.txt\n"),
            "agent-config/*\n!agent-config/query.txt\n/agent-config\n",
        ),
    ] {
        let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
        let path = scene.at(".gitignore");
        match before {
            Some(text) => files::write(&path, text),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let ran = scene.commit(&[]);
        assert!(
            ran.code == Some(0) && ran.err.contains(HIDES),
            "{before:?}: {ran}"
        );
        assert!(!ran.err.contains("agent-config/query.txt"), "hidden: {ran}");
        assert_eq!(files::text(&path), after);
        let undone = scene.run(&["undo"]);
        undone.out_has("removed /agent-config from .gitignore");
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before);
        assert_eq!(scene.run(&["redo"]).code, Some(0));
        assert_eq!(files::text(&path), after, "reapplied");
        // On another branch, or after a stash, the line is missing again.
        std::fs::remove_file(&path).unwrap();
        scene.git(&["add", "README.md"]);
        let ran = scene.commit(&["--new"]);
        assert!(
            ran.code == Some(0) && ran.err.contains(HIDES),
            "{before:?}: {ran}"
        );
    }
}

#[test]
fn an_undo_leaves_the_rule_where_something_else_was_changed_there() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.write(".gitignore", "*.o\n");
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene.write(".gitignore", "*.a\n/agent-config\n");
    let undone = scene.run(&["undo"]).exits(0);
    assert!(!undone.out.contains(".gitignore"), "{undone}");
    assert_eq!(scene.read(".gitignore"), "*.a\n/agent-config\n");
}

#[test]
fn a_tree_is_clean_enough_where_only_protected_files_are_changed() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.write("build.sh", (scene.read("build.sh") + "# more\n").as_bytes());
    scene.write("Cargo.lock", "version = 4\n");
    scene.write("docs/UserSpecification.md", "# What it is\n");
    scene.commit(&["--require-clean"]).exits(0);
}

#[test]
fn a_conflicted_file_is_refused_by_name_before_a_model_is_asked() {
    let scene = Scene::with_replies([MENDS_IT]);
    let git = |args: &[&str]| scene.git(args);
    git(&["checkout", "-qb", "theirs"]);
    scene.write("src/greet.sh", "theirs\n");
    scene.project.commit("theirs").unwrap();
    git(&["checkout", "-q", "-"]);
    scene.write("src/greet.sh", "ours\n");
    scene.project.commit("ours").unwrap();
    let _ = scene.project.git(&["merge", "-q", "theirs"]);
    let ran = scene.commit(&[]);
    assert_eq!((ran.code, scene.calls()), (Some(3), 0), "{ran}");
    ran.err_has("a merge left conflicts in src/greet.sh");
}
