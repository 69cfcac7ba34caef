//! `export`, `verify` and `import`: a run leaves its clone as one file and is gone on with in another.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use code_commit_bundle::{Manifest, Survey};
use code_commit_dir::Folder;
use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Hang, Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit::{KEY as COMMIT_KEY, Scene as Commit};
use crate::scenes::files;
use crate::scenes::order::{AFTER, FILES, GOOD, KEY, Scene as Order, greet};
use crate::scenes::phase::Scene as Phase;
use crate::scenes::program::{Ran, interrupt, program, tool};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene as Spec};

/// A finished run of the default loop in `scene`, exported with these flags.
fn exported(scene: &Commit, more: &[&str]) -> PathBuf {
    assert_eq!(scene.commit(&[]).code, Some(0));
    let file = scene.project.beside().join("run.bundle");
    let ran = scene.run(&[&["export", "-o", file.to_str().unwrap()], more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    file
}

/// The program somewhere else: another project, another home.
fn elsewhere(root: &Path, args: &[&str], environment: &[(&str, &str)]) -> Ran {
    let home = root.parent().unwrap().join("another-home");
    fs::create_dir_all(&home).unwrap();
    Ran::of(&mut program(root, &home, args, environment))
}

/// A copy of the project's commit at another path.
fn cloned(from: &Path, to: &Path) {
    let done = tool(
        "git",
        from,
        from,
        &["clone", "-q", ".", to.to_str().unwrap()],
    )
    .output()
    .unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn verify(file: &Path, more: &[&str]) -> Ran {
    let nowhere = tempfile::tempdir().unwrap();
    Ran::of(&mut program(
        nowhere.path(),
        nowhere.path(),
        &[&["verify", file.to_str().unwrap()], more].concat(),
        &[],
    ))
}

/// An SSH key in `folder`, and a list that allows it.
fn key(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (key, list) = (folder.join(name), folder.join(format!("{name}.allowed")));
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
        .arg(&key)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let public = files::text(&key.with_extension("pub"));
    files::write(&list, format!("{name}@example.invalid {public}"));
    (key, list)
}

/// Packs the folder again, with a right hash and whatever `edit` makes of it.
fn repacked(file: &Path, edit: impl FnOnce(&Path, &mut Value)) -> PathBuf {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::open(scratch.path()).unwrap();
    let opened = code_commit_bundle::open(&mut File::open(file).unwrap(), Some(&folder)).unwrap();
    let mut about = opened.manifest.about;
    edit(scratch.path(), &mut about);
    let manifest = Manifest::new(about, Survey::of(&folder).unwrap()).to_bytes();
    let other = file.with_extension("other");
    code_commit_bundle::pack(
        &folder,
        &manifest,
        opened.signature.as_deref(),
        File::create(&other).unwrap(),
    )
    .unwrap();
    other
}

/// Changes a file of a run.
fn change(run: &Path, name: &str, from: &str, to: &str) {
    let text = files::text(&run.join(name));
    assert!(text.contains(from));
    files::write(&run.join(name), text.replacen(from, to, 1));
}

/// An order that was killed while its last command waited for a file named `go-on` beside the repository.
pub fn killed_order() -> Order {
    let scene = Order::scripted(
        &FILES,
        Script::new([]).rule("chat/completions", Step::text(&greet(GOOD))),
    );
    let wait = format!("sh -c '{AFTER}touch stray; test -e ../go-on || sleep 600'");
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", wait] }));
    let mut child = scene
        .command(&[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !scene.root().join("stray").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    scene
}

#[test]
fn an_order_that_was_killed_is_finished_on_another_path_and_no_answer_is_paid_for_twice() {
    let scene = killed_order();
    let file = scene.beside("order.bundle");
    let ran = Ran::of(&mut scene.program(&["export", "-o", file.to_str().unwrap()]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let asked = scene.server.requests().len();
    assert_eq!(asked, 1);
    for trusted in [false, true] {
        let there = tempfile::tempdir().unwrap();
        let root = there.path().join("deep/er/clone");
        cloned(scene.root(), &root);
        files::write(&there.path().join("deep/er/go-on"), "");
        let mut args = vec!["import", file.to_str().unwrap()];
        args.extend(trusted.then_some("--trust"));
        let imported = elsewhere(&root, &args, &[]);
        assert_eq!(imported.code, Some(0), "{}", imported.err);
        assert!(
            imported.out.contains("(order), tree ")
                && imported.out.contains(", not finished, not signed"),
            "{}",
            imported.out
        );
        let name = imported.out.split(':').next().unwrap().to_owned();
        let identity = [("OPENAI_API_KEY", KEY)];
        let finished = if trusted {
            elsewhere(&root, &["resume", &name], &identity)
        } else {
            let refused = elsewhere(&root, &["resume", &name], &identity);
            assert!(
                refused.code == Some(3) && refused.err.contains("not signed by a trusted signer"),
                "{}",
                refused.err
            );
            let (order, out) = (scene.beside("order.json"), there.path().join("out"));
            let base = format!("{}/v1", scene.server.origin());
            let same = [
                "order",
                "run",
                order.to_str().unwrap(),
                "--out",
                out.to_str().unwrap(),
                "--base-url",
                &base,
                "--sandbox",
                "off",
                "--llm-model",
                "openai/test",
            ];
            elsewhere(&root, &same, &identity)
        };
        assert_eq!(finished.code, Some(0), "{}{}", finished.out, finished.err);
        assert!(
            finished.out.starts_with("PASS (success) after 1 attempt\n"),
            "{}",
            finished.out
        );
        assert_eq!(files::text(&root.join("src/greet.sh")), GOOD);
        assert_eq!(scene.server.requests().len(), asked, "trusted: {trusted}");
    }
}

/// A run of the default loop that Ctrl-C stopped while the model thought about its second prompt, as a file, and a
/// clone of its project in `there`.
fn stopped(there: &Path) -> (Commit, PathBuf, PathBuf) {
    let thinks = Step::text("").hang(Hang::BeforeHead);
    let scene = Commit::new(Script::new([
        Step::text(BREAKS_THE_BUILD),
        thinks,
        Step::text(MENDS_IT),
    ]));
    let args = scene.flags();
    let mut child = scene
        .keyed(&args, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    scene.server.wait_for_requests(2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let file = scene.project.beside().join("run.bundle");
    assert_eq!(
        scene.run(&["export", "-o", file.to_str().unwrap()]).code,
        Some(0)
    );
    let root = there.join("clone");
    cloned(scene.project.root(), &root);
    (scene, file, root)
}

#[test]
fn an_imported_run_begins_only_on_its_own_tree_and_after_the_preflight_of_any_run() {
    let there = tempfile::tempdir().unwrap();
    let (scene, file, root) = stopped(there.path());
    let key = [("GEMINI_API_KEY", COMMIT_KEY)];
    let imported = elsewhere(&root, &["import", "--trust", file.to_str().unwrap()], &[]);
    let name = imported.out.split(':').next().unwrap();
    let refused = |args: &[&str], environment: &[(&str, &str)], why: &str| {
        let ran = elsewhere(&root, &[&["resume", name], args].concat(), environment);
        assert!(
            ran.code == Some(3) && ran.err.contains(why),
            "{why}: {}{}",
            ran.out,
            ran.err
        );
    };
    refused(&[], &[], "GEMINI_API_KEY");
    files::write(&root.join("README.md"), "mine\n");
    refused(
        &[],
        &key,
        "began with another tree: not committed here: README.md\n",
    );
    for args in [&["add", "README.md"][..], &["commit", "-q", "-m", "mine"]] {
        let mut git = tool("git", &root, &root, args);
        for name in [
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        ] {
            git.env(name, "me");
        }
        assert!(git.status().unwrap().success());
    }
    refused(&[], &key, " is checked out here\n");
    let build = files::text(&root.join("build.sh"));
    fs::remove_file(root.join("build.sh")).unwrap();
    refused(&["--force"], &key, "build.sh");
    files::write(&root.join("build.sh"), build);
    fs::set_permissions(root.join("build.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(scene.server.requests().len(), 2, "nobody was asked");

    let forced = elsewhere(&root, &["resume", name, "--force"], &key);
    assert_eq!(forced.code, Some(0), "{}{}", forced.out, forced.err);
    let run = files::entries(root.join("agent-config/logs"))
        .pop()
        .unwrap();
    let plan: Value = serde_json::from_str(&files::text(&run.join("run.json"))).unwrap();
    assert_eq!(plan["query_from"], "agent-config/query.txt");
}

#[test]
fn a_record_that_is_imported_again_is_the_one_that_is_here() {
    let there = tempfile::tempdir().unwrap();
    let (_scene, file, root) = stopped(there.path());
    let mut names = Vec::new();
    for more in [&[][..], &["--trust"], &[]] {
        let ran = elsewhere(
            &root,
            &[&["import", file.to_str().unwrap(), "--json"], more].concat(),
            &[],
        );
        let said: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
        names.push((said["run"].clone(), said["believed"].clone()));
    }
    assert!(
        names.iter().all(|(name, _)| *name == names[0].0),
        "{names:?}"
    );
    let believed: Vec<&Value> = names.iter().map(|(_, believed)| believed).collect();
    assert_eq!(
        believed,
        [&Value::Null, &json!("--trust"), &json!("--trust")],
        "trust is not taken back"
    );
    assert_eq!(
        files::entries(root.join(".git/code-commit/imported")).len(),
        1
    );
}

#[test]
fn a_signature_does_not_vouch_for_an_altered_record_that_was_imported_before() {
    let scene = Commit::with_replies([MENDS_IT]);
    let (own, allowed) = key(scene.project.beside(), "max");
    let signed = exported(&scene, &["--sign", own.to_str().unwrap()]);
    let plan = |run: &Path, _: &mut Value| change(run, "run.json", "./build.sh", "./evil.sh");
    let unsigned = exported_again(&scene);
    let altered = repacked(&unsigned, plan);
    let there = tempfile::tempdir().unwrap();
    let root = there.path().join("clone");
    cloned(scene.project.root(), &root);
    let import = |file: &Path| {
        let args = [
            "import",
            file.to_str().unwrap(),
            "--allowed-signers",
            allowed.to_str().unwrap(),
            "--json",
        ];
        let ran = elsewhere(&root, &args, &[]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let said: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
        (
            said["believed"].clone(),
            files::text(&PathBuf::from(said["folder"].as_str().unwrap()).join("run.json")),
        )
    };
    let (believed, plan) = import(&altered);
    assert!(believed.is_null() && plan.contains("evil.sh"));
    let (believed, plan) = import(&signed);
    assert_eq!(believed, "max@example.invalid");
    assert!(
        !plan.contains("evil.sh"),
        "the signature is one of another plan"
    );
}

/// The newest run once more, without a signature.
fn exported_again(scene: &Commit) -> PathBuf {
    let file = scene.project.beside().join("unsigned.bundle");
    let ran = scene.run(&["export", "-o", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran}");
    file
}

#[test]
fn a_bundle_does_not_say_itself_which_files_may_be_missing() {
    let scene = Commit::with_replies([MENDS_IT]);
    let file = exported(&scene, &[]);
    let other = repacked(&file, |run, _| {
        let prompt = run.join("1-query.txt");
        let stored = json!([{
            "file": "1-query.txt", "bytes": files::text(&prompt).len(),
            "sha256": code_commit_logging::sha256_hex(files::text(&prompt).as_bytes()),
        }]);
        fs::remove_file(&prompt).unwrap();
        files::write(&run.join("withheld.json"), stored.to_string());
    });
    let refused = verify(&other, &[]);
    assert!(
        refused.code == Some(1) && refused.out.contains("a withheld.json of its own"),
        "{}",
        refused.out
    );
}

#[test]
fn a_run_that_came_without_its_prompts_leaves_without_them() {
    let scene = Commit::with_replies([MENDS_IT]);
    let file = exported(&scene, &["--without-prompts"]);
    assert_eq!(scene.run(&["import", file.to_str().unwrap()]).code, Some(0));
    let folder = files::entries(scene.project.root().join(".git/code-commit/imported")).remove(0);
    let again = scene.project.beside().join("again.bundle");
    let ran = scene.run(&[
        "export",
        folder.to_str().unwrap(),
        "-o",
        again.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let manifest = |file: &Path| {
        code_commit_bundle::open(&mut File::open(file).unwrap(), None)
            .unwrap()
            .manifest
    };
    assert_eq!(manifest(&again).withheld, manifest(&file).withheld);
    assert_eq!(manifest(&again).files, manifest(&file).files);
    assert_eq!(verify(&again, &[]).code, Some(0));
}

#[test]
fn a_signature_that_is_bad_and_one_that_nobody_here_can_judge_are_different_things() {
    let scene = Commit::with_replies([MENDS_IT]);
    let beside = scene.project.beside().to_owned();
    let (own, allowed) = key(&beside, "max");
    let allowed = allowed.to_str().unwrap();
    let file = exported(&scene, &["--sign", own.to_str().unwrap()]);
    let both = format!(
        "eve@example.invalid,max@example.invalid {}",
        files::text(&own.with_extension("pub"))
    );
    files::write(&beside.join("both"), both);
    let known = verify(
        &file,
        &["--allowed-signers", beside.join("both").to_str().unwrap()],
    );
    assert!(
        known.out.ends_with(", signed by eve@example.invalid\n"),
        "{}",
        known.out
    );

    let nowhere = tempfile::tempdir().unwrap();
    let judge = [
        "verify",
        file.to_str().unwrap(),
        "--allowed-signers",
        allowed,
    ];
    let mut without = program(
        nowhere.path(),
        nowhere.path(),
        &judge,
        &[("PATH", "/nowhere")],
    );
    let ran = Ran::of(&mut without);
    assert!(
        ran.code == Some(3) && ran.err.contains("cannot judge the signature: "),
        "{}{}",
        ran.out,
        ran.err
    );
    let lost = verify(
        &file,
        &[
            "--allowed-signers",
            nowhere.path().join("list").to_str().unwrap(),
        ],
    );
    assert!(
        lost.code == Some(3) && lost.err.contains("cannot judge the signature: "),
        "{}",
        lost.err
    );
}

#[test]
fn a_key_with_a_passphrase_signs_through_an_agent_and_otherwise_the_message_says_so() {
    let scene = Commit::with_replies([MENDS_IT]);
    let beside = scene.project.beside().to_owned();
    let (own, allowed) = key(&beside, "max");
    let mut change = Command::new("ssh-keygen");
    let changed = change
        .args(["-q", "-p", "-P", "", "-N", "open sesame", "-f"])
        .arg(&own)
        .output()
        .unwrap();
    assert!(changed.status.success(), "{changed:?}");
    assert_eq!(scene.commit(&[]).code, Some(0));
    let file = beside.join("run.bundle");
    let export = [
        "export",
        "-o",
        file.to_str().unwrap(),
        "--sign",
        own.to_str().unwrap(),
    ];
    let refused = scene.run(&export);
    assert!(
        refused.code == Some(3) && refused.err.contains("has to be in an agent: ssh-add "),
        "{refused}"
    );

    let socket = beside.join("agent");
    let mut agent = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .spawn()
        .unwrap();
    while !socket.exists() {
        assert!(agent.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let says = beside.join("says");
    files::write(&says, "#!/bin/sh\necho open sesame\n");
    fs::set_permissions(&says, fs::Permissions::from_mode(0o700)).unwrap();
    let added = Command::new("ssh-add")
        .arg(&own)
        .env("SSH_AUTH_SOCK", &socket)
        .envs([
            ("SSH_ASKPASS_REQUIRE", "force"),
            ("SSH_ASKPASS", says.to_str().unwrap()),
        ])
        .output()
        .unwrap();
    assert!(added.status.success(), "{added:?}");
    let signed = scene.run_with(&export, &[("SSH_AUTH_SOCK", socket.to_str().unwrap())]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(signed.code, Some(0), "{signed}");
    let judged = verify(&file, &["--allowed-signers", allowed.to_str().unwrap()]);
    assert!(
        judged.out.ends_with(", signed by max@example.invalid\n"),
        "{}",
        judged.out
    );
}

#[test]
fn a_run_of_the_default_loop_is_begun_anew_elsewhere_with_the_answers_that_were_paid_for() {
    let thinks = Step::text("").hang(Hang::BeforeHead);
    let scene = Commit::new(Script::new([
        Step::text(BREAKS_THE_BUILD),
        thinks,
        Step::text(MENDS_IT),
    ]));
    let mut command = scene.keyed(&scene.flags(), &[]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    scene.server.wait_for_requests(2);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let file = scene.project.beside().join("run.bundle");
    assert_eq!(
        scene.run(&["export", "-o", file.to_str().unwrap()]).code,
        Some(0)
    );
    let there = tempfile::tempdir().unwrap();
    let root = there.path().join("clone");
    cloned(scene.project.root(), &root);
    let imported = elsewhere(&root, &["import", "--trust", file.to_str().unwrap()], &[]);
    assert_eq!(imported.code, Some(0), "{}", imported.err);
    let name = imported.out.split(':').next().unwrap();
    let resumed = elsewhere(&root, &["resume", name], &[("GEMINI_API_KEY", COMMIT_KEY)]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert!(
        resumed
            .err
            .contains("with 1 reply that need not be paid for again"),
        "{}",
        resumed.err
    );
    assert!(
        resumed
            .out
            .contains("Done after 2 rounds: the build passes."),
        "{}",
        resumed.out
    );
    assert_eq!(
        scene.server.requests().len(),
        3,
        "only the second round is asked for"
    );
    assert_eq!(
        elsewhere(&root, &["undo"], &[]).code,
        Some(0),
        "the run that was made here"
    );
    let status = tool("git", &root, &root, &["status", "--porcelain"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
}

#[test]
fn an_imported_run_is_shown_and_replayed_and_nothing_of_it_is_put_into_the_tree() {
    let scene = Commit::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    let file = exported(&scene, &[]);
    let there = tempfile::tempdir().unwrap();
    let root = there.path().join("clone");
    cloned(scene.project.root(), &root);
    let imported = elsewhere(&root, &["import", file.to_str().unwrap()], &[]);
    let name = imported.out.split(':').next().unwrap().to_owned();
    assert!(
        imported.err.contains("not signed by a trusted signer"),
        "{}",
        imported.err
    );
    let ran = |args: &[&str]| elsewhere(&root, args, &[]);
    assert!(
        ran(&["runs"]).out.contains(", imported  The tests in "),
        "{}",
        ran(&["runs"]).out
    );
    assert!(
        ran(&["show", &name]).out.contains("round 2"),
        "{}",
        ran(&["show", &name]).out
    );
    let replayed = ran(&["replay", &name]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
    for (args, code) in [
        (vec!["undo", &name], 7),
        (vec!["undo"], 7),
        (vec!["resume"], 7),
        (vec!["show"], 7),
        (
            vec!["replay", &name, "--from-round", "1", "--reply", "build.sh"],
            3,
        ),
    ] {
        let ran = ran(&args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.out, ran.err);
    }
    assert!(
        ran(&["costs"]).out.contains("No call of a model"),
        "others paid for it"
    );
    assert_eq!(ran(&["clean", "--keep", "0"]).code, Some(0));
    assert_eq!(ran(&["runs"]).out, "");
}

#[test]
fn a_signature_is_judged_by_the_list_of_allowed_signers_and_by_ssh_keygen_itself() {
    let scene = Commit::with_replies([MENDS_IT]);
    let beside = scene.project.beside().to_owned();
    let ((own, allowed), (_, others)) = (key(&beside, "max"), key(&beside, "eve"));
    let file = exported(&scene, &["--sign", own.to_str().unwrap()]);
    let good = verify(&file, &["--allowed-signers", allowed.to_str().unwrap()]);
    assert_eq!(good.code, Some(0), "{}{}", good.out, good.err);
    assert!(good.out.starts_with("intact: "), "{}", good.out);
    assert!(
        good.out.contains("-commit (commit), tree ")
            && good
                .out
                .ends_with(", done, signed by max@example.invalid\n"),
        "{}",
        good.out
    );
    assert!(
        verify(&file, &[])
            .out
            .ends_with("signed; --allowed-signers FILE says by whom\n")
    );
    let bad = verify(&file, &["--allowed-signers", others.to_str().unwrap()]);
    assert_eq!(bad.code, Some(1), "{}", bad.out);
    assert!(
        bad.out
            .ends_with("signed by nobody in the list of allowed signers\n"),
        "{}",
        bad.out
    );

    let opened = code_commit_bundle::open(&mut File::open(&file).unwrap(), None).unwrap();
    let signature = beside.join("manifest.sig");
    files::write(&signature, opened.signature.unwrap());
    files::write(&beside.join("manifest"), opened.manifest_bytes);
    let accepted = Command::new("ssh-keygen")
        .args([
            "-Y",
            "verify",
            "-n",
            "code-commit-run",
            "-I",
            "max@example.invalid",
            "-f",
        ])
        .arg(&allowed)
        .arg("-s")
        .arg(&signature)
        .stdin(File::open(beside.join("manifest")).unwrap())
        .output()
        .unwrap();
    assert!(accepted.status.success(), "{accepted:?}");

    let other = repacked(&file, |run, _| files::write(&run.join("more.txt"), "more"));
    let forged = verify(&other, &["--allowed-signers", allowed.to_str().unwrap()]);
    let bad = "its signature is not one of its manifest\n";
    assert!(
        forged.code == Some(1) && forged.out.ends_with(bad),
        "{}",
        forged.out
    );
    let refused = scene.run(&[
        "import",
        other.to_str().unwrap(),
        "--allowed-signers",
        allowed.to_str().unwrap(),
    ]);
    assert!(
        refused.code == Some(3) && refused.err.contains(bad),
        "{refused}"
    );

    let git = format!(
        "[gpg \"ssh\"]\n\tallowedSignersFile = {}\n",
        allowed.display()
    );
    let there = tempfile::tempdir().unwrap();
    let root = there.path().join("clone");
    cloned(scene.project.root(), &root);
    files::write(&there.path().join("another-home/.gitconfig"), git);
    let imported = elsewhere(&root, &["import", file.to_str().unwrap(), "--json"], &[]);
    let said: Value = serde_json::from_str(imported.out.lines().next().unwrap()).unwrap();
    assert_eq!(said["believed"], "max@example.invalid", "{}", imported.out);
}

#[test]
fn an_unsigned_bundle_is_intact_but_not_vouched_for() {
    let scene = Commit::with_replies([MENDS_IT]);
    let (_, allowed) = key(scene.project.beside(), "max");
    let file = exported(&scene, &[]);
    assert!(verify(&file, &[]).out.ends_with(", done, not signed\n"));
    let demanded = verify(&file, &["--allowed-signers", allowed.to_str().unwrap()]);
    assert!(
        demanded.code == Some(1) && demanded.out.ends_with(": not signed\n"),
        "{}",
        demanded.out
    );
    let json = verify(&file, &["--json"]);
    let said: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&said["ok"], &said["about"]["outcome"], &said["signed_by"]),
        (&json!(true), &json!("done"), &Value::Null)
    );
}

/// A change to a run and to what its bundle says about it.
type Edit = dyn Fn(&Path, &mut Value);

#[test]
fn a_bundle_that_says_something_else_than_its_record_is_refused() {
    let scene = Commit::with_replies([MENDS_IT]);
    let file = exported(&scene, &[]);
    let edits: [(&str, &Edit, &str); 7] = [
        (
            "the outcome",
            &|_, about| about["outcome"] = json!("stuck"),
            "does not say what its record says",
        ),
        (
            "the name",
            &|_, about| about["run"] = json!("../../x"),
            "no name that a folder could have",
        ),
        (
            "a hidden name",
            &|_, about| about["run"] = json!(".git"),
            "no name that a folder could have",
        ),
        (
            "a line",
            &|run, _| change(run, "events.jsonl", "\"answered\"", "\"unanswered\""),
            "not intact",
        ),
        (
            "a reply",
            &|run, _| change(run, "1-response.txt", "greet", "grett"),
            "is not the file that was recorded",
        ),
        (
            "no plan",
            &|run, _| fs::remove_file(run.join("run.json")).unwrap(),
            "not intact",
        ),
        (
            "no journal",
            &|run, _| fs::remove_file(run.join("events.jsonl")).unwrap(),
            "not intact",
        ),
    ];
    for (what, edit, why) in edits {
        let other = repacked(&file, edit);
        let refused = verify(&other, &[]);
        assert!(
            refused.code == Some(1) && refused.out.contains(why),
            "{what}: {}{}",
            refused.out,
            refused.err
        );
        let kept = scene.run(&["import", other.to_str().unwrap(), "--trust"]);
        assert_eq!(kept.code, Some(3), "{what}: {kept}");
        let imported = files::entries(scene.project.root().join(".git/code-commit/imported"));
        assert_eq!(imported.len(), 0, "{what}");
    }
    fs::write(&file, b"no bundle").unwrap();
    assert_eq!(verify(&file, &[]).code, Some(1));
    assert_eq!(verify(Path::new("/dev/zero"), &[]).code, Some(1));
    assert_eq!(verify(Path::new("/nowhere"), &[]).code, Some(1));
}

#[test]
fn pre_images_of_files_that_no_run_may_write_are_not_imported() {
    let scene = Commit::with_replies([MENDS_IT]);
    let file = exported(&scene, &[]);
    for path in [
        "../../stolen",
        "/etc/passwd",
        ".git/hooks/pre-commit",
        "a/../../b",
    ] {
        let other = repacked(&file, |run, _| {
            let manifest = run.join("undo/1/manifest.json");
            let mut value: Value = serde_json::from_str(&files::text(&manifest)).unwrap();
            value["entries"][0]["path"] = json!(path);
            files::write(&manifest, value.to_string());
        });
        let refused = scene.run(&["import", other.to_str().unwrap(), "--trust"]);
        assert!(
            refused.code == Some(3) && refused.err.contains("is not the file that was recorded"),
            "{path}: {refused}"
        );
    }
}

#[test]
fn an_export_that_would_carry_a_key_names_the_file_and_writes_nothing() {
    const SECRET: &str = "AIzaSyOld-key-in-a-file-of-the-project-12";
    let scene = Commit::with_replies([MENDS_IT]);
    let script = format!(
        "# {SECRET}\n{}",
        scene.project.read("src/greet.sh").unwrap()
    );
    scene
        .project
        .write("src/greet.sh", script.as_bytes())
        .unwrap();
    scene.project.commit("a key is committed").unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    let file = scene.project.beside().join("run.bundle");
    let export = ["export", "-o", file.to_str().unwrap()];
    let refused = scene.run_with(&export, &[("GEMINI_API_KEY", SECRET)]);
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(
        refused.err.contains("/undo/1/") && refused.err.contains(".old holds an API key"),
        "{refused}"
    );
    assert!(!refused.err.contains(SECRET) && !file.exists());
    assert_eq!(
        scene.run(&export).code,
        Some(0),
        "nobody knows that it is a key"
    );
}

#[test]
fn prompts_stay_behind_where_that_is_asked_for_and_their_hashes_do_not() {
    let scene = Commit::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    let file = exported(&scene, &["--without-prompts"]);
    let opened = code_commit_bundle::open(&mut File::open(&file).unwrap(), None).unwrap();
    let withheld: Vec<&str> = opened
        .manifest
        .withheld
        .iter()
        .map(|item| item.name.as_str())
        .collect();
    assert_eq!(withheld, ["1-query.txt", "2-query.txt"]);
    let hash = code_commit_logging::sha256_hex(scene.recorded("1-query.txt").as_bytes());
    assert_eq!(opened.manifest.withheld[0].sha256, hash);
    assert!(
        opened
            .manifest
            .files
            .iter()
            .all(|item| !item.name.ends_with("query.txt"))
    );
    assert_eq!(verify(&file, &[]).code, Some(0));
    let imported = scene.run(&["import", file.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported}");
    let folder = files::entries(scene.project.root().join(".git/code-commit/imported")).remove(0);
    let shown = scene.run(&["show", folder.to_str().unwrap()]);
    assert!(
        shown.code == Some(0) && shown.out.contains("round 2"),
        "{shown}"
    );
}

#[test]
fn a_bundle_is_an_archive_that_other_programs_read() {
    let scene = Commit::with_replies([MENDS_IT]);
    let file = exported(&scene, &[]);
    let mut zstd = Command::new("zstd")
        .args(["-dc"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let listed = Command::new("tar")
        .arg("-tf")
        .arg("-")
        .stdin(zstd.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(zstd.wait().unwrap().success());
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(
        names.starts_with("manifest.json\nfiles/1-build.txt\n"),
        "{names}"
    );
    let again = scene.project.beside().join("again.bundle");
    assert_eq!(
        scene.run(&["export", "-o", again.to_str().unwrap()]).code,
        Some(0)
    );
    assert_eq!(
        fs::read(file).unwrap(),
        fs::read(again).unwrap(),
        "the same run is the same file"
    );
}

#[test]
fn runs_of_phases_and_of_specs_are_carried_too() {
    let phase = Phase::new(&[
        ("builder-1", "echo one > app"),
        ("verifier-1", ": > failed_specs.md"),
    ]);
    assert_eq!(phase.run(&["run"]).code, Some(0));
    let file = phase.at("phase.bundle");
    let ran = phase.code_commit(&["export", "-o", file.to_str().unwrap()], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        verify(&file, &[])
            .out
            .contains("-phase1 (phase), done, not signed")
    );

    let spec = Spec::new(&[PLAN, DONE, APPROVE]);
    assert_eq!(spec.run().code, Some(0));
    let file = spec.home().join("spec.bundle");
    let ran = Ran::of(&mut spec.command(&["export", "-o", file.to_str().unwrap()], &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let there = tempfile::tempdir().unwrap();
    let root = there.path().join("clone");
    cloned(&spec.root(), &root);
    let imported = elsewhere(&root, &["import", file.to_str().unwrap(), "--trust"], &[]);
    let name = imported.out.split(':').next().unwrap().to_owned();
    let replayed = elsewhere(&root, &["replay", &name], &[]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
    assert_eq!(elsewhere(&root, &["show", &name], &[]).code, Some(0));
    let refused = elsewhere(&root, &["resume", &name], &[]);
    assert!(refused.code == Some(3), "{}", refused.err);
}
