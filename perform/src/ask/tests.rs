use engine::Line;
use llm::{Attempt, Progress};
use logging::{Redactor, RunFolder};

use super::*;
use crate::record::RecordError;
use crate::{Observer, Past, Silent};

/// A call that should end early if the answer names a file that `forbid` refuses. Gives its record.
fn with_call(
    forbid: Option<&Guard>,
    observer: &mut dyn Observer,
    check: impl FnOnce(&mut Call<'_, '_>),
) -> (tempfile::TempDir, RunFolder) {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let mut record = Record::begin(folder.clone(), observer).unwrap();
    let spending = Spending::default();
    let forecast = llm::Forecast::of(&Request::default(), None, None);
    let model = llm::Scripted::new(Vec::new());
    check(&mut Call {
        first: model.id(),
        round: 1,
        record: &mut record,
        cancel: &Cancel::new().unwrap(),
        began: now(),
        forbid,
        openers: Openers::default(),
        is_streamed: true,
        has_text: false,
        failed: None,
        bill: CallSpending { spending: &spending, forecast, model: model.id() },
        reserve: Reserve::hold(base.path()).unwrap(),
    });
    (base, folder)
}

#[test]
fn nothing_is_noted_behind_an_attempt_that_could_not_be() {
    let (_base, folder) = with_call(None, &mut Silent, |call| {
        let attempt = |number| Attempt { number, ..Attempt::default() };
        call.attempt(&attempt(1));
        let source = serde_json::from_str::<u8>("").unwrap_err();
        call.failed = Some(RecordError::OtherVersion { path: "journal".into(), line: 2, source });
        call.attempt(&attempt(3));
        assert!(call.failed.is_some());
    });
    let lines = Past::read(folder.path()).unwrap().lines;
    let [Line::Attempted(only)] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(only.attempt["number"], 1);
}

#[test]
fn an_answer_that_begins_anew_is_read_from_its_beginning() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::open(root.path(), guard::Policy::commit()).unwrap();
    let shown = "^^^^guide.md\nWrite so:\n^^^.git/config\n^^^end\n^^^^end\n";
    with_call(Some(&guard), &mut Silent, |call| {
        assert!(!call.enough("One moment.\n"));
        call.progress(Progress::Restarted);
        assert!(!call.enough(shown), "a name inside of a longer fence is content");
        call.progress(Progress::Restarted);
        assert!(call.enough("^^^.git/config\n"));
    });
}

/// Whether the model was shown as thinking, for each piece of its answer.
#[derive(Default)]
struct Shown(Vec<bool>);

impl Observer for Shown {
    fn see(&mut self, event: &Event<'_>) {
        if let Event::Receiving { is_thinking, .. } = event {
            self.0.push(*is_thinking);
        }
    }
}

#[test]
fn a_model_thinks_until_its_text_begins_and_again_when_it_begins_anew() {
    let mut shown = Shown::default();
    with_call(None, &mut shown, |call| {
        for progress in [
            Progress::Bytes(10),
            Progress::Bytes(20),
            Progress::Text("The"),
            Progress::Bytes(30),
            Progress::Restarted,
            Progress::Bytes(10),
        ] {
            call.progress(progress);
        }
        call.is_streamed = false;
        call.progress(Progress::Bytes(20));
    });
    assert_eq!(shown.0, [true, true, false, true, false]);
}
