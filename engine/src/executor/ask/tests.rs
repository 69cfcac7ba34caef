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

#[test]
fn nothing_is_noted_behind_an_attempt_that_could_not_be() {
    let base = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
    let mut observer = Silent;
    let mut record = Record::<Row>::begin(folder.clone(), &mut observer).unwrap();
    let spending = Spending::default();
    let forecast = llm::Forecast::of(&Request::default(), None, None);
    let model = llm::Scripted::new(Vec::new());
    let mut call = Call {
        round: 1,
        record: &mut record,
        cancel: &Cancel::new().unwrap(),
        began: now(),
        forbid: None,
        openers: Openers::default(),
        failed: None,
        bill: CallSpending { spending: &spending, forecast, model: model.id() },
    };
    for number in 1..=2 {
        call.attempt(&Attempt { number, ..Attempt::default() });
    }
    assert!(call.failed.is_some());
    assert_eq!(outline_of::<Row>(&folder).unwrap(), []);
}
