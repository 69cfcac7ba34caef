use apply::Changed;
use guard::Policy;

use super::*;

/// The rules of the commit loops, for an empty tree in `top`.
pub(crate) fn rules(top: &Path) -> Rules {
    let root = top.join("tree");
    std::fs::create_dir(&root).unwrap();
    let guard = Guard::open(&root, Policy::commit()).unwrap();
    let lock = Lock::acquire(&top.join("state"), "a test").unwrap();
    Rules { root, guard, lock }
}

#[test]
fn a_model_is_told_of_many_problems_and_how_many_more_there_are() {
    let problem = |n: usize| Problem::new("dot-git", format!("problem {n}"));
    let Intake::Rejected { problems, report, .. } =
        Intake::rejected((0..5000).map(problem).collect(), Vec::new())
    else {
        panic!("nothing was rejected")
    };
    assert_eq!((problems.len(), report.lines().count()), (5000, 1 + MOST_TOLD + 1));
    assert!(report.ends_with("- problem 199\n- and 4800 more of the kind.\n"), "{report}");
}

fn answer(reply: &str, finish: &Finish) -> Reply {
    Reply { finish: crate::translate::finish(finish).0, ..crate::reply_of(reply) }
}

/// The codes of the refusals; the tree must still be empty.
fn rejected(rules: &Rules, answer: &Reply) -> Vec<String> {
    let undo = rules.root.with_file_name("undo");
    let Intake::Rejected { problems, report, .. } = rules.take_in(answer, &undo).unwrap() else {
        panic!("it was applied")
    };
    assert_eq!(report.lines().count(), 1 + problems.len(), "{report}");
    assert!(std::fs::read_dir(&rules.root).unwrap().next().is_none() && !undo.exists());
    problems.into_iter().map(|problem| problem.code).collect()
}

#[test]
fn a_reply_that_was_ended_early_is_not_used_whatever_the_guard_has_to_say_of_it() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let refused = answer("^^^a.txt\na\n^^^end\n^^^.git/config\nx", &Finish::Stopped);
    assert_eq!(rejected(&rules, &refused), ["dot-git"]);
    let whole = answer("^^^a.txt\na\n^^^end\n", &Finish::Stopped);
    assert_eq!(rejected(&rules, &whole), ["reply-stopped"]);
}

#[test]
fn a_reply_that_was_cut_off_is_told_in_which_file() {
    let top = tempfile::tempdir().unwrap();
    let cut = answer("^^^a.txt\na\n^^^end\n^^^src/b.rs\nfn", &Finish::Truncated);
    let Intake::Rejected { report, .. } = rules(top.path()).take_in(&cut, &top.path().join("undo")).unwrap()
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
        match rules.take_in(&answer, &top.path().join("undo")).unwrap() {
            Intake::Rejected { report, .. } => report,
            Intake::Applied { .. } => panic!("it was applied"),
        }
    };
    let told = report("I would add a function.\n");
    assert!(told.starts_with(NOT_USED) && told.ends_with(&format!("\n\n{FORM}")), "{told}");
    assert!(!report("^^^a\nx\n").contains(FORM));
}

#[test]
fn a_reply_with_a_key_is_not_used() {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    let text = "^^^a.txt\na\n^^^end\n";
    let with_key = Reply { held_key: true, ..answer(text, &Finish::Complete) };
    assert_eq!(rejected(&rules, &with_key), ["key-in-reply"]);
    let previewed = rules.preview(&with_key, &parser::parse(text).unwrap()).unwrap();
    assert_eq!(previewed.unwrap_err()[0].code, "key-in-reply");
}

#[test]
fn a_preview_says_what_would_be_done() {
    // The mode depends on the system.
    let without_mode = |change: Changed| Changed { after_mode: None, ..change };
    for text in [
        "^^^a.txt\na\n^^^end\n^^^b/c.txt\nc\n^^^end\n",
        "^^^gone.txt\n^^^delete\n",
        "$$$start\nall is well\n$$$end\n",
        "^^^a.txt\na\n^^^end\n^^^../b.txt\nb\n^^^end\n^^^.git/config\nc\n^^^end\n",
    ] {
        let top = tempfile::tempdir().unwrap();
        let rules = rules(top.path());
        let answer = answer(text, &Finish::Complete);
        let previewed = rules.preview(&answer, &parser::parse(text).unwrap()).unwrap();
        let done = match rules.take_in(&answer, &top.path().join("undo")).unwrap() {
            Intake::Applied { applied, .. } => Ok(applied.changes.into_iter().map(without_mode).collect()),
            Intake::Rejected { problems, .. } => Err(problems),
        };
        assert_eq!(previewed.map(|applied| applied.changes), done, "{text}");
    }
}
