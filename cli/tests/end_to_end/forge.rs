//! A run in a job on GitHub or GitLab, and what the log of the job obeys.

use std::fs;

use code_commit_fixtures::demo::{MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::program::Ran;

const GITHUB: (&str, &str) = ("GITHUB_ACTIONS", "true");
const GITLAB: (&str, &str) = ("GITLAB_CI", "true");

/// Commands of GitHub and a marker of GitLab.
const HOSTILE: &str = r"printf '::set-env name=A::b\n \t::add-mask::e\nsee ##[add-matcher]m.json\n'
printf '\033[0Ksection_start:1:evil\r\033[0Kevil\n'";

/// A model that writes a file, and a build that names a line of it, is hostile and fails.
fn broken() -> Scene {
    let build = format!("#!/bin/sh\n{HOSTILE}\necho 'a,b.txt:1:7: error: 100% wrong: x'\nexit 1\n");
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build.as_str()),
    ];
    Scene::with_files(&files, Script::new([Step::text("^^^a,b.txt\nx\n^^^end\n")]))
}

fn run(scene: &Scene, more: &[&str], environment: &[(&str, &str)]) -> Ran {
    Ran::of(&mut scene.keyed(&[&scene.flags(), more].concat(), environment))
}

/// The lines that a runner of GitHub takes for commands, as it reads them.
fn commands(ran: &Ran) -> Vec<&str> {
    let is_command = |line: &&str| line.trim_start().starts_with("::") || line.contains("##[");
    ran.out
        .lines()
        .chain(ran.err.lines())
        .filter(is_command)
        .collect()
}

#[test]
fn a_failed_build_is_annotated_where_it_points_and_its_output_commands_nothing() {
    for more in [&[][..], &["--verbose"], &["--json"], &["--quiet"]] {
        let scene = broken();
        let ran = run(
            &scene,
            &[&["-m", "x", "--rounds", "1"], more].concat(),
            &[GITHUB],
        );
        assert_eq!(ran.code, Some(1), "{ran}");
        let wanted = "::error file=a%2Cb.txt,line=1,title=code-commit::the build fails: exit code 1%0Aa,b.txt:1:7: error: 100%25 wrong: x";
        assert_eq!(commands(&ran), [wanted], "{more:?}: {ran}");
    }
    let ran = run(&broken(), &["-m", "x", "--rounds", "1"], &[]);
    assert!(
        ran.err.contains("::set-env name=A::b") && !ran.err.contains("::error"),
        "{ran}"
    );
}

#[test]
fn a_refused_path_is_a_warning_if_the_model_mends_its_reply_and_an_error_if_not() {
    for (rounds, level) in [("2", "warning"), ("1", "error")] {
        let scene = Scene::with_replies([TOUCHES_GIT, MENDS_IT]);
        let ran = run(&scene, &["--rounds", rounds], &[GITHUB]);
        let commands = commands(&ran);
        let [only] = commands[..] else {
            panic!("{ran}")
        };
        assert!(
            only.starts_with(&format!(
                "::{level} file=.git/hooks/pre-commit,title=code-commit::refused: "
            )),
            "{only}"
        );
    }
}

#[test]
fn the_run_is_added_to_the_summary_of_the_job() {
    let scene = Scene::with_replies([MENDS_IT]);
    let summary = scene.project.beside().join("summary.md");
    std::fs::File::create(&summary)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"# Before\n"))
        .unwrap();
    let named = ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap());
    assert_eq!(run(&scene, &[], &[GITHUB, named]).code, Some(0));
    let text = fs::read_to_string(&summary).unwrap();
    let page = Ran::of(&mut scene.command(&["page", "--format", "markdown"], &[])).out;
    assert_eq!(text, format!("# Before\n{page}\n"));
    assert!(text.contains("**done**"), "{text}");

    let nowhere = ("GITHUB_STEP_SUMMARY", "/nonexistent/summary.md");
    let scene = Scene::with_replies([MENDS_IT]);
    let ran = run(&scene, &[], &[GITHUB, nowhere]);
    assert!(
        ran.code == Some(0)
            && ran
                .err
                .contains("warning: the job's summary lacks this run"),
        "{ran}"
    );
}

/// The markers of sections in this text: whether each starts or ends one, and its name.
fn sections(text: &str) -> Vec<(bool, String)> {
    let marker = |part: &str| {
        let (start, rest) = part.strip_prefix("section_")?.split_once(':')?;
        let (seconds, rest) = rest.split_once(':')?;
        let (name, _) = rest.split_once("\r\u{1b}[0K")?;
        assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000, "{part}");
        Some((start == "start", name.to_owned()))
    };
    text.split("\u{1b}[0K")
        .filter_map(|part| marker(&format!("{part}\u{1b}[0K")))
        .collect()
}

#[test]
fn each_round_is_a_section_that_folds_on_gitlab_and_no_build_can_open_one() {
    let scene = Scene::with_replies([TOUCHES_GIT, MENDS_IT]);
    let ran = run(&scene, &[], &[GITLAB]);
    let found = sections(&ran.err);
    let run_name = scene.runs()[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let of = |is_start, round| (is_start, format!("{run_name}-{round}"));
    assert_eq!(
        found,
        [of(true, 1), of(false, 1), of(true, 2), of(false, 2)],
        "{ran}"
    );
    assert!(
        ran.err.contains("\u{1b}[0Kround 2/4\n") && !ran.out.contains("section_"),
        "{ran}"
    );

    let scene = broken();
    let found = sections(
        &run(
            &scene,
            &["-m", "x", "--rounds", "1", "--verbose"],
            &[GITLAB],
        )
        .err,
    );
    assert_eq!(found.len(), 2, "{found:?}");
    for (more, environment) in [
        (&["--quiet"][..], &[GITLAB][..]),
        (&["--json"], &[GITLAB]),
        (&[], &[]),
    ] {
        let ran = run(
            &broken(),
            &[&["-m", "x", "--rounds", "1"], more].concat(),
            environment,
        );
        assert_eq!(sections(&format!("{}{}", ran.out, ran.err)), [], "{ran}");
    }
}
