//! Records of each format: what this version can do with those of older ones, and that its own is what the newest
//! fixture shows.
//!
//! After a change of the format, raise `Format::CURRENT`, then record a fixture of it with `RECORD_FIXTURES=1`.

mod stages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::scenes::files;
use crate::scenes::program::Ran;
use crate::versions::stages::{LOOPS, Stage};

const JOURNAL: &str = "events.jsonl";

fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/records")
}

/// The folders of all formats, oldest first.
fn formats() -> Vec<PathBuf> {
    files::entries(records())
}

fn newest() -> PathBuf {
    formats().pop().unwrap()
}

/// A run of this loop and format in a project of its own.
struct Kept {
    stage: Stage,
    run: PathBuf,
    bundle: PathBuf,
    is_newest: bool,
}

impl Kept {
    fn of(format: &Path, of: &str) -> Self {
        let stage = Stage::of(of);
        let run = stage.put(&format.join(of));
        Self {
            stage,
            run,
            bundle: format.join(of).join("bundle"),
            is_newest: format == newest(),
        }
    }

    fn name(&self) -> &str {
        self.run.file_name().unwrap().to_str().unwrap()
    }

    fn ran(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.stage.command(args))
    }

    /// As if it had been killed just before its end.
    fn cut_off(&self) {
        let journal = files::text(&self.run.join(JOURNAL));
        let (whole, _) = journal.trim_end().rsplit_once('\n').unwrap();
        fs::write(self.run.join(JOURNAL), format!("{whole}\n")).unwrap();
        match &self.stage {
            // The next command restores the tree of a killed order.
            Stage::Order(scene) => drop(scene.project.git(&["restore", "."]).unwrap()),
            Stage::Phase(scene) => fs::remove_file(scene.project(".abl/state.json")).unwrap(),
            Stage::Commit(_) | Stage::Spec(_) => {}
        }
    }
}

fn each(check: impl Fn(&Kept, &str)) {
    for format in formats() {
        LOOPS
            .iter()
            .for_each(|of| check(&Kept::of(&format, of), of));
    }
}

/// One line says why, one what to do.
#[track_caller]
fn is_refused(ran: &Ran, why: &str, help: &str) {
    let lines: Vec<&str> = ran.err.lines().collect();
    let [.., error, hint] = &lines[..] else {
        panic!("{ran}")
    };
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(error.starts_with("error: ") && error.contains(why), "{ran}");
    assert!(hint.starts_with(" help: ") && hint.contains(help), "{ran}");
}

#[test]
fn runs_of_every_format_are_shown() {
    each(|kept, of| {
        let page = kept.ran(&["page", kept.name()]);
        assert!(
            page.code == Some(0) && page.out.contains(kept.name()),
            "{of}: {page}"
        );
        assert!(!page.out.contains("damaged"), "{of}: {page}");
        for args in [&["show", kept.name()][..], &["runs"]] {
            let ran = kept.ran(args);
            assert!(
                ran.code == Some(0) && ran.out.contains(kept.name()),
                "{of}: {ran}"
            );
        }
    });
}

#[test]
fn bundles_of_every_format_are_verified_and_made() {
    each(|kept, of| {
        let own = kept.run.with_file_name("own");
        let exported = kept.ran(&["export", kept.name(), "-o", own.to_str().unwrap()]);
        assert_eq!(exported.code, Some(0), "{of}: {exported}");
        for bundle in [&own, &kept.bundle] {
            let verified = kept.ran(&["verify", bundle.to_str().unwrap()]);
            assert!(
                verified.code == Some(0) && verified.out.starts_with("intact: "),
                "{of}: {verified}"
            );
        }
    });
}

#[test]
fn undo_of_an_older_format_is_refused_and_names_the_way_out() {
    each(|kept, of| {
        let file = kept.stage.root().join("src/greet.sh");
        let before = fs::read(&file).ok();
        let ran = kept.ran(&["undo", kept.name()]);
        match (of, kept.is_newest) {
            ("commit" | "order", true) => {
                assert_eq!(ran.code, Some(0), "{ran}");
                assert_ne!(fs::read(&file).ok(), before);
            }
            ("commit" | "order", false) => {
                is_refused(&ran, "an older version", "git");
                assert_eq!(fs::read(&file).ok(), before);
            }
            _ => is_refused(&ran, &format!("{of} loop"), "git"),
        }
    });
}

#[test]
fn a_run_of_an_older_format_is_not_continued() {
    each(|kept, of| {
        kept.cut_off();
        let resume = match of {
            "phase" => Ran::of(&mut kept.stage.work(&[])),
            _ => kept.ran(&["resume", kept.name()]),
        };
        if !kept.is_newest {
            is_refused(&resume, "an older version", "--new begins anew");
            let anew = Ran::of(&mut kept.stage.work(&["--new"]));
            assert_eq!(anew.code, Some(0), "{of}: {anew}");
        }
    });
}

/// A record of the future is neither read nor called damaged.
#[test]
fn a_newer_format_is_named() {
    for of in LOOPS {
        let kept = Kept::of(&newest(), of);
        let plan = kept.run.join("run.json");
        let text = files::text(&plan);
        let newer = text.replacen("\"record_format\": 2", "\"record_format\": 3", 1);
        assert_ne!(newer, text);
        fs::write(&plan, newer).unwrap();
        let bundle = kept.run.with_file_name("own");
        for args in [
            &["page", kept.name()][..],
            &["export", kept.name(), "-o", bundle.to_str().unwrap()],
        ] {
            is_refused(&kept.ran(args), "a newer version", "");
        }
    }
}

/// The places of all members of a value, with their types. Numbers of elements and names that differ do not count.
fn shape(place: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                shape(&format!("{place}.{name}"), value, into);
            }
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|value| shape(&format!("{place}[]"), value, into)),
        Value::Null => {}
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            let kind = if other.is_string() {
                "text"
            } else if other.is_number() {
                "number"
            } else {
                "boolean"
            };
            into.insert(format!("{place}: {kind}"));
        }
    }
}

/// Of every file of a run that this program reads again.
fn shape_of(run: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, text) in files::named(run) {
        if Path::new(&name)
            .extension()
            .is_some_and(|kind| kind == "json")
            && !name.ends_with("response.json")
        {
            shape(&name, &serde_json::from_str(&text).unwrap(), &mut found);
        }
        if name == JOURNAL {
            for line in text.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let what = line["fact"]["what"].as_str().unwrap();
                shape(&format!("{name} {what}"), &line, &mut found);
            }
        }
    }
    found
}

#[test]
fn a_changed_format_has_a_new_number_and_a_fixture() {
    for of in LOOPS {
        let fresh = tempfile::tempdir().unwrap();
        Stage::of(of).record(fresh.path());
        let run = |kept: &Path| files::entries(kept.join("run")).pop().unwrap();
        let plan: Value =
            serde_json::from_str(&files::text(&run(fresh.path()).join("run.json"))).unwrap();
        let fixture = records()
            .join(format!("v{}", plan["record_format"]))
            .join(of);
        if std::env::var_os("RECORD_FIXTURES").is_some() && !fixture.exists() {
            files::copy(fresh.path(), &fixture);
        }
        assert!(
            fixture.exists(),
            "record a fixture of the new format: RECORD_FIXTURES=1"
        );
        assert_eq!(fixture, newest().join(of));
        let (now, then) = (shape_of(&run(fresh.path())), shape_of(&run(&fixture)));
        let differs: Vec<&String> = now.symmetric_difference(&then).collect();
        assert!(
            differs.is_empty(),
            "{of}: the format of a record has changed: raise Format::CURRENT and record its fixture: {differs:#?}"
        );
    }
}
