use proptest::prelude::*;

use super::*;

/// A million tokens.
const M: u64 = 1_000_000;
const NOW: &str = "2026-11-21";

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

fn usage(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        cache_read_tokens: Some(cached),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

fn model(name: &str) -> ModelId {
    ModelId::new("any", name).unwrap()
}

#[track_caller]
fn cost(name: &str, on: &str, usage: &Usage) -> String {
    let prices = Prices::built_in();
    prices
        .of(&model(name), None, day(on))
        .and_then(|price| price.cost(usage))
        .map_or("unknown".into(), |cost| cost.to_string())
}

#[test]
fn the_built_in_table_can_be_read_and_is_dated() {
    let prices = Prices::parse(BUILT_IN).unwrap();
    assert!(prices.date.is_some());
    assert!(prices.models.len() >= 6);
    assert_eq!(prices, Prices::built_in());
}

#[test]
fn a_million_tokens_cost_what_the_table_says() {
    assert_eq!(cost("gemini-3.8-flash", NOW, &usage(M, 0, M)), "$4.50");
    assert_eq!(cost("gemini-3.8-flash", NOW, &usage(M, M, 0)), "$0.0750");
    assert_eq!(cost("gemini-2.5-flash-lite", NOW, &usage(M, 0, 0)), "$0.10");
}

#[test]
fn a_tier_has_its_own_price_or_none() {
    let of = |tier| Usage {
        tier: Tier::of_word(tier),
        ..usage(M, 0, M)
    };
    let on = |tier| {
        cost(
            "gpt-6.1-sol",
            NOW,
            &Usage {
                input_tokens: Some(200_000),
                ..of(tier)
            },
        )
    };
    let cases = ["standard", "on_demand", "flex", "batch", "priority"].map(on);
    assert_eq!(cases, ["$10.40", "$10.40", "$5.20", "$5.20", "unknown"]);
    let table = "[[model]]\nprefix = 'm'\ninput = 1\noutput = 1\npriority = 1.75";
    let prices = Prices::parse(table).unwrap();
    let price = prices.of(&model("m"), None, day(NOW)).unwrap();
    assert_eq!(price.cost(&of("priority")), Money::from_usd(3.5).ok());
}

#[test]
fn a_price_that_has_ended_is_followed_by_the_next() {
    assert_eq!(
        cost("gemini-3.8-flash", "2026-12-31", &usage(M, 0, 0)),
        "$0.75"
    );
    assert_eq!(
        cost("gemini-3.8-flash", "2027-01-01", &usage(M, 0, 0)),
        "$1.50"
    );
}

#[test]
fn long_prompts_cost_more_for_the_whole_call() {
    assert_eq!(
        cost("gemini-3.1-pro-preview", NOW, &usage(200_000, 0, M)),
        "$12.40"
    );
    assert_eq!(
        cost("gemini-3.1-pro-preview", NOW, &usage(200_001, 0, M)),
        "$18.80"
    );
}

#[test]
fn a_version_of_a_model_has_its_price_and_a_sibling_has_not() {
    let known = |served: &str| {
        Prices::built_in()
            .of(&model("asked"), Some(served), day(NOW))
            .is_some()
    };
    for name in [
        "gemini-3.8-flash",
        "gemini-3.8-flash-001",
        "gemini-3.8-flash-preview-09-2026",
        "models/gemini-2.5-pro",
    ] {
        assert!(known(name), "{name}");
    }
    for name in [
        "gemini-3.8-flash-lite",
        "gemini-3.8",
        "gemini-3.8-flashy",
        "claude-opus-5-6",
        "",
        "gemini-3.8-flash-",
    ] {
        assert!(!known(name), "{name}");
    }
}

#[test]
fn unknown_is_not_zero() {
    assert_eq!(cost("llama", NOW, &usage(10, 0, 10)), "unknown");
    let partial = Usage {
        input_tokens: Some(10),
        ..Usage::default()
    };
    assert_eq!(cost("gemini-3.8-flash", NOW, &partial), "unknown");
}

#[test]
fn the_users_own_prices_go_first() {
    let own: Price = toml::from_str("prefix = \"llama\"\ninput = 0.0\noutput = 0.0").unwrap();
    let other: Price =
        toml::from_str("prefix = \"gemini-3.8-flash\"\ninput = 9.0\noutput = 9.0").unwrap();
    let prices = Prices::built_in().behind(vec![own, other]);
    let input = |name: &str| {
        prices
            .of(&model(name), None, day(NOW))
            .map(|p| p.input.to_string())
    };
    assert_eq!(input("llama"), Some("$0.00".into()));
    assert_eq!(input("gemini-3.8-flash"), Some("$9.00".into()));
    assert_eq!(input("gemini-2.5-pro"), Some("$1.25".into()));
}

#[test]
fn a_provider_with_prices_of_its_own_has_no_others() {
    let own: Price =
        toml::from_str("prefix = \"gemini-3.8-flash\"\ninput = 0.5\noutput = 0.5").unwrap();
    let provider = Provider {
        name: "cheap".into(),
        prices: Some(vec![own]),
        ..Provider::default()
    };
    let prices = Prices::built_in().and_of(&provider);
    let input = |id: &str| {
        let id: ModelId = id.parse().unwrap();
        prices
            .of(&id, None, day(NOW))
            .map(|price| price.input.to_string())
    };
    assert_eq!(input("cheap/gemini-3.8-flash"), Some("$0.50".into()));
    assert_eq!(input("cheap/gemini-2.5-pro"), None);
    assert_eq!(input("gemini/gemini-3.8-flash"), Some("$0.75".into()));
}

#[test]
fn a_table_with_a_slip_in_it_is_refused() {
    for table in [
        "[[model]]\nprefix = \"x\"\ninput = -1.0\noutput = 1.0",
        "[[model]]\nprefix = \"x\"\ninput = 1.0\noutput = 1.0\ncahced = 0.1",
        "[[model]]\nprefix = \"x\"\ninput = 1.0\noutput = 1.0\nuntil = \"2026-13-01\"",
        "[[model]]\nprefix = \"x\"\ninput = 1.0",
    ] {
        assert!(Prices::parse(table).is_err(), "{table}");
    }
}

#[test]
fn money_is_shown_so_that_it_can_be_seen() {
    let show = |usd: f64| Money::from_usd(usd).unwrap().to_string();
    assert_eq!(
        [
            show(0.0),
            show(12.345),
            show(0.1),
            show(0.0123),
            show(0.000_000_076)
        ]
        .join(" "),
        "$0.00 $12.35 $0.10 $0.0123 $0.00000008"
    );
}

proptest! {
    #[test]
    fn money_survives_json(pico in 0_u64..1_000_000_000_000_000) {
        let money = Money(pico);
        let json = serde_json::to_string(&money).unwrap();
        prop_assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money);
    }

    #[test]
    fn no_usage_costs_more_than_its_bound(input in 0_u64..2_000_000, cached in 0_u64..2_000_000, output in 0_u64..100_000) {
        for price in &Prices::built_in().models {
            let mut bound = price.input_at_most(input);
            bound += price.output_at_most(output, input);
            prop_assert!(price.cost(&usage(input, cached, output)).unwrap() <= bound);
        }
    }
}

#[test]
fn the_window_of_a_model_is_that_of_the_longest_name_it_begins_with() {
    assert_eq!(window_of("gpt-4-0613"), 8192);
    assert_eq!(window_of("gpt-4o-mini"), 128_000);
    assert_eq!(window_of("meta-llama/Llama-3.3-70B-Instruct"), 131_072);
    assert_eq!(window_of("models/gemini-1.5-pro-002"), 2_097_152);
    assert_eq!(window_of("grok-4-fast-reasoning"), 2_000_000);
    assert_eq!(window_of("a model of next year"), 128_000);
    assert_eq!(window_of(""), 128_000);
    let table: BTreeMap<String, u64> = toml::from_str(WINDOWS).unwrap();
    let read = windows().map(|(begins, window)| (begins.to_owned(), window));
    assert_eq!(read.collect::<BTreeMap<_, _>>(), table);
}
