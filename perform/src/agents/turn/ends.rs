//! How a turn ended, in the loop's terms.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use code_commit_agent::End;
use code_commit_engine::{TurnAdvice, TurnEnd};
use code_commit_llm::ErrorCode;

/// A service that names no time is asked again after this.
const A_MINUTE: Duration = Duration::from_mins(1);

/// What the loop is told.
pub(crate) fn turn_end(end: &End, was_cut_off: bool) -> TurnEnd {
    let then = if *end == End::Ok {
        TurnAdvice::Use
    } else if was_cut_off {
        TurnAdvice::Repeat
    } else if let Some(when) = renewed(end) {
        TurnAdvice::WaitUntil(when)
    } else if *end == End::LostSession {
        TurnAdvice::Renew
    } else {
        TurnAdvice::Stop
    };
    let asks_for_another = !was_cut_off && end.asks_for_another();
    TurnEnd {
        how: end.code().to_owned(),
        said: end.to_string(),
        then,
        asks_for_another,
    }
}

/// When its service can be asked again, in seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a quota is renewed at a time of the calendar"
)]
fn renewed(end: &End) -> Option<u64> {
    let End::Service {
        code, resets_unix, ..
    } = end
    else {
        return None;
    };
    let soon = || {
        (SystemTime::now() + A_MINUTE)
            .duration_since(UNIX_EPOCH)
            .ok()
            .map(|since| since.as_secs())
    };
    resets_unix.or_else(|| (*code == ErrorCode::RateLimited).then(soon).flatten())
}
