//! What befalls people who do nothing wrong: odd files where inputs should be, few descriptors, a reply without text.

use std::os::unix::fs::PermissionsExt as _;

use code_commit_fixtures::demo::MENDS_IT;

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::{below, must_have};

#[test]
fn a_build_script_that_no_kernel_starts_is_refused_before_a_model_is_paid_for() {
    let scene = Scene::with_replies([MENDS_IT]);
    let build = scene.at("build.sh");
    let cases = [
        (
            "#!/bin/sh\r\nexit 0\r\n",
            "build.sh has CRLF line endings, so it cannot run",
        ),
        (
            "#! /no/such/shell -e\nexit 0\n",
            "build.sh needs /no/such/shell, which does not exist",
        ),
    ];
    for (script, told) in cases {
        scene.write("build.sh", script.as_bytes());
        std::fs::set_permissions(&build, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ran = scene.commit(&[]).exits(3);
        ran.err_has(told);
    }
    assert_eq!(scene.calls(), 0);
}

#[test]
fn more_files_than_descriptors_are_undone() {
    let scene = Scene::with_replies([]);
    let reply: String = (0..300)
        .map(|number| format!("^^^many/{number}\nx\n^^^end\n"))
        .collect();
    let file = scene.beside("reply.txt");
    std::fs::write(&file, reply).unwrap();
    scene.run(&["apply", file.to_str().unwrap()]).exits(0);
    let limited = ["sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh"];
    let undone = scene.ran(&mut below(limited, &scene.command(&["undo"], &[])));
    assert_eq!(undone.code, Some(0), "{undone}");
    assert_eq!(scene.status(), "");
}

#[test]
fn what_looks_at_a_reply_with_a_key_in_it_does_not_repeat_the_key() {
    let scene = Scene::with_replies([]);
    let file = scene.beside("reply.txt");
    std::fs::write(
        &file,
        format!("^^^{KEY}\n{KEY}\n^^^end\n&&&start\n{KEY}\n&&&end\n"),
    )
    .unwrap();
    let reply = file.to_str().unwrap();
    for args in [
        vec!["parse", reply],
        vec!["parse", reply, "--json"],
        vec!["guard", KEY],
        vec!["guard", KEY, "--json"],
        vec!["show", KEY],
    ] {
        let ran = scene.run_with(&args, &[("OPENAI_API_KEY", KEY)]);
        assert!(!ran.to_string().contains(KEY), "{args:?}: {ran}");
        assert!(ran.to_string().contains("[key …77]"), "{args:?}: {ran}");
    }
    let applied = scene.run_with(&["apply", reply], &[("OPENAI_API_KEY", KEY)]);
    let tried = scene.run_with(&["apply", reply, "--dry-run"], &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(applied.to_string(), tried.to_string());
    insta::assert_snapshot!(applied, @r"
    exit 1
    --- out
    --- err
    refused: The reply contains an API key. Do not write keys into files. [key-in-reply]
    nothing was written
    ");
}

#[test]
fn a_limit_on_the_length_of_files_is_an_error_and_not_the_end_of_the_program() {
    // In KiB: before the run has begun, and where the build prints more.
    for (limit, code) in [(16, 3), (4096, 70)] {
        let scene = Scene::with_replies([MENDS_IT]);
        scene.write("build.sh", "#!/bin/sh\nhead -c 6000000 /dev/zero\n");
        let limited = ["prlimit", &format!("--fsize={}", limit << 10)];
        let ran = scene.ran(&mut below(limited, &scene.keyed(&scene.flags(), &[])));
        assert_eq!(ran.code, Some(code), "{limit} KiB: {ran}");
        assert!(ran.err.contains("File too large"), "{limit} KiB: {ran}");
    }
}

#[test]
fn too_few_descriptors_are_named_and_no_weaker_sandbox_is_taken_or_proposed() {
    for limit in [12, 14, 16, 18, 20, 40] {
        let scene = Scene::with_replies([MENDS_IT]);
        let args = scene.model();
        let limited = ["sh", "-c", "ulimit -n $0; exec \"$@\"", &limit.to_string()];
        let ran = scene.ran(&mut below(limited, &scene.keyed(&args, &[])));
        assert_eq!((ran.code, scene.calls()), (Some(3), 0), "{limit}: {ran}");
        assert!(
            !ran.err.contains("--sandbox off") && !ran.err.contains("Landlock"),
            "{limit}: {ran}"
        );
        assert!(
            limit < 16 || ran.err.contains("ulimit -n 1024"),
            "{limit}: {ran}"
        );
    }
}

#[test]
fn a_reply_without_text_is_one_round_and_the_next_prompt_says_so() {
    let scene = Scene::with_replies(["", MENDS_IT]);
    let ran = scene.commit(&[]).exits(0);
    ran.out_has("done after 2 rounds");
    must_have(
        &scene.recorded("2-query.txt"),
        "The reply contains no text.",
    );
}
