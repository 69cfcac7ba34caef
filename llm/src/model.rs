//! What a model is: a request, one call; and models that are asked in turn.

use crate::{CallError, ModelId, Reply, Request, Watch};

/// Something that replies to prompts. Every implementation does its own retries and reports each
/// HTTP attempt to the [`Watch`]; its result is final.
pub trait Model: Send + Sync {
    /// The requested model. The one that really answered is [`Reply::served_model`].
    fn id(&self) -> &ModelId;

    /// Asks once. A refusal or a cut-off answer is a [`Reply`] (see [`Reply::finish`]), not an error.
    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError>;

    /// Tells the model that a resumed run has already used this many outcomes. Models with fixed
    /// outcomes skip them; others ignore it.
    fn pass_over(&self, _attempts: usize) {}

    /// The exact number of input tokens, if the service can count them without billing; otherwise
    /// `None`.
    fn count_tokens(
        &self,
        _request: &Request<'_>,
        _watch: &mut dyn Watch,
    ) -> Result<Option<u64>, CallError> {
        Ok(None)
    }

    /// Who else may be asked; see [`choices`](crate::choices).
    fn list(&self) -> Option<&List> {
        None
    }

    /// Checks that key and model work, with the cheapest request that the service offers.
    fn check(&self, _watch: &mut dyn Watch) -> Result<(), CallError> {
        Ok(())
    }
}

/// Models that are asked in turn. As a [`Model`] it is the first of them; callers that can change to another ask
/// [`choices`].
pub struct List {
    first: Box<dyn Model>,
    others: Vec<Box<dyn Model>>,
    /// One for each repair; the last one also for all further repairs.
    stronger: Vec<Box<dyn Model>>,
}

impl List {
    /// `first`, then `others` where it cannot answer; for repairs `stronger`.
    pub fn new(
        first: Box<dyn Model>,
        others: Vec<Box<dyn Model>>,
        stronger: Vec<Box<dyn Model>>,
    ) -> Self {
        Self {
            first,
            others,
            stronger,
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Model> {
        [&self.first]
            .into_iter()
            .chain(&self.others)
            .chain(&self.stronger)
            .map(|model| &**model)
    }

    /// The model for a round, from 1, and those after it. If a stronger model cannot answer, the next stronger one does, then the others in
    /// their order.
    fn of_round(&self, round: u32) -> (&dyn Model, Vec<&dyn Model>) {
        let repairs = usize::try_from(round.saturating_sub(1)).unwrap_or(usize::MAX);
        let last = self.stronger.len().saturating_sub(1);
        // Before the first repair none is skipped, and none is taken.
        let skipped = if repairs == 0 {
            self.stronger.len()
        } else {
            (repairs - 1).min(last)
        };
        let stronger = self.stronger.iter().skip(skipped);
        let mut models = stronger
            .chain([&self.first])
            .chain(&self.others)
            .map(|model| &**model);
        (models.next().unwrap_or(&*self.first), models.collect())
    }
}

/// The model to ask in a round, from 1, and those to ask in turn if it [cannot
/// answer](CallError::asks_for_another_model).
pub fn choices(model: &dyn Model, round: u32) -> (&dyn Model, Vec<&dyn Model>) {
    model
        .list()
        .map_or_else(|| (model, Vec::new()), |list| list.of_round(round))
}

/// Every model that a run may ask, the first one first.
pub fn all_of(model: &dyn Model) -> Vec<&dyn Model> {
    model
        .list()
        .map_or_else(|| vec![model], |list| list.all().collect())
}

impl Model for List {
    fn id(&self) -> &ModelId {
        self.first.id()
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        self.first.call(request, watch)
    }

    fn pass_over(&self, attempts: usize) {
        self.first.pass_over(attempts);
    }

    fn count_tokens(
        &self,
        request: &Request<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Option<u64>, CallError> {
        self.first.count_tokens(request, watch)
    }

    fn check(&self, watch: &mut dyn Watch) -> Result<(), CallError> {
        self.first.check(watch)
    }

    fn list(&self) -> Option<&List> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(ModelId);

    impl Model for Named {
        fn id(&self) -> &ModelId {
            &self.0
        }

        fn call(&self, _: &Request<'_>, _: &mut dyn Watch) -> Result<Reply, CallError> {
            Err(CallError::NothingLeft { given: 0 })
        }

        fn count_tokens(
            &self,
            _: &Request<'_>,
            _: &mut dyn Watch,
        ) -> Result<Option<u64>, CallError> {
            Ok(Some(7))
        }

        fn check(&self, _: &mut dyn Watch) -> Result<(), CallError> {
            Err(CallError::Cancelled)
        }
    }

    fn named(name: &str) -> Box<dyn Model> {
        Box::new(Named(ModelId::new("test", name).unwrap()))
    }

    fn asked(stronger: &[&str], round: u32) -> String {
        let stronger = stronger.iter().map(|name| named(name)).collect();
        let list = List::new(named("a"), vec![named("b")], stronger);
        let (first, others) = choices(&list, round);
        [vec![first], others]
            .concat()
            .iter()
            .map(|model| model.id().name())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_list_answers_as_its_first_model() {
        let list = List::new(named("a"), vec![], vec![]);
        let (request, mut watch) = (Request::default(), crate::watch::Blind);
        assert_eq!(list.id().name(), "a");
        assert_eq!(list.count_tokens(&request, &mut watch).unwrap(), Some(7));
        let [called, checked] = [
            list.call(&request, &mut watch).map(drop),
            list.check(&mut watch),
        ];
        assert!(matches!(called, Err(CallError::NothingLeft { .. })));
        assert!(matches!(checked, Err(CallError::Cancelled)));
    }

    #[test]
    fn each_repair_has_a_stronger_model_and_the_last_of_them_the_rest() {
        assert_eq!(
            (1..4).map(|round| asked(&[], round)).collect::<Vec<_>>(),
            ["a b"; 3]
        );
        let rounds: Vec<_> = (1..5).map(|round| asked(&["x", "y"], round)).collect();
        assert_eq!(rounds, ["a b", "x y a b", "y a b", "y a b"]);
    }

    #[test]
    fn all_models_of_a_list_are_known_and_the_first_stays_the_first() {
        let list = List::new(named("a"), vec![named("b")], vec![named("x")]);
        assert_eq!(
            all_of(&list)
                .iter()
                .map(|model| model.id().name())
                .collect::<String>(),
            "abx"
        );
    }

    #[test]
    fn a_model_alone_is_the_only_choice() {
        let model = named("a");
        assert!(choices(&*model, 3).1.is_empty() && all_of(&*model).len() == 1);
    }
}
