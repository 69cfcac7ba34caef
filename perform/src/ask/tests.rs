use std::cell::RefCell;
use std::rc::Rc;

use code_commit_engine::Event;
use code_commit_llm::scripted::Entry;
use code_commit_llm::{self as llm, Attempt, Retry};
use code_commit_logging::{Redactor, RunFolder};

use super::*;
use crate::record::RecordError;
use crate::{Observer, Past, Silent};

/// A call, and its record.
fn with_call(
    observer: impl Observer + 'static,
    check: impl FnOnce(&mut Call<'_>),
) -> (tempfile::TempDir, RunFolder) {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let mut record = Record::begin(folder.clone(), observer).unwrap();
    let spending = Spending::default();
    let forecast = code_commit_llm::Forecast::of(&Request::default(), None, None);
    let model = code_commit_llm::Scripted::new(Vec::new());
    check(&mut Call {
        first: model.id(),
        round: 1,
        record: &mut record,
        cancel: &Cancel::new().unwrap(),
        began: now(),
        is_streamed: true,
        arriving: Arriving::default(),
        failed: None,
        bill: CallSpending {
            spending: &spending,
            forecast,
            model: model.id(),
        },
        reserve: Reserve::hold(base.path()).unwrap(),
        partial: Partial::of_round(1),
    });
    (base, folder)
}

#[test]
fn nothing_is_noted_behind_an_attempt_that_could_not_be() {
    let (_base, folder) = with_call(Silent, |call| {
        let attempt = |number| Attempt {
            number,
            ..Attempt::default()
        };
        call.attempt(&attempt(1));
        let source = serde_json::from_str::<u8>("").unwrap_err();
        call.failed = Some(RecordError::OtherVersion {
            path: "journal".into(),
            line: 2,
            source,
        });
        call.attempt(&attempt(3));
        assert!(call.failed.is_some());
    });
    let lines = Past::read(folder.path()).unwrap().lines;
    let [Event::Attempted(only)] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(only.attempt.number, 1);
}

/// Whether the model was shown as thinking, for each piece of its answer.
#[derive(Default)]
struct Shown(Vec<bool>);

impl Observer for Shown {
    fn see(&mut self, event: &Progress<'_>) {
        if let Progress::Receiving { is_thinking, .. } = event {
            self.0.push(*is_thinking);
        }
    }
}

#[test]
fn a_model_thinks_until_its_text_begins_and_again_when_it_begins_anew() {
    let shown = Rc::new(RefCell::new(Shown::default()));
    with_call(Rc::clone(&shown), |call| {
        for progress in [
            llm::Progress::Bytes(10),
            llm::Progress::Bytes(20),
            llm::Progress::Text("The"),
            llm::Progress::Bytes(30),
            llm::Progress::Restarted,
            llm::Progress::Bytes(10),
        ] {
            call.progress(progress);
        }
        call.is_streamed = false;
        call.progress(llm::Progress::Bytes(20));
    });
    assert_eq!(shown.borrow().0, [true, true, false, false, true, false]);
}

/// Sees whether the wait is counted down.
#[derive(Default)]
struct Countdown(bool);

impl Observer for Countdown {
    fn see(&mut self, event: &Progress<'_>) {
        self.0 |= matches!(event, Progress::CountingDown { .. });
    }
}

/// Asks a model that is out of quota for 20 ms. Gives the answer, the journal, and whether a wait was shown.
fn ask_out_of_quota(wait: Duration, named: Option<f64>) -> (AskAnswer, Vec<Event>, bool) {
    let quota = Entry {
        error: Some(code_commit_llm::scripted::Failure::RateLimited),
        retry_after_s: named,
        ..Entry::default()
    };
    let well = Entry {
        text: "words".to_owned(),
        ..Entry::default()
    };
    let once = Retry {
        max_tries: 1,
        ..Retry::default()
    };
    let model = code_commit_llm::Scripted::new(vec![quota, well]).with_retry(once);
    let asking = Asking {
        wait,
        ..Asking::default()
    };
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let shown = Rc::new(RefCell::new(Countdown::default()));
    let mut record = Record::begin(folder.clone(), Rc::clone(&shown)).unwrap();
    let files = Files {
        prompt: "p".to_owned(),
        raw: "raw".to_owned(),
        reply: "r".to_owned(),
    };
    let question = Question {
        round: 1,
        prompt: "hi",
        stable: 0,
        system: 0,
        schema: None,
        files: &files,
    };
    let cancel = Cancel::new().unwrap();
    let asker = Asker {
        model: &model,
        asking: &asking,
        cancel: &cancel,
    };
    let answer = asker.ask(&question, &mut record).unwrap();
    drop(record);
    let is_shown = shown.borrow().0;
    (answer, Past::read(folder.path()).unwrap().lines, is_shown)
}

#[test]
fn a_quota_that_is_reset_soon_enough_is_waited_for_and_the_record_says_so() {
    let (answer, lines, is_shown) = ask_out_of_quota(Duration::from_hours(1), Some(0.02));
    assert!(
        matches!(answer, AskAnswer::Answered(_)) && is_shown,
        "{answer:?}"
    );
    let warned =
        |line: &Event| matches!(line, Event::Warned { warning } if warning.code == "out-of-quota");
    assert!(lines.iter().any(warned), "{lines:?}");
}

#[test]
fn a_quota_that_is_reset_too_late_ends_the_call_with_the_time_if_the_service_names_it() {
    for (named, wait) in [
        (Some(7200.0), 0),
        (Some(7200.0), 3600),
        (None, 0),
        (None, 30),
    ] {
        let (answer, _, is_shown) = ask_out_of_quota(Duration::from_secs(wait), named);
        let AskAnswer::Unanswered(Unanswered { cause, .. }) = answer else {
            panic!("{answer:?}")
        };
        let remedy = cause.remedy.unwrap();
        assert_eq!(
            remedy.starts_with("try again at 20"),
            named.is_some(),
            "{remedy}"
        );
        assert_eq!(
            remedy.ends_with(" UTC, or let the run wait with --wait 2h1m"),
            named.is_some(),
            "{remedy}"
        );
        assert!(!is_shown);
    }
}
