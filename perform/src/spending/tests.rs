use code_commit_llm::Scripted;
use code_commit_llm::scripted::Entry;
use code_commit_llm::{Blind, Money};

use super::*;
use serde_json::json;

use code_commit_engine::{
    Answered, Asked, Attempted, Built, Ended, Finish, Problem, Stored, Text, Unanswered,
};

fn flash() -> ModelId {
    "gemini-3.8-flash".parse().unwrap()
}

fn spending(budget: Budget) -> Spending {
    Spending::new(budget, Prices::built_in(), "2026-11-21".parse().ok())
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

    fn call(
        &self,
        _: &Request<'_>,
        _: &mut dyn Watch,
    ) -> Result<code_commit_llm::Reply, code_commit_llm::CallError> {
        Err(code_commit_llm::CallError::NothingLeft { given: 0 })
    }

    fn count_tokens(
        &self,
        _: &Request<'_>,
        _: &mut dyn Watch,
    ) -> Result<Option<u64>, code_commit_llm::CallError> {
        Ok(self.1)
    }
}

/// The code of the limit that a prompt of this size would exceed, or `sent`.
fn ask(spending: &Spending, model: &dyn Model, bytes: usize) -> String {
    let prompt = "x".repeat(bytes);
    let mut request = Request {
        prompt: &prompt,
        ..Request::default()
    };
    spending
        .allow(model, &mut request, &mut Blind)
        .map_or_else(|error| cause(&error).code, |_| "sent".to_owned())
}

fn paid(input: u64, output: u64) -> Attempt {
    let usage = Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    };
    Attempt {
        spend: Spend::Usage,
        usage,
        ..Attempt::default()
    }
}

fn calls(most: u64) -> Budget {
    Budget {
        max_calls: Some(most),
        ..Budget::default()
    }
}

fn tokens(most: u64) -> Budget {
    Budget {
        max_tokens: Some(most),
        ..Budget::default()
    }
}

fn cost(most: f64) -> Budget {
    Budget {
        max_cost: usd(most),
        ..Budget::default()
    }
}

fn request() -> Request<'static> {
    Request {
        prompt: "x",
        ..Request::default()
    }
}

#[test]
fn each_limit_is_kept_before_a_call_is_sent() {
    let model = Named(flash(), None);
    let none = Budget::default();
    let no_time = Budget {
        max_time: Some(Duration::ZERO),
        ..none
    };
    for (budget, bytes, expected) in [
        (none, 1 << 20, "sent"),
        (calls(0), 1, "limit-calls"),
        (tokens(66_000), 1, "sent"),
        (tokens(66_000), 1000, "limit-tokens"),
        (cost(0.25), 1, "sent"),
        (cost(0.25), 100_000, "limit-cost"),
        (no_time, 1, "limit-time"),
    ] {
        assert_eq!(
            ask(&spending(budget), &model, bytes),
            expected,
            "{budget:?}"
        );
    }
}

#[test]
fn the_service_is_asked_for_the_number_of_tokens_where_bytes_would_be_too_many() {
    let budget = tokens(70_000);
    assert_eq!(
        ask(&spending(budget), &Named(flash(), None), 9000),
        "limit-tokens"
    );
    assert_eq!(
        ask(&spending(budget), &Named(flash(), Some(2000)), 9000),
        "sent"
    );
}

#[test]
fn a_limit_on_money_needs_a_price_and_replies_from_a_file_cost_nothing() {
    let budget = cost(1.0);
    let local = Named("openai/llama".parse().unwrap(), None);
    assert_eq!(ask(&spending(budget), &local, 1), "limit-cost");
    assert_eq!(
        ask(&spending(budget), &Scripted::new(vec![Entry::default()]), 1),
        "sent"
    );
}

#[test]
fn an_answer_is_bounded_by_what_is_left_where_nothing_else_bounds_it() {
    let spending = spending(Budget {
        max_tokens: Some(500),
        max_time: Some(Duration::from_mins(1)),
        ..Budget::default()
    });
    let mut request = Request {
        prompt: "x",
        time_left: Some(Duration::from_mins(10)),
        ..Request::default()
    };
    spending
        .allow(
            &Named("openai/llama".parse().unwrap(), None),
            &mut request,
            &mut Blind,
        )
        .unwrap();
    assert_eq!(request.max_output_tokens, Some(500 - 65));
    assert!(request.time_left.unwrap() <= Duration::from_mins(1));
}

#[test]
fn a_retry_is_made_only_where_there_is_something_left_for_it() {
    let spending = spending(calls(2));
    let forecast = Forecast::of(&request(), None, None);
    let bill = CallSpending {
        spending: &spending,
        forecast,
        model: &flash(),
    };
    assert!(bill.allows_another(&paid(1, 1)));
    bill.add(&paid(1, 1));
    assert!(!bill.allows_another(&paid(1, 1)));
}

#[test]
fn a_lost_attempt_counts_at_the_price_of_the_longest_answer() {
    for model in ["claude-opus-4-8", "gemini-3.8-flash", "gpt-6-sol"] {
        let spending = spending(cost(10.0));
        let model = Named(model.parse().unwrap(), None);
        let mut request = request();
        let forecast = spending.allow(&model, &mut request, &mut Blind).unwrap();
        let bill = CallSpending {
            spending: &spending,
            forecast,
            model: model.id(),
        };
        let lost = Attempt {
            spend: Spend::Unknown,
            ..Attempt::default()
        };
        assert!(bill.allows_another(&lost), "{forecast:?}");
        bill.add(&lost);
        assert_eq!(spending.spent().unpriced, 0, "{forecast:?}");
        assert_eq!(ask(&spending, &model, 1), "sent", "{forecast:?}");
    }
}

#[test]
fn a_limit_that_bounds_the_answer_bounds_what_a_lost_attempt_counts() {
    let spending = spending(cost(1.0));
    let spending = Spending {
        prices: unbounded(),
        ..spending
    };
    let mut request = request();
    let model = Named("gemini/local".parse().unwrap(), None);
    let forecast = spending.allow(&model, &mut request, &mut Blind).unwrap();
    assert!(
        forecast
            .cost
            .is_some_and(|cost| cost <= Money::from_usd(1.0).unwrap()),
        "{forecast:?}"
    );
}

/// A price that does not say how long an answer may be.
fn unbounded() -> Prices {
    Prices::parse("[[model]]\nprefix = \"local\"\ninput = 1.0\noutput = 2.0\n").unwrap()
}

#[test]
fn a_run_that_goes_on_counts_what_it_used_before() {
    let lines = [
        asked(1),
        attempted(&paid(1000, 500)),
        answered(2000),
        Event::Built(Built {
            round: 1,
            ended: Ended::Exited(1),
            seal_broken: false,
            output: Text::in_file("f", ""),
            elapsed_ms: 1500,
            changes: Vec::new(),
            present: Vec::new(),
            put_back: Vec::new(),
            ignored_bytes: 0,
        }),
        asked(2),
        asked(2),
        attempted(&paid(1000, 500)),
    ];
    let spending = Spending {
        since: None,
        ..spending(Budget::default())
    };
    spending.count(&lines, &flash());
    let spent = spending.spent();
    // The first call of round 2 was killed: it counts as the most it can have used. The last one has told its usage.
    assert_eq!((spent.calls, spent.tokens), (3, 1500 + 70_000 + 1500));
    assert_eq!(spent.time, Duration::from_millis(3500));
}

#[test]
fn an_attempt_whose_record_cannot_be_read_counts_as_the_most_it_can_have_used() {
    for attempt in [
        json!("damaged"),
        json!({"spend": 7}),
        json!({"error": "idle", "wait_ms": 5}),
        json!({}),
    ] {
        let lines = [
            asked(1),
            attempted(&Attempt::recorded(attempt).unwrap()),
            answered(10),
        ];
        let spending = spending(Budget::default());
        spending.count(&lines, &flash());
        let spent = spending.spent();
        assert_eq!(
            (spent.calls, spent.tokens, spent.cost),
            (1, 70_000, usd(0.25).unwrap()),
            "{lines:?}"
        );
    }
}

#[test]
fn a_run_that_goes_on_counts_the_time_of_calls_without_an_answer_once() {
    let tried = |ms, wait_ms| {
        attempted(&Attempt {
            duration_ms: ms,
            wait_ms,
            ..Attempt::default()
        })
    };
    let cause = Cause {
        code: "c".to_owned(),
        message: String::new(),
        remedy: None,
    };
    let unanswered = Event::Unanswered(Unanswered { round: 1, cause });
    let count = |lines: &[Event]| {
        let spending = Spending {
            since: None,
            ..spending(Budget::default())
        };
        spending.count(lines, &flash());
        spending.spent().time.as_millis()
    };
    let resumed = Event::Resumed { kept: 0 };
    let failed = [
        asked(1),
        tried(1000, Some(200)),
        tried(30, None),
        unanswered.clone(),
        resumed.clone(),
    ];
    assert_eq!(count(&failed), 1230);
    // The answer's own time includes its attempts.
    assert_eq!(
        count(&[
            asked(1),
            tried(1000, Some(200)),
            tried(30, None),
            answered(1250)
        ]),
        1250
    );
    // A wait that nothing followed may have been cut short.
    assert_eq!(count(&[asked(1), tried(1000, Some(60_000)), resumed]), 1000);
    assert_eq!(
        count(&[
            asked(1),
            tried(7, None),
            asked(1),
            tried(8, None),
            unanswered
        ]),
        15
    );
    // So does the time of the models that were asked in vain before.
    let sonnet: ModelId = "claude-sonnet-4-6".parse().unwrap();
    let other = asked_of(&sonnet, None);
    let fallback = [
        asked(1),
        tried(1000, None),
        passed_over(),
        other,
        tried(500, None),
        answered(1600),
    ];
    assert_eq!(count(&fallback), 1600);
}

fn passed_over() -> Event {
    Event::Warned {
        warning: Problem::new("other-model", String::new()),
    }
}

fn stored(bytes: u64) -> Stored {
    Stored {
        file: "f".to_owned(),
        bytes,
        sha256: String::new(),
    }
}

fn asked(round: u32) -> Event {
    let at_most = AtMost {
        tokens: 70_000,
        cost_usd: Some(0.25),
    };
    Event::Asked(Asked {
        round,
        model: None,
        prompt: stored(10),
        at_most,
    })
}

/// A request to this model that may cost this much.
fn asked_of(model: &ModelId, cost_usd: Option<f64>) -> Event {
    let at_most = AtMost {
        tokens: 70_000,
        cost_usd,
    };
    let (model, prompt) = (Some(model.to_string()), stored(10));
    Event::Asked(Asked {
        round: 1,
        model,
        prompt,
        at_most,
    })
}

fn attempted(attempt: &Attempt) -> Event {
    Event::Attempted(Attempted {
        round: 1,
        attempt: attempt.clone(),
    })
}

fn answered(elapsed_ms: u64) -> Event {
    Event::Answered(Answered {
        round: 1,
        reply: Text::in_file("f", "r"),
        raw: stored(1),
        finish: Finish::Complete,
        for_person: None,
        held_key: false,
        usage: code_commit_engine::Usage::default(),
        served_model: None,
        cost_usd: None,
        elapsed_ms,
    })
}

#[test]
fn a_call_of_another_model_counts_at_its_price_and_a_lost_one_as_the_record_says() {
    let sonnet: ModelId = "claude-sonnet-4-6".parse().unwrap();
    let spent = |lines: &[Event]| {
        let spending = spending(Budget::default());
        spending.count(lines, &flash());
        spending.spent()
    };
    let million = || attempted(&paid(1_000_000, 0));
    assert_eq!(
        spent(&[asked(1), million(), answered(1)]).cost.to_string(),
        "$0.75"
    );
    assert_eq!(
        spent(&[asked_of(&sonnet, None), million(), answered(1)])
            .cost
            .to_string(),
        "$3.00"
    );
    assert_eq!(
        spent(&[asked(1), asked_of(&sonnet, Some(1.5))])
            .cost
            .to_string(),
        "$1.75"
    );
    let unpriced = spent(&[asked_of(&"openai/llama".parse().unwrap(), None)]);
    assert_eq!((unpriced.calls, unpriced.unpriced), (1, 1));
}
