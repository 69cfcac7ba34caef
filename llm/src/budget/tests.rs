use proptest::prelude::*;

use super::*;
use crate::price::Prices;
use crate::{Day, Usage};

fn price() -> Price {
    let day: Day = "2026-11-21".parse().unwrap();
    Prices::built_in()
        .of(&"gemini-3.8-flash".parse().unwrap(), None, day)
        .unwrap()
        .clone()
}

fn usd(usd: f64) -> Money {
    Money::from_usd(usd).unwrap()
}

fn request(prompt: &str) -> Request<'_> {
    Request {
        prompt,
        ..Request::default()
    }
}

#[test]
fn without_limits_everything_is_allowed() {
    let forecast = Forecast::of(&request("x"), None, None);
    let allowance = Budget::default()
        .allow(&Spent::default(), &forecast, None)
        .unwrap();
    assert_eq!(allowance, Allowance::default());
}

#[test]
fn a_forecast_is_one_token_a_byte_unless_the_service_counted() {
    let prompt = "é".repeat(500);
    let guess = Forecast::of(&request(&prompt), None, Some(&price()));
    assert_eq!(
        (guess.input_tokens, guess.output_tokens),
        (1064, Some(65_536))
    );
    let counted = Forecast::of(&request(&prompt), Some(300), Some(&price()));
    assert_eq!(counted.input_tokens, 300);
    insta::assert_snapshot!(counted.cost.unwrap(), @"$0.25");
}

#[test]
fn each_limit_says_which_it_is_before_it_is_passed() {
    let price = price();
    let forecast = Forecast::of(&request("x"), Some(1000), Some(&price));
    let spent = Spent {
        calls: 3,
        tokens: 50_000,
        cost: usd(0.80),
        unpriced: 0,
        time: Duration::from_secs(90),
    };
    let refuse = |budget: Budget| {
        let error = budget.allow(&spent, &forecast, Some(&price)).unwrap_err();
        format!("{} {error}", error.limit().flag())
    };
    insta::assert_snapshot!(refuse(Budget { max_calls: Some(3), ..Budget::default() }), @"--max-calls the limit of 3 calls is reached");
    insta::assert_snapshot!(refuse(Budget { max_tokens: Some(100_000), ..Budget::default() }), @"--max-tokens used 50000 of 100000 tokens, and the next call may need 66536");
    insta::assert_snapshot!(refuse(Budget { max_cost: Some(usd(1.0)), ..Budget::default() }), @"--max-cost spent $0.80 of $1.00, and the next call may cost $0.25");
    insta::assert_snapshot!(refuse(Budget { max_time: Some(Duration::from_secs(90)), ..Budget::default() }), @"--max-time the run has reached its limit of 90 s");
}

#[test]
fn zero_is_a_limit() {
    let forecast = Forecast {
        input_tokens: 0,
        output_tokens: Some(0),
        cost: Some(Money::ZERO),
    };
    let price = price();
    let refused = |budget: Budget| {
        budget
            .allow(&Spent::default(), &forecast, Some(&price))
            .is_err()
    };
    assert!(refused(Budget {
        max_calls: Some(0),
        ..Budget::default()
    }));
    assert!(refused(Budget {
        max_cost: Some(Money::ZERO),
        ..Budget::default()
    }));
    assert!(refused(Budget {
        max_time: Some(Duration::ZERO),
        ..Budget::default()
    }));
    let one = Forecast {
        input_tokens: 1,
        ..forecast
    };
    let budget = Budget {
        max_tokens: Some(0),
        ..Budget::default()
    };
    assert!(budget.allow(&Spent::default(), &one, None).is_err());
}

#[test]
fn money_cannot_be_limited_where_the_price_is_unknown() {
    let budget = Budget {
        max_cost: Some(usd(5.0)),
        ..Budget::default()
    };
    let forecast = Forecast::of(&request("x"), None, None);
    let unpriced = budget
        .allow(&Spent::default(), &forecast, None)
        .unwrap_err();
    assert_eq!(unpriced, BudgetError::Unpriced { limit: usd(5.0) });
    let spent = Spent {
        unpriced: 1,
        ..Spent::default()
    };
    assert!(
        budget.allow(&spent, &forecast, Some(&price())).is_err(),
        "a call before it had no price"
    );
}

#[test]
fn where_nothing_bounds_the_output_what_is_left_does() {
    let budget = Budget {
        max_tokens: Some(10_000),
        ..Budget::default()
    };
    let forecast = Forecast::of(&request("x"), Some(1000), None);
    let spent = Spent {
        tokens: 2000,
        ..Spent::default()
    };
    assert_eq!(
        budget
            .allow(&spent, &forecast, None)
            .unwrap()
            .max_output_tokens,
        Some(7000)
    );
}

#[test]
fn money_for_the_input_alone_is_too_little() {
    let mut price = price();
    price.max_output = None;
    let forecast = Forecast::of(&request("x"), Some(1000), Some(&price));
    let budget = |limit| Budget {
        max_cost: Some(limit),
        ..Budget::default()
    };
    let input = price.input_at_most(1000);
    let mut enough = input;
    enough += price.output_at_most(1, 1000);
    let refused = budget(input)
        .allow(&Spent::default(), &forecast, Some(&price))
        .unwrap_err();
    assert_eq!(
        refused,
        BudgetError::Cost {
            limit: input,
            spent: Money::ZERO,
            need: enough
        }
    );
    let allowed = budget(enough)
        .allow(&Spent::default(), &forecast, Some(&price))
        .unwrap();
    assert_eq!(allowed.max_output_tokens, Some(1));
}

#[test]
fn an_attempt_without_account_counts_as_the_most_it_can_have_used() {
    let price = price();
    let forecast = Forecast::of(
        &Request {
            max_output_tokens: Some(500),
            ..request("x")
        },
        Some(1000),
        Some(&price),
    );
    let add = |attempt: Attempt| {
        let mut spent = Spent::default();
        spent.add(&attempt, &forecast, Some(&price));
        (spent.calls, spent.tokens, spent.cost.to_string())
    };
    let usage = Usage {
        input_tokens: Some(10),
        output_tokens: Some(2),
        ..Usage::default()
    };
    assert_eq!(
        add(Attempt {
            spend: Spend::Nothing,
            ..Attempt::default()
        }),
        (0, 0, "$0.00".into())
    );
    assert_eq!(
        add(Attempt {
            spend: Spend::Usage,
            usage,
            ..Attempt::default()
        }),
        (1, 12, "$0.00001500".into())
    );
    assert_eq!(
        add(Attempt {
            spend: Spend::Unknown,
            usage,
            ..Attempt::default()
        }),
        (1, 1500, "$0.0026".into())
    );
}

proptest! {
    #[test]
    fn an_allowed_call_never_passes_the_limits(
        max_tokens in 0_u64..200_000, max_cost in 0.0_f64..2.0, input in 0_u64..300_000,
        asked in proptest::option::of(1_u64..100_000), spent_tokens in 0_u64..100_000, spent_cost in 0.0_f64..2.0,
    ) {
        let mut price = price();
        price.max_output = None;
        let budget = Budget { max_tokens: Some(max_tokens), max_cost: Some(usd(max_cost)), ..Budget::default() };
        let spent = Spent { tokens: spent_tokens, cost: usd(spent_cost), ..Spent::default() };
        let request = Request { max_output_tokens: asked, ..Request::default() };
        let forecast = Forecast::of(&request, Some(input), Some(&price));
        if let Ok(allowance) = budget.allow(&spent, &forecast, Some(&price)) {
            let output = asked.or(allowance.max_output_tokens).unwrap();
            prop_assert!(output >= 1, "a call that may say nothing");
            let usage = Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() };
            let mut after = spent;
            after.add(&Attempt { spend: Spend::Usage, usage, ..Attempt::default() }, &forecast, Some(&price));
            prop_assert!(after.tokens <= max_tokens);
            prop_assert!(after.cost <= usd(max_cost), "{} of {}", after.cost, usd(max_cost));
        }
    }
}
