//! `code-commit.toml`, the user's own file, what each may decide, and `config` and `trust`.

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Server, Step};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::Ran;
use crate::typed;

impl Scene {
    fn project_file(&self, text: &str) {
        self.write("code-commit.toml", text.as_bytes());
    }

    /// The default loop with a key and nothing else: the files decide.
    fn plainly(&self, more: &[&str]) -> Ran {
        self.run_keyed(more)
    }

    /// A user's file that makes runs reach this scene's server.
    fn reachable(&self, more: &str) {
        let origin = self.server.origin();
        self.user_file(&format!(
            "[model]\nname = \"gemini-test\"\nbase_url = \"{origin}\"\n[sandbox]\nmode = \"off\"\n{more}"
        ));
    }
}

#[test]
fn every_setting_is_shown_with_its_origin() {
    let scene = Scene::with_replies([]);
    scene.user_file(
        "protect = [\"*.snap\"]\n[model]\nname = \"gpt-6\"\ntimeout = \"90s\"\n[sandbox]\nenv = [\"CC\"]\n",
    );
    scene.project_file(
        "protect = [\"tests/**\"]\n[limits]\nmax_cost = 2.5\n[build]\ncommand = \"make check\"\n",
    );
    std::fs::create_dir(scene.beside(".cache")).unwrap();
    let shown = scene.run_with(
        &[
            "config",
            "--max-calls",
            "3",
            "--writable",
            "~/.cache",
            "--stream=false",
        ],
        &[
            ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"),
            ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:2"),
        ],
    );
    let home = scene.project.beside().display().to_string();
    insta::assert_snapshot!(shown.to_string().replace(&home, "[HOME]"), @"
    exit 0
    --- out
    user file: [HOME]/.config/code-commit/config.toml
    project file: [ROOT]/code-commit.toml (not trusted)
    model.name                  openai/gpt-6  user file
    model.escalate              -  default
    model.base_url              http://127.0.0.1:1/v1  OPENAI_BASE_URL
    model.temperature           -  default
    model.stream                false  flag
    model.timeout               1m30s  user file
    model.call_limit            -  default
    model.wait                  -  default
    model.dialect.max_tokens    -  default
    model.dialect.system_role   -  default
    limits.max_cost             2.5  project file
    limits.max_tokens           -  default
    limits.max_calls            3  flag
    limits.max_time             -  default
    limits.rounds               -  default
    build.command               make check  project file
    build.timeout               10m  default
    build.may_write             -  default
    build.output_limit          64MiB  default
    build.prompt_limit          1MiB  default
    build.memory                -  default
    build.processes             4096  default
    build.temporary             -  default
    build.file                  64GiB  default
    build.open_files            65536  default
    sandbox.mode                auto  default
    sandbox.network             false  default
    sandbox.hosts               -  default
    sandbox.writable            [HOME]/.cache  flag
    sandbox.readable            -  default
    sandbox.cache_limit         8GiB  default
    sandbox.env                 CC  user file
    spec.commit_scope           -  default
    spec.max_turns              100  default
    order.byproducts            restore  default
    rollup.include              -  default
    rollup.exclude              -  default
    rollup.budget               -  default
    protect                     *.snap  user file
    protect                     tests/**  project file
    protect_grader              false  default
    edits                       false  default
    price                       -  default
    providers                   -  default
    --- err
    ");
}

#[test]
fn config_as_json_is_one_object_a_setting() {
    let scene = Scene::with_replies([]);
    let shown = scene.run(&["config", "--json", "--build-timeout", "2m"]);
    let lines: Vec<&str> = shown
        .out
        .lines()
        .filter(|line| line.contains("build.") || line.contains("\"file\""))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"file":"user","path":null,"trust":null}
    {"file":"project","path":null,"trust":null}
    {"key":"build.command","origin":"default","value":"./build.sh"}
    {"key":"build.timeout","origin":"flag","value":"2m"}
    {"key":"build.may_write","origin":"default","value":null}
    {"key":"build.output_limit","origin":"default","value":"64MiB"}
    {"key":"build.prompt_limit","origin":"default","value":"1MiB"}
    {"key":"build.memory","origin":"default","value":null}
    {"key":"build.processes","origin":"default","value":4096}
    {"key":"build.temporary","origin":"default","value":null}
    {"key":"build.file","origin":"default","value":"64GiB"}
    {"key":"build.open_files","origin":"default","value":65536}
    "#);
}

#[test]
fn a_project_that_is_not_trusted_does_not_send_the_key_elsewhere() {
    let scene = Scene::with_replies([MENDS_IT]);
    let elsewhere = Server::start(Script::new([Step::text(MENDS_IT)])).unwrap();
    scene.reachable("");
    scene.project_file(&format!(
        "[model]\nbase_url = \"{}\"\n[sandbox]\nnetwork = true\n",
        elsewhere.origin()
    ));
    let ran = scene.plainly(&["--quiet"]).exits(0);
    assert_eq!((scene.calls(), elsewhere.requests().len()), (1, 0));
    insta::assert_snapshot!(ran.err.replace(elsewhere.origin(), "[ELSEWHERE]"), @r#"
    warning: code-commit.toml is not trusted and may only tighten, so `model.base_url = "[ELSEWHERE]"` has no effect; review the file, then: code-commit trust
    warning: code-commit.toml is not trusted and may only tighten, so `sandbox.network = true` has no effect; review the file, then: code-commit trust
    warning: the price of gemini/gemini-test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    warning: not committed: code-commit.toml; code-commit undo brings them back
    "#);
}

#[test]
fn a_file_whose_path_cannot_stand_in_the_list_is_not_trusted() {
    let scene = Scene::with_replies([]);
    let odd =
        scene.beside(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::File::create(odd.join("code-commit.toml")).unwrap();
    let ran = Ran::of(scene.command(&["trust", "--yes"], &[]).current_dir(&odd)).exits(3);
    ran.err_has("is not UTF-8, and the list of trusted files names it");
    ran.err_has("rename the folder");
    assert!(!scene.beside(".local").exists());
}

#[test]
fn on_a_terminal_only_yes_is_yes() {
    let scene = Scene::with_replies([]);
    scene.project_file("[sandbox]\nnetwork = true\n");
    for (typed, code, trusted) in [
        ("y\n", 3, "not trusted"),
        ("no\n", 3, "not trusted"),
        ("yes\n", 0, "trusted"),
    ] {
        let Some(ran) = typed::run(&scene, &["trust"], &[], typed) else {
            return;
        };
        assert_eq!(ran.code, Some(code), "{typed}: {ran}");
        let config = scene.run(&["config"]);
        assert!(
            config
                .out
                .contains(&format!("code-commit.toml ({trusted})")),
            "{typed}: {config}"
        );
    }
}

#[test]
fn what_the_configuration_protects_is_refused_and_the_model_is_told_of_it() {
    let writes_a_test = "^^^Tests/greet_test.sh\nexit 0\n^^^end\n";
    let scene = Scene::with_replies([writes_a_test, MENDS_IT]);
    scene.project_file("protect = [\"tests/**\"]\n");
    scene.commit(&[]).exits(0);
    insta::assert_snapshot!(scene.recorded("1-build.txt"), @"
    The reply was not used and no file was changed, because:
    - `Tests/greet_test.sh` is protected (the configuration's `protect` list); leave it unchanged.
    ");
    assert!(scene.recorded("1-query.txt").contains("tests/**"));
}

#[test]
fn the_build_that_is_configured_decides_and_no_shell_reads_it() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene.reachable("[build]\ncommand = \"printf '%s\\\\n' '$(touch made)' 'two words'\"\n");
    scene.plainly(&[]).exits(0);
    insta::assert_snapshot!(scene.recorded("1-build.txt"), @"
    $(touch made)
    two words
    exit code: 0
    ");
    assert!(!scene.at("made").exists());
}

#[test]
fn variables_pass_into_the_build_where_they_are_named() {
    let scene = Scene::with_replies([MENDS_IT]);
    let printed = "sh -c 'echo one=$ONE two=$TWO key=$GEMINI_API_KEY'";
    let ran = scene.run_with(
        &[
            &scene.flags()[..],
            &["--env", "ONE", "--build-command", printed],
        ]
        .concat(),
        &[("GEMINI_API_KEY", KEY), ("ONE", "1"), ("TWO", "2")],
    );
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        scene
            .recorded("1-build.txt")
            .starts_with("one=1 two= key=\n"),
        "{}",
        scene.recorded("1-build.txt")
    );
}

#[test]
fn the_sandbox_opens_where_it_is_told_to_and_nowhere_else() {
    let doctor = Scene::with_replies([]).run(&["doctor", "--json"]).out;
    if !doctor
        .lines()
        .any(|line| line.contains(r#""check":"sandbox""#) && line.contains(r#""ok":true"#))
    {
        eprintln!("SKIPPED: what opens the sandbox, because no sandbox works here: {doctor}");
        return;
    }
    for (more, made) in [(&[][..], false), (&["--writable", "~/outside"], true)] {
        let scene = Scene::with_replies([MENDS_IT]);
        let outside = scene.beside("outside");
        std::fs::create_dir(&outside).unwrap();
        let build = format!("sh -c 'echo made > {}/made'", outside.display());
        let mut args = [&scene.model()[..], &["--rounds", "1"]].concat();
        args.extend(["--build-command", &build]);
        args.extend(more);
        let ran = scene.plainly(&args);
        assert_eq!(ran.code, Some(i32::from(!made)), "{ran}");
        assert_eq!(outside.join("made").exists(), made, "{ran}");
    }
}

#[test]
fn a_writable_folder_outside_that_is_not_there_is_an_error_and_is_not_made() {
    let scene = Scene::with_replies([MENDS_IT; 2]);
    let outside = scene.beside("outside");
    for command in [&[][..], &["implement"], &["config"], &["doctor"]] {
        let ran = scene.run(&[command, &["--writable", "~/outside"]].concat());
        let told = format!("'--writable <DIR>': there is no {}", outside.display());
        assert!(
            ran.code == Some(2) && ran.err.contains(&told),
            "{command:?}: {ran}"
        );
    }
    assert!(!outside.exists() && scene.runs().is_empty());
    std::fs::create_dir(&outside).unwrap();
    scene
        .commit(&["--writable", "~/outside", "--writable", "target/new"])
        .exits(0);
    let way = scene.beside("way");
    std::os::unix::fs::symlink(scene.project.root(), &way).unwrap();
    assert_eq!(
        scene
            .run(&["config", "--writable", "~/way/target/newer"])
            .code,
        Some(0),
        "it is the project"
    );
    std::os::unix::fs::symlink(&outside, scene.at("out")).unwrap();
    assert_eq!(
        scene.run(&["config", "--writable", "out/new"]).code,
        Some(2),
        "it is not the project"
    );
}
