//! Edits as models send them, and what becomes of each: what was meant, or a refusal by name.
//!
//! `fixtures/sloppy.txt` holds them; `␍` stands for a carriage return, `⇥` for a tab, `␣` for a blank at the end of a line and
//! `⍽` for one that does not break.

use super::*;

const SLOPPY: &str = include_str!("../../../../fixtures/sloppy.txt");

/// Files by their path.
fn files(text: &str) -> Vec<(String, String)> {
    let file = |part: &str| {
        part.split_once('\n')
            .map(|(path, content)| (path.to_owned(), content.to_owned()))
    };
    text.split("--- file ").skip(1).filter_map(file).collect()
}

/// The code of the refusal, or the tree afterwards.
fn taken(before: &[(String, String)], reply: &str) -> Result<Vec<(String, String)>, String> {
    let top = tempfile::tempdir().unwrap();
    let rules = rules(top.path());
    before
        .iter()
        .for_each(|(path, content)| write(&rules, path, content.as_bytes()));
    let undo = top.path().join("undo");
    match rules
        .take_in(&answer(reply, &Finish::Complete), Shown::Tree, &undo)
        .unwrap()
    {
        Intake::Rejected { problems, .. } => Err(problems.first().unwrap().code.clone()),
        Intake::Applied { .. } => {
            let entries = std::fs::read_dir(&rules.root)
                .unwrap()
                .map(|entry| entry.unwrap().file_name());
            let mut paths: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
            paths.sort();
            let content = |path: String| {
                (
                    path.clone(),
                    std::fs::read_to_string(rules.root.join(path)).unwrap(),
                )
            };
            Ok(paths.into_iter().map(content).collect())
        }
    }
}

#[test]
fn every_sloppy_edit_becomes_what_was_meant_or_is_refused_by_name() {
    let cases: Vec<&str> = SLOPPY.split("=== ").skip(1).collect();
    let (mut landed, mut wrong) = (0, Vec::new());
    for case in &cases {
        let (name, rest) = case.split_once('\n').unwrap();
        let rest = rest
            .replace('␍', "\r")
            .replace('⇥', "\t")
            .replace('␣', " ")
            .replace('⍽', "\u{a0}");
        let (before, rest) = rest.split_once("--- reply\n").unwrap();
        let (reply, expected) = match rest.split_once("--- refused ") {
            Some((reply, code)) => (reply, Err(code.trim_end().to_owned())),
            None => rest
                .split_once("--- lands\n")
                .map(|(reply, after)| (reply, Ok(files(after))))
                .unwrap(),
        };
        landed += usize::from(expected.is_ok());
        let taken = taken(&files(before), reply);
        if taken != expected {
            wrong.push(format!(
                "{name}\n    wanted {expected:?}\n    got    {taken:?}\n"
            ));
        }
    }
    eprintln!(
        "{} sloppy replies: {landed} land as they were meant, {} are refused",
        cases.len(),
        cases.len() - landed
    );
    assert!(
        wrong.is_empty() && cases.len() >= 80,
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.concat()
    );
}
