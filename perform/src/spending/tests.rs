use llm::Scripted;
use llm::scripted::Entry;
use llm::{Blind, Money};

use super::*;
use engine::{Answered, Asked, Ended, Finish, Stored, Text, Unanswered};

fn flash() -> ModelId {
    "gemini-3.8-flash".parse().unwrap()
}

fn spending(budget: Budget) -> Spending {
    Spending::new(budget, Prices::built_in(), Day::try_from("2026-11-21".to_owned()).ok())
}

fn usd(usd: f64) -> Option<Money> {
    Money::from_usd(usd).ok()
}

/// A model with that name, which is never called.
struct Named(ModelId, Option<u64>);

impl Model for Named {
    fn id(&self) -> &ModelId {
        &self.0
    }

    fn call(&self, _: &Request<'_>, _: &mut dyn Watch) -> Result<llm::Reply, llm::CallError> {
        Err(llm::CallError::NothingLeft { given: 0 })
    }

    fn count_tokens(&self, _: &Request<'_>, _: &mut dyn Watch) -> Result<Option<u64>, llm::CallError> {
        Ok(self.1)
    }
}

/// The code of the limit that a prompt of this size would exceed, or `sent`.
fn ask(spending: &Spending, model: &dyn Model, bytes: usize) -> String {
    let prompt = "x".repeat(bytes);
    let mut request = Request { prompt: &prompt, ..Request::default() };
    spending
        .allow(model, &mut request, &mut Blind)
        .map_or_else(|error| cause(&error).code, |_| "sent".to_owned())
}

fn paid(input: u64, output: u64) -> Attempt {
    let usage = Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() };
    Attempt { spend: Spend::Usage, usage, ..Attempt::default() }
}

#[test]
fn each_limit_is_kept_before_a_call_is_sent() {
    let model = Named(flash(), None);
    let none = Budget::default();
    for (budget, bytes, expected) in [
        (none, 1 << 20, "sent"),
        (Budget { max_calls: Some(0), ..none }, 1, "limit-calls"),
        (Budget { max_tokens: Some(66_000), ..none }, 1, "sent"),
        (Budget { max_tokens: Some(66_000), ..none }, 1000, "limit-tokens"),
        (Budget { max_cost: usd(0.25), ..none }, 1, "sent"),
        (Budget { max_cost: usd(0.25), ..none }, 100_000, "limit-cost"),
        (Budget { max_time: Some(Duration::ZERO), ..none }, 1, "limit-time"),
    ] {
        assert_eq!(ask(&spending(budget), &model, bytes), expected, "{budget:?}");
    }
}

#[test]
fn the_service_is_asked_for_the_number_of_tokens_where_bytes_would_be_too_many() {
    let budget = Budget { max_tokens: Some(70_000), ..Budget::default() };
    assert_eq!(ask(&spending(budget), &Named(flash(), None), 9000), "limit-tokens");
    assert_eq!(ask(&spending(budget), &Named(flash(), Some(2000)), 9000), "sent");
}

#[test]
fn a_limit_on_money_needs_a_price_and_replies_from_a_file_cost_nothing() {
    let budget = Budget { max_cost: usd(1.0), ..Budget::default() };
    let local = Named("openai/llama".parse().unwrap(), None);
    assert_eq!(ask(&spending(budget), &local, 1), "limit-cost");
    assert_eq!(ask(&spending(budget), &Scripted::new(vec![Entry::default()]), 1), "sent");
}

#[test]
fn an_answer_is_bounded_by_what_is_left_where_nothing_else_bounds_it() {
    let spending = spending(Budget {
        max_tokens: Some(500),
        max_time: Some(Duration::from_mins(1)),
        ..Budget::default()
    });
    let mut request = Request { prompt: "x", time_left: Some(Duration::from_mins(10)), ..Request::default() };
    spending.allow(&Named("openai/llama".parse().unwrap(), None), &mut request, &mut Blind).unwrap();
    assert_eq!(request.max_output_tokens, Some(500 - 65));
    assert!(request.time_left.unwrap() <= Duration::from_mins(1));
}

#[test]
fn a_retry_is_made_only_where_there_is_something_left_for_it() {
    let spending = spending(Budget { max_calls: Some(2), ..Budget::default() });
    let forecast = Forecast::of(&Request { prompt: "x", ..Request::default() }, None, None);
    let bill = CallSpending { spending: &spending, forecast, model: &flash() };
    assert!(bill.allows_another(&paid(1, 1)));
    bill.add(&paid(1, 1));
    assert!(!bill.allows_another(&paid(1, 1)));
}

#[test]
fn a_run_that_goes_on_counts_what_it_used_before() {
    let lines = [
        asked(1),
        attempted(&paid(1000, 500)),
        answered(2000),
        Line::Built(Built {
            round: 1,
            ended: Ended::Exited(1),
            seal_broken: false,
            output: Text::in_file("f", ""),
            elapsed_ms: 1500,
            changes: Vec::new(),
            present: Vec::new(),
            put_back: Vec::new(),
            lack: None,
            ignored_bytes: 0,
        }),
        asked(2),
        asked(2),
        attempted(&paid(1000, 500)),
    ];
    let spending = Spending { since: None, ..spending(Budget::default()) };
    spending.count(&lines, &[&flash()]);
    let spent = spending.spent();
    // The first call of round 2 was killed: it counts as the most it can have used.
    assert_eq!(spent.calls, 3 + 1, "the last call has no answer either");
    assert_eq!(spent.time, Duration::from_millis(3500));
    assert!(spent.tokens > 2 * (1500 + 65_536), "{spent:?}");
}

#[test]
fn a_run_that_goes_on_counts_the_time_of_calls_without_an_answer_once() {
    let tried = |ms, wait_ms| attempted(&Attempt { duration_ms: ms, wait_ms, ..Attempt::default() });
    let cause = Cause { code: "c".to_owned(), message: String::new(), remedy: None };
    let unanswered = Line::Unanswered(Unanswered { round: 1, cause });
    let count = |lines: &[Line]| {
        let spending = Spending { since: None, ..spending(Budget::default()) };
        spending.count(lines, &[&flash()]);
        spending.spent().time.as_millis()
    };
    let resumed = Line::Resumed { kept: 0 };
    let failed = [asked(1), tried(1000, Some(200)), tried(30, None), unanswered.clone(), resumed.clone()];
    assert_eq!(count(&failed), 1230);
    // The answer's own time includes its attempts.
    let answered = [asked(1), tried(1000, Some(200)), tried(30, None), answered(1250)];
    assert_eq!(count(&answered), 1250);
    // A wait that nothing followed may have been cut short.
    assert_eq!(count(&[asked(1), tried(1000, Some(60_000)), resumed]), 1000);
    assert_eq!(count(&[asked(1), tried(7, None), asked(1), tried(8, None), unanswered]), 15);
}

fn stored(bytes: u64) -> Stored {
    Stored { file: "f".to_owned(), bytes, sha256: String::new() }
}

fn asked(round: u32) -> Line {
    Line::Asked(Asked { round, prompt: stored(10) })
}

fn attempted(attempt: &Attempt) -> Line {
    Line::Attempted(Attempted { round: 1, attempt: serde_json::to_value(attempt).unwrap() })
}

fn answered(elapsed_ms: u64) -> Line {
    Line::Answered(Answered {
        round: 1,
        reply: Text::in_file("f", "r"),
        raw: stored(1),
        finish: Finish("complete".into()),
        for_person: None,
        held_key: false,
        usage: engine::Usage::default(),
        served_model: None,
        cost_usd: None,
        elapsed_ms,
    })
}

#[test]
fn an_attempt_of_another_model_counts_at_its_price_and_a_lost_call_as_that_of_the_dearest() {
    let sonnet: ModelId = "claude-sonnet-4-6".parse().unwrap();
    let flash = flash();
    let models = [&flash, &sonnet];
    let attempted = |model: Option<&ModelId>| {
        let attempt = Attempt { model: model.map(ToString::to_string), ..paid(1_000_000, 0) };
        Line::Attempted(Attempted { round: 1, attempt: serde_json::to_value(attempt).unwrap() })
    };
    let cost = |lines: &[Line]| {
        let spending = spending(Budget::default());
        spending.count(lines, &models);
        spending.spent().cost.to_string()
    };
    assert_eq!(cost(&[asked(1), attempted(None), answered(1)]), "$0.75");
    assert_eq!(cost(&[asked(1), attempted(Some(&sonnet)), answered(1)]), "$3.00");
    let unpriced = spending(Budget::default());
    unpriced.count(&[asked(1)], &[&flash, &"openai/llama".parse().unwrap()]);
    assert_eq!((unpriced.spent().calls, unpriced.spent().unpriced), (1, 1));
}
