use std::collections::BTreeMap;

use super::*;
use crate::{Ask, AskAnswer, Cause, Durability, Keep, Kept, Stamp, Stamped, Stored, Unanswered};

/// Performs by counting, and keeps what it records.
#[derive(Debug, Default)]
struct Counting {
    performed: u32,
    journal: Vec<Recorded>,
    texts: BTreeMap<String, String>,
    ended: Option<Outcome>,
}

impl World for Counting {
    type Fault = std::io::Error;

    fn record(&mut self, entry: &Recorded, _durability: Durability) -> std::io::Result<()> {
        self.journal.push(entry.clone());
        Ok(())
    }

    fn fetch(&mut self, text: &mut Text) -> std::io::Result<()> {
        let found = self
            .texts
            .get(&text.stored.file)
            .ok_or(std::io::ErrorKind::NotFound)?;
        text.fill(found.as_str().into());
        Ok(())
    }

    fn fetch_output(&mut self, text: &mut Text) -> std::io::Result<()> {
        self.fetch(text)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.texts
            .values()
            .find(|text| Digest::of(text) == *digest)
            .cloned()
    }

    fn end(&mut self, outcome: &Outcome) -> std::io::Result<()> {
        self.ended = Some(outcome.clone());
        Ok(())
    }
}

impl Live<Stamp> for Counting {
    fn perform(&mut self, _: &Stamp) -> std::io::Result<Stamped> {
        self.performed += 1;
        Ok(Stamped {
            at: self.performed.to_string(),
        })
    }
}

impl Live<Ask> for Counting {
    fn perform(&mut self, ask: &Ask) -> std::io::Result<AskAnswer> {
        let cause = Cause {
            code: "x".into(),
            message: "y".into(),
            remedy: None,
        };
        Ok(AskAnswer::Unanswered(Unanswered {
            round: ask.round,
            cause,
        }))
    }
}

impl Live<Keep> for Counting {
    fn perform(&mut self, keep: &Keep) -> std::io::Result<Kept> {
        self.texts.insert(keep.file.clone(), keep.text.to_string());
        let Digest { bytes, sha256 } = Digest::of(&keep.text);
        Ok(Kept {
            stored: Stored {
                file: keep.file.clone(),
                bytes,
                sha256,
            },
        })
    }
}

fn ask(prompt: &str) -> Ask {
    Ask {
        round: 2,
        prompt: prompt.into(),
        stable: 0,
        system: 0,
    }
}

/// A run that stamps, stores a prompt and asks it.
fn a_run(harness: &mut Journaled<Counting>, prompt: &str) -> Result<String, Stop<std::io::Error>> {
    let at = harness.perform(Stamp)?.at;
    harness.perform(Keep {
        file: "prompt".into(),
        text: prompt.into(),
    })?;
    harness.perform(ask(prompt))?;
    Ok(at)
}

fn recorded(prompt: &str) -> Counting {
    let mut harness = Journaled::new(Counting::default(), []);
    let done = Outcome::Done { rounds: 2 };
    let ended = harness.run(|harness| {
        assert_eq!(a_run(harness, prompt)?, "1");
        Ok(done.clone())
    });
    assert_eq!(ended.unwrap(), done);
    let world = harness.into_world();
    assert_eq!(world.ended, Some(done));
    world
}

#[test]
fn a_run_that_goes_on_performs_only_what_the_record_does_not_hold() {
    let before = recorded("p");
    for held in 0..=3 {
        let answers = before.journal[..held].to_vec();
        let world = Counting {
            performed: 6,
            texts: before.texts.clone(),
            ..Counting::default()
        };
        let mut harness = Journaled::new(world, answers);
        let at = a_run(&mut harness, "p").unwrap();
        assert_eq!(at, if held == 0 { "7" } else { "1" });
        assert_eq!(harness.world().journal.len(), 3 - held);
    }
}

#[test]
fn the_journal_holds_digests_and_no_long_text() {
    let Recorded {
        kind,
        request,
        answer,
    } = &recorded("a long prompt").journal[2];
    insta::assert_snapshot!(format!("{kind}\n{request}\n{answer}"), @r#"
    ask
    {"prompt":{"bytes":13,"sha256":"0491f17d8d916a42457a3d8b8fa4942cee1d70ccb8bae8d17dc3431f26d9e85f"},"round":2}
    {"cause":{"code":"x","message":"y","remedy":null},"round":2,"what":"unanswered"}
    "#);
}

#[test]
fn the_first_request_that_differs_is_named_with_the_line_that_differs() {
    let before = recorded("one\ntwo\n");
    let journal = before.journal.clone();
    let mut harness = Journaled::new(before, journal);
    harness.perform(Stamp).unwrap();
    let stop = harness
        .perform(Keep {
            file: "prompt".into(),
            text: "one\nthree\n".into(),
        })
        .unwrap_err();
    insta::assert_snapshot!(stop, @"an artifact of round 0 differs: recorded `two`, now `three`");
    let stop = harness.perform(Stamp).unwrap_err();
    insta::assert_snapshot!(stop, @r#"the next request of round 0 differs: recorded `ask {"prompt":{"bytes":8,"sha256":"c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"},"round":2}`, now `stamp`"#);
}

#[test]
fn a_record_that_holds_more_than_the_run_asks_for_is_of_another_run() {
    let before = recorded("p");
    let mut harness = Journaled::new(Counting::default(), before.journal);
    let stop = harness
        .run(|_| Ok(Outcome::Done { rounds: 1 }))
        .unwrap_err();
    insta::assert_snapshot!(stop, @r#"the end of round 0 differs: recorded `stamp`, now `end {"outcome":"done","rounds":1}`"#);
    assert_eq!(harness.into_world().ended, None);
}

/// The recorded and the current text, as displayed.
fn difference(recorded: &str, now: &str) -> (String, String) {
    let found = Difference::between(2, "the prompt", recorded, now);
    (found.recorded, found.now)
}

#[test]
fn the_first_difference_is_shown_from_the_start_of_its_line() {
    let (recorded, now) = difference("the same\nof both: red\n", "the same\nof both: blue\n");
    assert_eq!(
        (recorded.as_str(), now.as_str()),
        ("of both: red", "of both: blue")
    );
    assert_eq!(difference("a\nb\n", "a\n"), ("b".to_owned(), String::new()));
}

#[test]
fn of_a_long_line_only_what_stands_around_the_difference_is_shown() {
    let long = "the same again and again, ".repeat(20);
    let (recorded, now) = difference(&format!("{long}red"), &format!("{long}blue"));
    assert_eq!(
        (recorded.as_str(), now.as_str()),
        ("me again and again, red", "me again and again, blue")
    );
    let (recorded, _) = difference(&"ä".repeat(900), "ö");
    assert_eq!(recorded.chars().count(), SHOWN);
}

#[test]
fn a_difference_inside_of_a_character_does_not_cut_it() {
    assert_eq!(difference("ä", "ö"), ("ä".to_owned(), "ö".to_owned()));
    assert_eq!(difference("xä", "xö"), ("xä".to_owned(), "xö".to_owned()));
}
