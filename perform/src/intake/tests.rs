use std::collections::BTreeMap;

use code_commit_apply::Changed;
use code_commit_guard::Policy;
use code_commit_prompt::rollup::Builder;

use super::*;

mod sloppy;

/// The rules of the commit loops, for an empty tree in `top`.
pub(crate) fn rules(top: &Path) -> Rules {
    let root = top.join("tree");
    std::fs::create_dir(&root).unwrap();
    let guard = Guard::open(&root, Policy::commit()).unwrap();
    let lock = Lock::acquire(&top.join("state"), "a test").unwrap().into();
    Rules {
        root,
        guard: guard.into(),
        lock,
    }
}

#[test]
fn a_model_is_told_of_many_problems_and_how_many_more_there_are() {
    let problem = |n: usize| Problem::new("dot-git", format!("problem {n}"));
    let Intake::Rejected {
        problems, report, ..
    } = Intake::rejected((0..5000).map(problem).collect(), Vec::new())
    else {
        panic!("nothing was rejected")
    };
    assert_eq!(
        (problems.len(), report.lines().count()),
        (5000, 1 + MOST_TOLD + 1)
    );
    assert!(
        report.ends_with("- problem 199\n- and 4800 more of this kind.\n"),
        "{report}"
    );
}

fn answer(reply: &str, finish: &Finish) -> Reply {
    Reply {
        finish: finish.clone(),
        ..Reply::of_text(reply)
    }
}

/// The codes of the refusals; the tree must still be empty.
fn rejected(rules: &Rules, answer: &Reply) -> Vec<String> {
    let undo = rules.root.with_file_name("undo");
    let Intake::Rejected {
        problems, report, ..
    } = rules.take_in(answer, Shown::Tree, &undo).unwrap()
    else {
        panic!("it was applied")
    };
    assert_eq!(report.lines().count(), 1 + problems.len(), "{report}");
    assert!(std::fs::read_dir(&rules.root).unwrap().next().is_none() && !undo.exists());
    problems.into_iter().map(|problem| problem.code).collect()
}

#[test]
fn a_reply_that_was_cut_off_is_told_in_which_file() {
    let top = tempfile::tempdir().unwrap();
    let cut = answer("^^^a.txt\na\n^^^end\n^^^src/b.rs\nfn", &Finish::Truncated);
    let Intake::Rejected { report, .. } = rules(top.path())
        .take_in(&cut, Shown::Tree, &top.path().join("undo"))
        .unwrap()
    else {
        panic!("it was applied")
    };
    assert!(
        report.ends_with("The last file that it began is `src/b.rs`: write less in one reply.\n"),
        "{report}"
    );
}

#[test]
fn a_reply_that_was_cut_off_is_not_used_although_its_fences_close() {
    let top = tempfile::tempdir().unwrap();
    let cut = answer("^^^a.txt\na\n^^^end\n", &Finish::Truncated);
    assert_eq!(rejected(&rules(top.path()), &cut), ["reply-truncated"]);
}

#[test]
fn a_model_that_answers_in_prose_is_shown_the_form_once_more() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let report = |reply: &str| {
        let answer = answer(reply, &Finish::Complete);
        match rules
            .take_in(&answer, Shown::Tree, &top.path().join("undo"))
            .unwrap()
        {
            Intake::Rejected { report, .. } => report,
            Intake::Applied { .. } => panic!("it was applied"),
        }
    };
    let told = report("I would add a function.\n");
    assert!(
        told.starts_with(NOT_USED) && told.ends_with(&format!("\n\n{FORM}")),
        "{told}"
    );
    assert!(!report("^^^a\nx\n").contains(FORM));
}

#[test]
fn a_reply_with_a_key_is_not_used() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let text = "^^^a.txt\na\n^^^end\n";
    let with_key = Reply {
        held_key: true,
        ..answer(text, &Finish::Complete)
    };
    assert_eq!(rejected(&rules, &with_key), ["key-in-reply"]);
    let previewed = rules
        .preview(
            &with_key,
            &code_commit_parser::parse(text).unwrap(),
            Shown::Tree,
        )
        .unwrap();
    assert_eq!(previewed.unwrap_err()[0].code, "key-in-reply");
}

#[test]
fn a_preview_says_what_would_be_done() {
    // The mode depends on the system.
    let without_mode = |change: Changed| Changed {
        after_mode: None,
        ..change
    };
    for text in [
        "^^^a.txt\na\n^^^end\n^^^b/c.txt\nc\n^^^end\n",
        "^^^gone.txt\n^^^delete\n",
        "$$$start\nall is well\n$$$end\n",
        "^^^a.txt\na\n^^^end\n^^^../b.txt\nb\n^^^end\n^^^.git/config\nc\n^^^end\n",
        &edit("old.txt", "old\n", "new\n"),
        &edit("old.txt", "young\n", "new\n"),
    ] {
        let top = tempfile::tempdir().unwrap();
        let rules = rules(top.path());
        write(&rules, "old.txt", b"old\n");
        let answer = answer(text, &Finish::Complete);
        let previewed = rules
            .preview(
                &answer,
                &code_commit_parser::parse(text).unwrap(),
                Shown::Tree,
            )
            .unwrap();
        let done = match rules
            .take_in(&answer, Shown::Tree, &top.path().join("undo"))
            .unwrap()
        {
            Intake::Applied { applied, .. } => Ok(applied),
            Intake::Rejected { problems, .. } => Err(problems),
        };
        let [previewed, done] = [previewed, done].map(|taken| {
            taken.map(|applied| {
                applied
                    .changes
                    .into_iter()
                    .map(without_mode)
                    .collect::<Vec<_>>()
            })
        });
        assert_eq!(previewed, done, "{text}");
    }
}

const OLD: &str = "fn a() {\n    one();\n}\n\nfn b() {\n    two();\n}\n";

fn edit(path: &str, search: &str, replace: &str) -> String {
    format!("^^^edit {path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n^^^end\n")
}

/// Pairs of a path and its new content, or of a code and its message.
type Pairs = Vec<(String, String)>;

fn edited(rules: &Rules, reply: &str, shown: Shown<'_>) -> Result<Pairs, Pairs> {
    let undo = rules.root.with_file_name("undo");
    match rules
        .take_in(&answer(reply, &Finish::Complete), shown, &undo)
        .unwrap()
    {
        Intake::Applied { edited, .. } => Ok(edited),
        Intake::Rejected { problems, .. } => {
            assert!(!undo.exists());
            Err(problems
                .into_iter()
                .map(|problem| (problem.code, problem.message))
                .collect())
        }
    }
}

fn write(rules: &Rules, path: &str, content: &[u8]) {
    let path = rules.root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), content).unwrap();
}

#[test]
fn an_edit_becomes_the_whole_content_of_its_file() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "src/a.rs", OLD.as_bytes());
    let reply = edit("src/a.rs", "    two();\n", "    three();\n") + "^^^b.rs\nb\n^^^end\n";
    let new = OLD.replace("two", "three");
    assert_eq!(
        edited(&rules, &reply, Shown::Tree),
        Ok(vec![("src/a.rs".to_owned(), new.clone())])
    );
    assert_eq!(
        std::fs::read_to_string(rules.root.join("src/a.rs")).unwrap(),
        new
    );
    // Killed before it was recorded: taken in again, it tells the same.
    let again = edited(&rules, &reply, Shown::Tree);
    assert_eq!(again, Ok(vec![("src/a.rs".to_owned(), new)]));
}

#[test]
fn one_hunk_that_does_not_fit_refuses_the_reply_and_all_of_them_are_told() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "a.rs", OLD.as_bytes());
    write(&rules, "latin", b"caf\xe9\n");
    let reply = [
        edit("a.rs", "    two()\n", ""),
        "^^^b.rs\nb\n^^^end\n".to_owned(),
        edit("none.rs", "x\n", ""),
        edit("latin", "x\n", ""),
    ];
    let problems = edited(&rules, &reply.concat(), Shown::Tree).unwrap_err();
    let told: String = problems
        .iter()
        .map(|(code, message)| format!("{code}: {message}\n"))
        .collect();
    insta::assert_snapshot!(told, @"
    edit-misses: `a.rs`, hunk 1: the file does not have its SEARCH lines. Nearest are those from line 6 on (`-` yours, `+` the file's):
        -    two()
        +    two();
    edit-of-no-file: `none.rs` does not exist, so it has no lines to replace; give its whole content.
    edit-of-no-text: `latin` is not UTF-8 text, so its lines cannot be replaced.
    ");
    let twice = edited(&rules, &edit("a.rs", "}\n", ""), Shown::Tree).unwrap_err();
    insta::assert_snapshot!(twice[0].1, @"`a.rs`, hunk 1: the file has its SEARCH lines more than once, from line 3 and from line 7; add lines around them that occur once.");
    assert!(!rules.root.join("b.rs").exists());
}

#[test]
fn an_edit_reads_no_file_that_may_not_be_written() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "build.sh", b"exit 1\n");
    std::fs::create_dir(top.path().join("outside")).unwrap();
    std::fs::hard_link(rules.root.join("build.sh"), rules.root.join("link.sh")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", rules.root.join("passwd")).unwrap();
    for path in [
        "build.sh",
        "link.sh",
        "passwd",
        "../outside/a",
        "/etc/passwd",
        ".git/config",
    ] {
        let problems = edited(&rules, &edit(path, "x\n", ""), Shown::Tree).unwrap_err();
        assert!(
            !problems.iter().any(|(code, _)| code.starts_with("edit-")),
            "{path}: {problems:?}"
        );
    }
}

/// A roll-up of one file.
fn code_of(path: &str, content: &str) -> String {
    let mut code = Builder::default();
    code.add(path, content.as_bytes()).unwrap();
    code.finish()
}

/// The files that a run has changed, each with the content that was shown last.
fn seen_as(files: &[(&str, &str)]) -> BTreeMap<String, Option<String>> {
    let seen = |(path, content): &(&str, &str)| {
        (
            (*path).to_owned(),
            Some(code_commit_logging::sha256_hex(content.as_bytes())),
        )
    };
    files.iter().map(seen).collect()
}

#[test]
fn only_a_file_that_the_model_was_shown_is_edited_and_nothing_is_told_of_others() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "server.pem", b"secret\n");
    let (code, seen) = (code_of("a.rs", OLD), BTreeMap::new());
    let shown = Shown::Prompts {
        codebase: &code,
        seen: &seen,
        need_bytes: 0,
    };
    for (path, search) in [
        ("server.pem", "secret\n"),
        ("server.pem", "guess\n"),
        ("none.pem", "x\n"),
    ] {
        let told = edited(&rules, &edit(path, search, "open\n"), shown).unwrap_err();
        let message = format!(
            "`{path}` was not shown, so its lines cannot be edited; give its whole content."
        );
        assert_eq!(told, [("edit-unseen".to_owned(), message)]);
    }
    assert_eq!(
        std::fs::read_to_string(rules.root.join("server.pem")).unwrap(),
        "secret\n"
    );
}

#[test]
fn the_whole_content_of_a_file_that_was_only_listed_is_refused_and_the_next_prompt_shows_it() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let long = "line\n".repeat(302);
    write(&rules, "long.rs", long.as_bytes());
    write(&rules, "server.pem", b"secret\n");
    write(&rules, "empty.rs", b"");
    let listed = code_of("a.rs", OLD)
        + "--- FILE LIST: these files exist, too, and are not shown ---\nlong.rs\n";
    let seen = BTreeMap::new();
    let undo = top.path().join("undo");
    let take = |codebase: &str, reply: &str| {
        let shown = Shown::Prompts {
            codebase,
            seen: &seen,
            need_bytes: 0,
        };
        rules
            .take_in(&answer(reply, &Finish::Complete), shown, &undo)
            .unwrap()
    };
    for (reply, refused) in [
        (
            "^^^long.rs\nline\nline\nline\n^^^end\n",
            "`long.rs` was not shown whole; all of it follows: give its change again.",
        ),
        (
            &edit("long.rs", "line\n", ""),
            "`long.rs` was not shown whole; all of it follows: give its change again.",
        ),
        (
            "^^^server.pem\n^^^end\n",
            "`server.pem` was not shown whole, so it may not be replaced; leave it unchanged.",
        ),
    ] {
        let Intake::Rejected {
            problems, shown, ..
        } = take(&listed, reply)
        else {
            panic!("{reply}");
        };
        assert_eq!(
            problems
                .iter()
                .map(|problem| &*problem.message)
                .collect::<Vec<_>>(),
            [refused]
        );
        let follows = refused
            .contains("long.rs")
            .then(|| ("long.rs".to_owned(), long.clone()));
        assert_eq!(shown, Vec::from_iter(follows));
    }
    let harmless = "^^^empty.rs\nx\n^^^end\n^^^new.rs\nx\n^^^end\n";
    assert!(matches!(take(&listed, harmless), Intake::Applied { .. }));
    std::fs::remove_dir_all(&undo).unwrap();
    write(&rules, "latin.txt", b"caf\xe9\n");
    let of_a_script = "what a script has put together";
    let replaces = "^^^long.rs\nx\n^^^end\n^^^latin.txt\ncafe\n^^^end\n";
    let Intake::Applied { warnings, .. } = take(of_a_script, replaces) else {
        panic!("it does not say what it shows");
    };
    let told: Vec<&str> = warnings.iter().map(|warning| &*warning.code).collect();
    assert_eq!(told, ["shrunk", "not-text"]);
}

#[test]
fn a_file_is_edited_only_as_the_model_was_shown_it_last() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let code = code_of("a.rs", "one\ntwo\n");
    let take = |on_disk: &str, seen: &[(&str, &str)]| {
        write(&rules, "a.rs", on_disk.as_bytes());
        let seen = seen_as(seen);
        let shown = Shown::Prompts {
            codebase: &code,
            seen: &seen,
            need_bytes: 0,
        };
        let taken = edited(&rules, &edit("a.rs", "two\n", "2\n"), shown);
        let _ = std::fs::remove_dir_all(top.path().join("undo"));
        taken
            .map(|edited| edited[0].1.clone())
            .map_err(|problems| problems[0].0.clone())
    };
    let stale = Err("stale-base".to_owned());
    assert_eq!(take("one\ntwo\n", &[]).as_deref(), Ok("one\n2\n"));
    assert_eq!(take("zero\ntwo\n", &[]), stale);
    assert_eq!(
        take("zero\ntwo\n", &[("a.rs", "zero\ntwo\n")]).as_deref(),
        Ok("zero\n2\n")
    );
    // The code is what the first prompt showed; the run has changed the file since.
    assert_eq!(take("one\ntwo\n", &[("a.rs", "zero\ntwo\n")]), stale);
}

#[test]
fn what_a_killed_run_has_made_of_a_file_is_told_whatever_became_of_it_since() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "a.rs", OLD.as_bytes());
    let reply = edit("a.rs", "    two();\n", "    three();\n");
    let first = edited(&rules, &reply, Shown::Tree).unwrap();
    write(&rules, "a.rs", b"another text\n");
    assert_eq!(edited(&rules, &reply, Shown::Tree), Ok(first));
    write(&rules, "../undo/0.old", b"another pre-image\n");
    let broken = rules.take_in(
        &answer(&reply, &Finish::Complete),
        Shown::Tree,
        &top.path().join("undo"),
    );
    assert!(matches!(
        broken,
        Err(Fault::Undo(code_commit_apply::UndoError::Damaged { .. }))
    ));
}

#[test]
fn a_reply_may_ask_for_files_of_the_list_and_for_no_others() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    for (path, text) in [
        ("long.rs", "long\n"),
        ("b.rs", "b\n"),
        ("server.pem", "secret\n"),
    ] {
        write(&rules, path, text.as_bytes());
    }
    let code = code_of("a.rs", OLD)
        + "--- FILE LIST: these files exist, too, and are not shown ---\n  long.rs  5 bytes\n  server.pem  7 bytes\n";
    let shown = Shown::Prompts {
        codebase: &code,
        seen: &BTreeMap::new(),
        need_bytes: 100,
    };
    let missing: String = (0..20)
        .map(|number| format!("^^^need {number}.rs\n"))
        .collect();
    let reply = format!("^^^need long.rs\n^^^need b.rs\n^^^need server.pem\n{missing}");
    let undo = top.path().join("undo");
    let taken = rules.take_in(&answer(&reply, &Finish::Complete), shown, &undo);
    let Intake::Rejected { shown, report, .. } = taken.unwrap() else {
        panic!("nothing is written");
    };
    assert_eq!(shown, [("long.rs".to_owned(), "long\n".to_owned())]);
    assert!(
        report.ends_with("- 3 more cannot be shown: the limit is 20 files.\n"),
        "{report}"
    );
}

#[test]
fn the_work_for_a_reply_full_of_hunks_is_bounded() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    write(&rules, "a.rs", "fn line() {}\n".repeat(80_000).as_bytes());
    let hunk = |number| {
        format!("<<<<<<< SEARCH\nfn line() {{}};\n=======\n// {number}\n>>>>>>> REPLACE\n")
    };
    let reply = |hunks: usize| {
        let hunks: String = (0..hunks).map(hunk).collect();
        format!("^^^edit a.rs\n{hunks}^^^end\n")
    };
    let codes = |told: &Pairs| {
        told.iter()
            .map(|(code, _)| code.clone())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let told = edited(&rules, &reply(20_000), Shown::Tree).unwrap_err();
    assert_eq!(
        (told.len(), codes(&told)),
        (1, ["edit-too-many".to_owned()].into())
    );
    let told = edited(&rules, &reply(edits::MOST_HUNKS), Shown::Tree).unwrap_err();
    assert_eq!(
        (told.len(), codes(&told)),
        (edits::MOST_HUNKS, ["edit-misses".to_owned()].into())
    );
    let quoted = told
        .iter()
        .filter(|(_, message)| message.contains("Nearest are those"))
        .count();
    assert_eq!(quoted, 5);
    let huge = edit("a.rs", &"fn line() {}; ".repeat(200_000), "");
    assert_eq!(
        edited(
            &rules,
            &huge.replace("; =======", ";\n======="),
            Shown::Tree
        )
        .unwrap_err()
        .len(),
        1
    );
}
