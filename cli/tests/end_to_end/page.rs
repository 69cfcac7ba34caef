//! Pages of runs, in a file and in a real browser.

mod browser;
mod scenes;

use std::fs;

use code_commit_timeline::{Call, Run, RunView, Step, What};

use crate::page::browser::{Seen, look};
use crate::page::scenes::{Pages, commit_and_implement, one_order, one_phase, one_spec};
use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, must_have};
use crate::scenes::size::{chosen, samples};

/// What a hostile build, query or name would like to do.
const HOSTILE: &str =
    "</pre></title><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)>";

/// Nothing is said, loaded, opened, badly accessible, wider than its window or folded on paper, and keys reach what a mouse reaches.
#[track_caller]
fn assert_quiet(seen: &Seen) {
    assert_eq!(seen.messages, [""; 0], "{}", seen.file);
    assert!(
        seen.requests.iter().all(|url| url.starts_with("file://")),
        "{:?}",
        seen.requests
    );
    assert_eq!(
        (seen.requests.len(), seen.dialogs),
        (1, 0),
        "{:?}",
        seen.requests
    );
    assert_eq!(seen.findings, [""; 0], "{}", seen.file);
    for (look, too_wide) in &seen.too_wide {
        assert_eq!(
            too_wide, &[""; 0],
            "{look} of {} scrolls sideways",
            seen.file
        );
    }
    assert!(seen.too_wide.contains_key("narrow"), "{}", seen.file);
    assert_eq!(seen.folded, [""; 0], "{} in print", seen.file);
    assert!(
        seen.keyboard["first"]
            .as_str()
            .is_some_and(|text| text.starts_with("Skip to")),
        "{}",
        seen.file
    );
    assert_ne!(seen.keyboard["unfolded"], false, "{}", seen.file);
    assert!(seen.without_script["heading"] == true && seen.without_script["filter"] == false);
    assert_eq!(
        seen.without_script["button"], false,
        "a button that does nothing"
    );
}

/// A page and what it shows.
type Page = (&'static str, &'static [&'static str]);
/// Makes the pages of some loops, and which these are.
type Loops = (fn(&Pages), &'static [Page]);

#[test]
fn a_run_of_each_loop_is_a_page_that_loads_nothing_and_is_accessible() {
    let loops: Vec<Loops> = vec![
        (
            commit_and_implement,
            &[
                (
                    "commit",
                    &[
                        "reply refused",
                        "dot-git",
                        "build failed",
                        "got 'Hello, !'",
                        "+2",
                    ],
                ),
                ("implement", &["build passed", "Round 2"]),
                ("all", &["Success by loop", "2 runs, cost"]),
            ],
        ),
        (
            one_order,
            &[(
                "order",
                &[
                    "PASS",
                    "Put a comma behind hello.",
                    "committed as",
                    "Attempt 2",
                    "src/greet.sh",
                ],
            )],
        ),
        (
            one_phase,
            &[(
                "phase",
                &[
                    "The builder agent (gemini-test)",
                    "Iteration 2",
                    "src/app",
                    "committed as",
                ],
            )],
        ),
        (
            one_spec,
            &[(
                "spec",
                &[
                    "Add X",
                    "APPROVED",
                    "src.txt",
                    "Iteration 1",
                    "committed as",
                ],
            )],
        ),
    ];
    let (pages, loops) = (
        Pages::new(),
        samples("projects whose pages are opened in a browser", loops),
    );
    loops.iter().for_each(|(make, _)| make(&pages));
    let Some(seen) = look(&pages.all()) else {
        return;
    };
    for (name, wanted) in loops.iter().flat_map(|(_, shown)| *shown) {
        let seen = seen
            .iter()
            .find(|seen| seen.file == format!("{name}.html"))
            .unwrap();
        assert_quiet(seen);
        for text in *wanted {
            assert!(
                seen.text.contains(text),
                "{name} shows no {text:?}:\n{}",
                seen.text
            );
        }
    }
}

#[test]
fn hostile_names_and_output_stay_text_in_a_browser() {
    let files = [
        (".gitignore", "/agent-config\n"),
        (
            "build.sh",
            "#!/bin/sh\ncat hostile\nprintf '\\033[31mred\\033[0m\\033]0;title\\007\\n'\nexit 1\n",
        ),
        ("hostile", HOSTILE),
    ];
    let name = "a<img src=x onerror=alert(3)>.txt";
    let reply = format!("^^^{name}\n{HOSTILE}\n^^^end\n");
    let scene = Scene::with_files(
        &files,
        code_commit_fixtures::server::Script::new([code_commit_fixtures::server::Step::text(
            &reply,
        )]),
    );
    scene.commit(&["-m", HOSTILE, "--rounds", "1"]).exits(1);
    let pages = Pages::new();
    pages.make("run", &scene, &["page"]);
    pages.make("all", &scene, &["page", "--all"]);
    let html = fs::read_to_string(&pages.all()[1]).unwrap();
    assert!(
        !html.contains("<img") && !html.contains("<script>alert"),
        "{html}"
    );
    let Some(seen) = look(&pages.all()) else {
        return;
    };
    for seen in &seen {
        assert_quiet(seen);
        must_have(&seen.text, "<script>alert(1)</script>");
    }
    assert!(seen.iter().any(|seen| seen.text.contains(name)));
}

#[test]
fn hundreds_of_runs_can_be_sorted_and_filtered() {
    let (pages, count) = (Pages::new(), chosen("PAGE_RUNS", 200));
    let runs: Vec<Run> = (0..count).map(invented).collect();
    pages.keep("many", &code_commit_page::all("project", &runs, &|_| None));
    let Some(seen) = look(&pages.all()) else {
        return;
    };
    let [seen] = &seen[..] else {
        panic!("{} pages", seen.len())
    };
    assert_quiet(seen);
    let oldest = seen.keyboard["sorted"].as_str().unwrap();
    assert!(
        oldest.starts_with(&format!("run-{:04} ", count - 1)),
        "{oldest}"
    );
    assert_eq!(seen.keyboard["shown"], format!("1 of {count}"));
    // Every fifth is of this loop, and every third has this verdict.
    let chosen = (0..count).filter(|number| number % 15 == 0).count();
    assert_eq!(seen.keyboard["chosen"], format!("{chosen} of {count}"));
    println!("{count} runs open in {:.2} s of CPU", seen.cpu_seconds);
}

fn invented(number: usize) -> Run {
    let kinds = ["commit", "implement", "order", "phase", "spec"];
    let verdicts = [
        ("done", Some(true)),
        ("attempts used up", Some(false)),
        ("not finished", None),
    ];
    let (verdict, is_good) = verdicts[number % 3];
    let [hours, cents] = [number, number % 7].map(|small| u32::try_from(small).unwrap());
    let usage = code_commit_engine::ModelUsage {
        model: format!("model-{}", number % 4),
        ..code_commit_engine::ModelUsage::default()
    };
    let call = Call {
        usage: vec![usage],
        cost_usd: Some(f64::from(cents) / 100.0),
        ..Call::default()
    };
    let from_ms = 1_790_000_000_000 - i64::from(hours) * 7_200_000;
    let step = Step {
        round: 1,
        from_ms,
        to_ms: from_ms + 4_000,
        what: What::Call(Box::new(call)),
    };
    Run {
        name: format!("run-{number:04}"),
        kind: kinds[number % 5].to_owned(),
        verdict: verdict.to_owned(),
        is_good,
        query: format!("Make the {number}th thing work, and say so in the changelog"),
        steps: RunView {
            all: vec![step],
            from_ms,
            to_ms: from_ms + 4_000,
            ..RunView::default()
        },
        ..Run::default()
    }
}

#[test]
fn a_page_goes_to_standard_output_or_to_the_named_file_and_nowhere_else() {
    let scene = Scene::with_replies([code_commit_fixtures::demo::MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let before = scene.git(&["status", "--porcelain", "--ignored"]);
    let ran = scene.run(&["page"]).exits(0);
    assert!(ran.out.starts_with("<!doctype html>"), "{ran}");
    let file = scene.beside("page.html");
    let ran = scene.run(&["page", "--all", "-o", file.to_str().unwrap(), "--json"]);
    let event: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(event["event"], "page");
    assert_eq!(event["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(scene.git(&["status", "--porcelain", "--ignored"]), before);
    let ran = scene.run(&["page", "--json"]).exits(2);
    ran.err_has("name a file with '--output'");
    let ran = scene.run(&["page", "no-such-run"]);
    insta::assert_snapshot!(ran.err, @"
    error: no run named no-such-run was made here
     help: code-commit runs lists them all; the newest: [STAMP]-commit
    ");
}

#[test]
fn open_leaves_the_page_to_the_desktop_and_names_the_file() {
    let scene = Scene::with_replies([code_commit_fixtures::demo::MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let page = scene.runs()[0].join("page.html");
    let bin = scene.beside("bin");
    fs::create_dir(&bin).unwrap();
    let opener = "#!/bin/sh\necho \"$1\" >\"$0.tmp\"\nmv \"$0.tmp\" \"$0.ran\"\n";
    files::write_program(&bin.join("xdg-open"), opener);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let ran = Ran::of(&mut scene.command(&["page", "--open"], &[("PATH", &path)])).exits(0);
    ran.out_has("page.html: ");
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .starts_with("<!doctype html>")
    );
    let opened = bin.join("xdg-open.ran");
    while !opened.exists() {
        std::thread::yield_now();
    }
    let opened = fs::read_to_string(opened).unwrap();
    assert_eq!(opened.trim_end(), page.to_str().unwrap());
    let ran =
        Ran::of(&mut scene.command(&["page", "--open"], &[("PATH", "/nonexistent")])).exits(0);
    ran.err_has("the page was not opened: `xdg-open` is not on PATH");
}

#[test]
fn a_key_in_a_file_of_the_project_is_not_on_the_page() {
    use crate::scenes::commit::KEY;
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", "#!/bin/sh\n"),
        ("a.txt", "old\n"),
    ];
    let script =
        code_commit_fixtures::server::Script::new([code_commit_fixtures::server::Step::text(
            "^^^a.txt\nnew\n^^^end\n",
        )]);
    let scene = Scene::with_files(&files, script);
    assert_eq!(scene.commit(&["-m", "x"]).code, Some(0));
    let undo = scene.runs()[0].join("backup/1");
    let image = fs::read_dir(&undo)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| fs::read(path).is_ok_and(|bytes| bytes == b"old\n"));
    assert!(image.is_some(), "the pre-image is raw: {undo:?}");
    fs::write(scene.at("a.txt"), format!("{KEY}\n")).unwrap();
    let html = scene.run_keyed(&["page"]).out;
    assert!(!html.contains(KEY), "{html}");
}
