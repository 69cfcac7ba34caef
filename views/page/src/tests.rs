use std::collections::BTreeMap;

use code_commit_engine::{Ended, Stored};
use code_commit_timeline::{Call, Change, Command, Contents, FileEdit, Run, RunView, Step, What};

use super::*;
use crate::diff::Diff;
use crate::text::Texts;

/// What a hostile name, model or build would like to do.
const HOSTILE: &str =
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u{202e}\u{1b}[2J";

fn stored(file: &str) -> Stored {
    Stored {
        file: file.to_owned(),
        bytes: 1,
        sha256: String::new(),
    }
}

fn run_of(what: Vec<What>) -> Run {
    let all = what
        .into_iter()
        .map(|what| Step {
            round: 1,
            from_ms: 1_000,
            to_ms: 3_000,
            what,
        })
        .collect();
    let steps = RunView {
        all,
        from_ms: 1_000,
        to_ms: 3_000,
        outcome: Some(code_commit_engine::Outcome::AttemptsUsedUp { rounds: 1 }),
        ..RunView::default()
    };
    Run {
        kind: "commit".into(),
        steps,
        ..Run::default()
    }
}

fn changed(path: &str, before: &str, after: &str) -> code_commit_engine::Changed {
    code_commit_engine::Changed {
        path: path.into(),
        action: code_commit_engine::Action::Write,
        before_sha256: Some(before.to_owned()),
        after_sha256: Some(after.to_owned()),
        created: false,
        before_mode: None,
        after_mode: None,
    }
}

fn contents(texts: &[&str]) -> Contents {
    Contents(
        texts
            .iter()
            .map(|text| ((*text).to_owned(), text.as_bytes().to_vec()))
            .collect::<BTreeMap<_, _>>(),
    )
}

fn diff(before: &str, after: &str) -> Diff {
    let edit = FileEdit {
        path: "a",
        before: Some(before),
        after: Some(after),
        ..FileEdit::default()
    };
    Diff::of(&edit, &contents(&[before, after]))
}

#[test]
fn whatever_a_run_brings_stays_text_wherever_it_is_shown() {
    let hostile = || HOSTILE.to_owned();
    let call = Call {
        role: Some(hostile()),
        prompt: Some(stored(HOSTILE)),
        answer: Some(stored("answer")),
        served_model: Some(hostile()),
        attempts: vec![code_commit_engine::Attempt {
            message: Some(HOSTILE.to_owned()),
            ..code_commit_engine::Attempt::default()
        }],
        failed: Some(code_commit_engine::Cause {
            code: hostile(),
            message: hostile(),
            remedy: Some(hostile()),
        }),
        ..Call::default()
    };
    let problem = code_commit_engine::Problem::new(HOSTILE, HOSTILE);
    let change = Change {
        is_refused: true,
        problems: vec![problem],
        ..Change::default()
    };
    let before = format!("{HOSTILE}\n");
    let after = format!("{HOSTILE}{HOSTILE}\n");
    let command = Command {
        name: hostile(),
        ended: Some(Ended::Exited(1)),
        output: vec!["output".to_owned()],
        changes: vec![changed(HOSTILE, &before, &after)],
        put_back: vec![hostile()],
        ..Command::default()
    };
    let mut run = run_of(vec![
        What::Call(Box::new(call)),
        What::Change(change),
        What::Command(command),
    ]);
    run.contents = contents(&[&before, &after]);
    run = Run {
        kind: hostile(),
        name: hostile(),
        model: hostile(),
        query: hostile(),
        verdict: hostile(),
        remark: Some(hostile()),
        ..run
    };
    let excerpt = Excerpt {
        head: hostile(),
        tail: hostile(),
        bytes: 1 << 30,
    };
    for html in [
        page_of(&run, &excerpt),
        all(HOSTILE, &[run.clone()], &|_| None),
    ] {
        let tags = ["<script>alert", "<img", "onerror=alert(2)>"];
        let found: Vec<_> = tags.iter().filter(|tag| html.contains(**tag)).collect();
        assert!(found.is_empty(), "{found:?}");
        assert!(
            !html.contains(['\u{202e}', '\u{1b}']),
            "invisible characters are shown as escapes"
        );
        assert!(html.contains("\\u{202e}"));
    }
}

#[test]
fn in_markdown_a_tag_is_text_or_code() {
    let query = HOSTILE.to_owned();
    let text = markdown(&Run {
        query: query.clone(),
        name: query.clone(),
        remark: Some(query),
        ..Run::default()
    });
    // Every second piece is a code span.
    for outside in text.split('`').step_by(2) {
        let tags = outside
            .match_indices('<')
            .map(|(at, _)| outside.as_bytes().get(at.wrapping_sub(1)));
        assert!(
            tags.into_iter().all(|before| before == Some(&b'\\')),
            "{text}"
        );
    }
    assert!(
        text.contains("\\<script\\>") && !text.contains(['\u{202e}', '\u{1b}']),
        "{text}"
    );
}

/// A text of which nothing is left out.
fn whole(text: impl Into<String>) -> Excerpt {
    let (head, bytes) = (text.into(), 1);
    Excerpt {
        head,
        bytes,
        ..Excerpt::default()
    }
}

/// The page's first screen.
fn header(html: &str) -> &str {
    html.split_once("</header>").unwrap().0
}

/// A run that failed after these steps.
fn failed(what: Vec<What>) -> Run {
    Run {
        is_good: Some(false),
        ..run_of(what)
    }
}

fn page_of(run: &Run, excerpt: &Excerpt) -> String {
    super::run(run, &|_file, _most| Some(excerpt.clone()))
}

#[test]
fn the_policy_allows_the_pages_own_style_and_script_and_nothing_else() {
    let policy = |html: &str| {
        let (_, rest) = html
            .split_once("Content-Security-Policy\" content=\"")
            .unwrap();
        rest.split_once("\">").unwrap().0.replace("&#39;", "'")
    };
    let of_run = policy(&super::run(&Run::default(), &|_, _| None));
    let hash = of_run
        .split_once("style-src ")
        .unwrap()
        .1
        .split_once(';')
        .unwrap()
        .0
        .to_owned();
    assert!(hash.starts_with("'sha256-") && hash.len() == 53, "{hash}");
    insta::assert_snapshot!(of_run.replace(&hash, "[STYLE]"), @"default-src 'none'; style-src [STYLE]; script-src 'none'; base-uri 'none'; form-action 'none'");
    let of_all = policy(&all("x", &[], &|_| None));
    assert!(of_all.contains("script-src 'sha256-"), "{of_all}");
    for html in [
        super::run(&Run::default(), &|_, _| None),
        all("x", &[], &|_| None),
    ] {
        assert!(
            !html.contains("style=\"") && !html.contains("http://") && !html.contains("https://"),
            "{html}"
        );
    }
}

#[test]
fn a_text_is_bounded_and_says_where_all_of_it_is() {
    let command = Command {
        name: "build".into(),
        output: vec!["1-build.txt".into()],
        ..Command::default()
    };
    let run = run_of(vec![What::Command(command)]);
    let ends = Excerpt {
        head: "first\n".repeat(1_000),
        tail: "last\n".repeat(1_000),
        bytes: 10_000_000,
    };
    let html = page_of(&run, &ends);
    assert!(html.contains("1-build.txt, 10.0 MB"));
    assert!(html.contains("10.0 MB left out here; all of it is in 1-build.txt"));
}

#[test]
fn a_page_that_is_full_names_the_files_that_it_does_not_show() {
    let command = |number: u32| {
        let output = vec![format!("{number}-build.txt")];
        What::Command(Command {
            name: "build".into(),
            output,
            ..Command::default()
        })
    };
    let run = run_of((1..=100).map(command).collect());
    let half = "x".repeat(64 << 10);
    let html = page_of(
        &run,
        &Excerpt {
            head: half.clone(),
            tail: half,
            bytes: 1 << 20,
        },
    );
    assert!(html.len() < 9 << 20, "{}", html.len());
    assert!(html.contains("100-build.txt, 1.0 MB") && html.contains("this page is full"));
}

/// An output as the page shows it.
fn shown(text: &str) -> String {
    let excerpt = whole(text);
    let read = |_: &str, _| Some(excerpt.clone());
    Texts::new(&read).folded("Output", "x", true).unwrap().head
}

#[test]
fn an_output_looks_as_on_a_terminal_but_for_its_colours() {
    assert_eq!(
        shown("a\u{1b}[1;31mred\u{1b}[0m \u{1b}[2Jb\u{1b}]0;title\u{7}c\r\nd"),
        "ared bc\nd\n"
    );
    assert_eq!(shown("10 %\r50 %\r100 %\r\ndone\r"), "100 %\ndone\n");
}

#[test]
fn of_a_failed_build_the_page_first_shows_the_lines_that_say_why() {
    let mut output: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
    output[3] = "not ok 1 - greets".to_owned();
    output[5] = "src/a.rs: error: no such name".to_owned();
    output[38] = "# fail 29".to_owned();
    let command = Command {
        name: "build".into(),
        ended: Some(Ended::Exited(1)),
        output: vec!["1-build.txt".into()],
        ..Command::default()
    };
    let run = Run {
        is_good: Some(false),
        verdict: "attempts used up".into(),
        ..run_of(vec![What::Command(command)])
    };
    let excerpt = whole(output.join("\n"));
    let html = page_of(&run, &excerpt);
    let (_, why) = html.split_once("aria-label=\"Why\">").unwrap();
    let (why, _) = why.split_once("</section>").unwrap();
    insta::assert_snapshot!(why.trim(), @r#"
    <p class="title">build: exit code 1</p>
    <ul class="reasons">
    </ul>
    <pre>not ok 1 - greets
    src/a.rs: error: no such name
    …
    line 28
    line 29
    line 30
    line 31
    line 32
    line 33
    line 34
    line 35
    line 36
    line 37
    # fail 29
    line 39</pre>
    "#);
}

#[test]
fn a_contract_that_failed_is_on_the_first_screen_and_a_list_without_an_entry_is_none() {
    let page = |list: &str| {
        let call = Call {
            role: Some("verifier".into()),
            failed_specs: Some(stored("failed_specs.md")),
            ..Call::default()
        };
        let run = failed(vec![What::Call(Box::new(call))]);
        let excerpt = whole(list);
        page_of(&run, &excerpt)
    };
    let html = page("SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 404\n");
    let header = header(&html);
    assert!(header.contains("INPUT: GET /\nOBSERVED: 404"), "{header}");
    assert!(html.contains("contracts failed"), "{html}");
    let html = page("Everything passed.\n");
    assert!(!html.contains("contracts failed") && !html.contains("Everything"));
}

#[test]
fn a_model_that_asks_instead_of_writing_is_quoted_on_the_first_screen() {
    let call = Call {
        answer: Some(stored("1-response.txt")),
        ..Call::default()
    };
    let problem = code_commit_engine::Problem::new("nothing-actionable", "no file");
    let change = Change {
        is_refused: true,
        problems: vec![problem],
        ..Change::default()
    };
    let run = failed(vec![What::Call(Box::new(call)), What::Change(change)]);
    let excerpt = whole("Which greeting do you mean?");
    let html = page_of(&run, &excerpt);
    let header = header(&html);
    assert!(header.contains("Which greeting do you mean?"), "{header}");
}

#[test]
fn what_ended_the_run_is_said_once() {
    let cause = || code_commit_engine::Cause {
        code: "quota".into(),
        message: "the quota is used up".into(),
        remedy: Some("wait".into()),
    };
    let call = Call {
        failed: Some(cause()),
        ..Call::default()
    };
    let mut run = Run {
        is_good: Some(false),
        remark: Some("the quota is used up".into()),
        ..run_of(vec![What::Call(Box::new(call))])
    };
    run.steps.outcome = Some(code_commit_engine::Outcome::ModelUnavailable {
        round: 1,
        cause: cause(),
    });
    let html = super::run(&run, &|_, _| None);
    let header = header(&html);
    assert_eq!(
        header.matches("the quota is used up").count(),
        1,
        "{header}"
    );
    assert!(header.contains("help: wait"), "{header}");
}

#[test]
fn a_long_diff_is_folded_and_a_title_is_whole() {
    let long: String = (0..60).map(|n| format!("{n}\n")).collect();
    assert!(diff("", &long).is_long() && !diff("a\n", "b\n").is_long());
    let query = format!("{} end", "word ".repeat(40));
    let run = Run {
        query: query.clone(),
        ..Run::default()
    };
    let html = super::run(&run, &|_, _| None);
    assert!(html.contains(&format!("<h1>{query}</h1>")), "{html}");
    assert!(!html.contains("id=\"query\""), "the title is all of it");
}

#[test]
fn what_nobody_would_see_is_shown_as_an_escape() {
    assert_eq!(
        code_commit_report::visible("a\u{202e}b\u{200b}\u{0}\n\tc"),
        "a\\u{202e}b\\u{200b}\\u{0}\n\tc"
    );
}

fn rows(diff: &Diff) -> String {
    let number = |of: Option<usize>| of.map_or("-".to_owned(), |of| of.to_string());
    let mut text = String::new();
    for row in &diff.rows {
        let pieces: String = row
            .pieces
            .iter()
            .map(|p| {
                let (is_strong, text) = p;
                if *is_strong {
                    format!("[{text}]")
                } else {
                    text.clone()
                }
            })
            .collect();
        text.push_str(&format!(
            "{} {} {} {pieces}\n",
            number(row.old),
            number(row.new),
            row.sign
        ));
    }
    text + &format!("{} {}", diff.added, diff.removed)
}

#[test]
fn a_diff_shows_what_differs_within_its_lines() {
    insta::assert_snapshot!(rows(&diff("one\nlet a = 1;\nend\n", "one\nlet a = 2;\nnew\nend\n")), @"
    1 1   one
    2 - − let a = [1;]
    - 2 + let a = [2;]
    - 3 + [new]
    3 4   end
    +2 −1
    ");
}

#[test]
fn lines_far_from_a_change_are_left_out() {
    let old: String = (0..40).map(|n| format!("{n}\n")).collect();
    let new = old.replace("5\n", "five\n").replace("\n30\n", "\nthirty\n");
    let diff = diff(&old, &new);
    assert!(diff.rows.iter().any(|row| row.sign == '…'));
    assert!(diff.rows.len() < 40);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let note = |before: &[u8], after: &[u8]| {
        let all =
            [("b", before), ("a", after)].map(|(hash, bytes)| (hash.to_owned(), bytes.to_vec()));
        let edit = FileEdit {
            path: "x",
            before: Some("b"),
            after: Some("a"),
            ..FileEdit::default()
        };
        Diff::of(&edit, &Contents(all.into_iter().collect()))
            .note
            .unwrap_or_default()
    };
    assert_eq!(note(b"a\n", b"\xff\xfe"), "not text");
    assert_eq!(
        note(b"a\n", &vec![b'x'; 2 << 20]),
        "too long to be compared here"
    );
    let many: String = (0..9_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(
        note(b"a\n", many.as_bytes()),
        "only the first 2000 lines of the diff are shown"
    );
    let unknown = FileEdit {
        path: "x",
        before: None,
        after: Some("?"),
        ..FileEdit::default()
    };
    assert_eq!(
        Diff::of(&unknown, &Contents::default()).note.unwrap(),
        "its content is not in the record"
    );
}

#[test]
fn the_list_sums_up_by_loop() {
    let call = |cost_usd| {
        What::Call(Box::new(Call {
            answer: Some(stored("a")),
            is_over: true,
            cost_usd,
            ..Call::default()
        }))
    };
    let good = Run {
        is_good: Some(true),
        ..run_of(vec![call(Some(0.25))])
    };
    let undone = Run {
        undone: true,
        ..good.clone()
    };
    let bad = failed(vec![call(None)]);
    let open = run_of(Vec::new());
    let html = all("project", &[good, undone, bad, open], &|_| None);
    let cell =
        |label: &str, value: &str| format!(r#"<td class="num" data-label="{label}">{value}</td>"#);
    for part in [
        [("Runs", "4"), ("Done", "1"), ("Failed", "1")],
        [("Failed", "1"), ("Undone", "1"), ("No verdict", "1")],
    ] {
        let cells: String = part
            .iter()
            .map(|(label, value)| cell(label, value))
            .collect();
        assert!(html.contains(&cells), "{cells}\n{html}");
    }
    assert!(
        html.contains("33 %"),
        "an undone run is none that was wanted\n{html}"
    );
    assert!(
        html.contains("<p>4 runs, cost at least $0.5000</p>"),
        "{html}"
    );
}
