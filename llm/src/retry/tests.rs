use proptest::prelude::*;

use super::*;

/// A watch for which waits take no real time.
#[derive(Default)]
struct Clock {
    waits: Vec<u128>,
    rows: Vec<Attempt>,
    cancel: bool,
}

impl Watch for Clock {
    fn wait(&mut self, duration: Duration) -> Waited {
        self.waits.push(duration.as_millis());
        if self.cancel {
            Waited::Cancelled
        } else {
            Waited::Through
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.rows.push(attempt.clone());
    }
}

fn overloaded(hint: Option<u64>) -> CallError {
    CallError::Overloaded {
        status: 503,
        message: String::new(),
        retry_after: hint.map(Duration::from_secs),
    }
}

fn answer(finish: Finish) -> Answer {
    Answer {
        reply: Reply {
            finish,
            ..Reply::of_text("text".into())
        },
        continuation: None,
    }
}

/// Runs a call whose attempts take `each_ms` and end with `outcomes`; returns the result and the
/// waits.
fn run(
    time_left: Option<u64>,
    each_ms: u64,
    outcomes: Vec<Result<Answer, CallError>>,
) -> (Result<Reply, CallError>, Clock) {
    let mut outcomes = outcomes.into_iter();
    let mut clock = Clock::default();
    let left = time_left.map(Duration::from_secs);
    let result = with_retry(&Retry::default(), left, &mut clock, |_, _| {
        let outcome = outcomes
            .next()
            .unwrap_or(Err(CallError::NothingLeft { given: 0 }));
        let mut attempt = Attempt {
            duration_ms: each_ms,
            ..Attempt::default()
        };
        outcome
            .as_ref()
            .err()
            .into_iter()
            .for_each(|error| attempt.note_error(error));
        Tried {
            outcome,
            attempt,
            is_simplified: false,
        }
    });
    (result, clock)
}

#[test]
fn waits_double_from_one_second_and_are_stretched_by_a_quarter_at_most() {
    let (result, clock) = run(None, 0, (0..9).map(|_| Err(overloaded(None))).collect());
    assert_eq!(result.unwrap_err().code(), "overloaded");
    assert_eq!(clock.waits.len(), 4);
    for (wait, base) in clock.waits.iter().zip([1000, 2000, 4000, 8000]) {
        assert!((base..=base * 5 / 4).contains(wait), "{wait} for {base}");
    }
    let shown: Vec<_> = clock
        .rows
        .iter()
        .map(|row| (row.number, row.wait_ms.map(u128::from)))
        .collect();
    let waits = |n: usize| clock.waits.get(n).copied();
    assert_eq!(
        shown,
        [
            (1, waits(0)),
            (2, waits(1)),
            (3, waits(2)),
            (4, waits(3)),
            (5, None)
        ]
    );
}

#[test]
fn the_services_hint_wins_when_it_is_longer() {
    let (result, clock) = run(
        None,
        0,
        vec![Err(overloaded(Some(30))), Ok(answer(Finish::Complete))],
    );
    assert_eq!(result.unwrap().attempts, 2);
    assert!(
        (30_000..=37_500).contains(&clock.waits[0]),
        "{:?}",
        clock.waits
    );
}

#[test]
fn a_hint_of_two_minutes_is_obeyed_and_a_longer_one_ends_the_call() {
    let (_, clock) = run(None, 0, vec![Err(overloaded(Some(120)))]);
    assert_eq!(clock.waits.len(), 1);
    let (result, clock) = run(None, 0, vec![Err(overloaded(Some(121)))]);
    assert_eq!(
        (result.unwrap_err().code(), clock.waits.len()),
        ("overloaded", 0)
    );
}

#[test]
fn what_no_retry_cures_is_not_retried() {
    let message = String::new();
    for error in [
        CallError::DailyQuota {
            message: message.clone(),
            retry_after: Some(Duration::from_secs(1)),
        },
        CallError::Billing {
            message: message.clone(),
        },
        CallError::BadKey {
            message: message.clone(),
        },
        CallError::BadRequest {
            status: 400,
            message,
        },
        CallError::Cancelled,
    ] {
        let code = error.code();
        let (result, clock) = run(None, 0, vec![Err(error), Ok(answer(Finish::Complete))]);
        assert_eq!((result.unwrap_err().code(), clock.waits.len()), (code, 0));
    }
}

#[test]
fn attempts_count_against_the_callers_time() {
    let failures = || (0..9).map(|_| Err(overloaded(None))).collect();
    let (_, clock) = run(Some(60), 20_000, failures());
    assert_eq!(
        clock.rows.len(),
        3,
        "20 + 1 + 20 + 2 + 20 s are more than 60"
    );
    let (_, clock) = run(Some(1), 0, failures());
    assert_eq!(clock.rows.len(), 1, "the first wait would use it all up");
}

#[test]
fn what_may_have_been_paid_for_is_tried_three_times_only() {
    let cut = || Err(CallError::StreamCut { received: 7 });
    let (result, clock) = run(
        None,
        0,
        vec![cut(), Err(overloaded(None)), cut(), cut(), cut()],
    );
    assert_eq!(
        (result.unwrap_err().code(), clock.rows.len()),
        ("stream-cut", 4)
    );
    let (result, clock) = run(None, 0, (0..9).map(|_| Ok(answer(Finish::Other))).collect());
    assert_eq!(
        (result.unwrap().finish, clock.rows.len()),
        (Finish::Other, 3)
    );
}

#[test]
fn a_failure_of_the_service_in_the_middle_of_its_answer_is_tried_three_times_only() {
    let mut clock = Clock::default();
    let result = with_retry(&Retry::default(), None, &mut clock, |_, _| Tried {
        is_simplified: false,
        outcome: Err(CallError::Server {
            status: 500,
            message: String::new(),
            retry_after: None,
        }),
        attempt: Attempt {
            http_status: Some(200),
            spend: Spend::Unknown,
            ..Attempt::default()
        },
    });
    assert_eq!(
        (result.unwrap_err().code(), clock.rows.len()),
        ("server", 3)
    );
}

fn part(text: &str) -> Answer {
    let usage = Usage {
        output_tokens: Some(5),
        ..Usage::default()
    };
    let reply = Reply {
        finish: Finish::Endless,
        usage,
        ..Reply::of_text(text.into())
    };
    Answer {
        reply,
        continuation: Some("more".into()),
    }
}

#[test]
fn an_answer_that_goes_on_past_the_callers_time_ends_with_what_there_is() {
    let check = |outcomes, rows| {
        let (result, clock) = run(Some(60), 30_000, outcomes);
        let reply = result.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish),
            ("one two", Finish::Endless)
        );
        assert_eq!(
            (reply.usage.output_tokens, clock.rows.len()),
            (Some(10), rows)
        );
    };
    check(
        vec![Ok(part("one ")), Ok(part("two")), Ok(part("three"))],
        2,
    );
    let timeout = || {
        Err(CallError::Timeout {
            after: Duration::ZERO,
        })
    };
    let mut outcomes = vec![Ok(part("one ")), Ok(part("two")), timeout()].into_iter();
    let mut clock = Clock::default();
    let time = Some(Duration::from_secs(10));
    let result = with_retry(&Retry::default(), time, &mut clock, |next, _| Tried {
        is_simplified: false,
        outcome: outcomes.next().unwrap_or_else(timeout),
        attempt: Attempt {
            duration_ms: if next.continuation.is_none() {
                1
            } else {
                5_000
            },
            ..Attempt::default()
        },
    });
    let reply = result.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.finish),
        ("one two", Finish::Endless)
    );
    assert_eq!((reply.usage.output_tokens, clock.rows.len()), (Some(10), 3));
}

#[test]
fn usage_of_answers_that_were_thrown_away_is_not_forgotten() {
    let paid = |finish| {
        let mut answer = answer(finish);
        answer.reply.usage.input_tokens = Some(10);
        Ok(answer)
    };
    let (result, _) = run(
        None,
        0,
        vec![paid(Finish::Malformed), paid(Finish::Complete)],
    );
    assert_eq!(result.unwrap().usage.input_tokens, Some(20));
}

#[test]
fn a_cancelled_wait_ends_the_call() {
    let mut clock = Clock {
        cancel: true,
        ..Clock::default()
    };
    let result = with_retry(&Retry::default(), None, &mut clock, |_, _| Tried {
        is_simplified: false,
        outcome: Err(overloaded(None)),
        attempt: Attempt::default(),
    });
    assert_eq!(
        (result.unwrap_err().code(), clock.rows.len()),
        ("cancelled", 1)
    );
}

#[test]
fn two_seeds_wait_differently_and_one_seed_the_same() {
    let wait = |seed| {
        Retry {
            seed,
            ..Retry::default()
        }
        .wait(1, None)
    };
    assert_eq!(wait(1), wait(1));
    assert_ne!(wait(1), wait(2));
    assert_ne!(
        Retry::default().seeded_at_random(),
        Retry::default().seeded_at_random()
    );
}

proptest! {
    #[test]
    fn a_wait_is_never_shorter_than_asked_nor_longer_than_allowed(
        seed: u64, failures in 1_u32..=u32::MAX, hint in proptest::option::of(0_u64..=120),
    ) {
        let hint = hint.map(Duration::from_secs);
        let wait = Retry { seed, ..Retry::default() }.wait(failures, hint).unwrap();
        prop_assert!(wait >= hint.unwrap_or_default() && wait >= Duration::from_secs(1));
        prop_assert!(wait <= Duration::from_secs(150));
    }
}
