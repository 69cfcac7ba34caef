use logging::{Redactor, RunFolder};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::*;
use crate::{Outcome, Silent, outline_of};

/// A fact for which there is no room where it is that of a first attempt.
#[derive(Debug, PartialEq, Deserialize)]
struct Row(CallFact);

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_first = matches!(&self.0, CallFact::Attempted { attempt, .. } if attempt.number == 1);
        if is_first { Err(S::Error::custom("no room")) } else { self.0.serialize(serializer) }
    }
}

impl From<CallFact> for Row {
    fn from(fact: CallFact) -> Self {
        Self(fact)
    }
}

impl Facts for Row {
    fn ended(_: Outcome) -> Self {
        unreachable!("no run ends here")
    }

    fn texts_mut(&mut self) -> Vec<&mut crate::Text> {
        self.0.texts_mut()
    }

    fn durability(&self) -> Durability {
        self.0.durability()
    }
}

/// A call, which is to end early where the answer names a file that `forbid` refuses. Gives its record.
fn with_call(
    forbid: Option<&Guard>,
    check: impl FnOnce(&mut Call<'_, '_, Row>),
) -> (tempfile::TempDir, RunFolder) {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let mut observer = Silent;
    let mut record = Record::<Row>::begin(folder.clone(), &mut observer).unwrap();
    let spending = Spending::default();
    let forecast = llm::Forecast::of(&Request::default(), None, None);
    let model = llm::Scripted::new(Vec::new());
    check(&mut Call {
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
        for number in 1..=2 {
            call.attempt(&Attempt { number, ..Attempt::default() });
        }
        assert!(call.failed.is_some());
    });
    assert_eq!(outline_of::<Row>(&folder).unwrap(), []);
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
