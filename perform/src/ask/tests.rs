use logging::{Redactor, RunFolder};

use super::*;
use crate::{Past, Silent};
use engine::Line;

/// A call that should end early if the answer names a file that `forbid` refuses. Gives its record.
fn with_call(
    forbid: Option<&Guard>,
    check: impl FnOnce(&mut Call<'_, '_>),
) -> (tempfile::TempDir, RunFolder) {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let mut observer = Silent;
    let mut record = Record::begin(folder.clone(), &mut observer).unwrap();
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
        failed: None,
        bill: CallSpending { spending: &spending, forecast, model: model.id() },
        reserve: Reserve::hold(base.path()).unwrap(),
    });
    (base, folder)
}

#[test]
fn nothing_is_noted_behind_an_attempt_that_could_not_be() {
    let (_base, folder) = with_call(None, |call| {
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
    with_call(Some(&guard), |call| {
        assert!(!call.enough("One moment.\n"));
        call.progress(Progress::Restarted);
        assert!(!call.enough(shown), "a name inside of a longer fence is content");
        call.progress(Progress::Restarted);
        assert!(call.enough("^^^.git/config\n"));
    });
}
