//! Every key, and what the file of a project that is not trusted may do with it.

use serde_json::Value;

use crate::{Size, Time};

/// Which values of an untrusted project are ignored: those that weaken what is in force without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// None: the key weakens nothing.
    Free,
    /// All but the ones that are in force anyway.
    Trusted,
    /// Larger ones. If there is no limit, any limit is tighter.
    Limit,
    /// `false` where `true` is in force.
    Safeguard,
    /// Sandboxes that let more through, or might.
    Sandbox,
}

/// Every key in the order of display; a test fails if one of [`Options`](crate::Options) is missing.
pub(crate) const KEYS: &[(&str, Class)] = &[
    ("model.name", Class::Trusted),
    ("model.escalate", Class::Trusted),
    ("model.base_url", Class::Trusted),
    ("model.temperature", Class::Free),
    ("model.stream", Class::Free),
    ("model.timeout", Class::Trusted),
    ("model.call_limit", Class::Trusted),
    ("model.wait", Class::Free),
    ("model.dialect.max_tokens", Class::Free),
    ("model.dialect.system_role", Class::Free),
    ("limits.max_cost", Class::Limit),
    ("limits.max_tokens", Class::Limit),
    ("limits.max_calls", Class::Limit),
    ("limits.max_time", Class::Limit),
    ("limits.rounds", Class::Limit),
    ("build.command", Class::Free),
    ("build.timeout", Class::Free),
    ("build.may_write", Class::Trusted),
    ("build.output_limit", Class::Limit),
    ("build.prompt_limit", Class::Limit),
    ("build.memory", Class::Trusted),
    ("build.processes", Class::Limit),
    ("build.temporary", Class::Trusted),
    ("build.file", Class::Limit),
    ("build.open_files", Class::Limit),
    ("sandbox.mode", Class::Sandbox),
    ("sandbox.network", Class::Limit),
    ("sandbox.hosts", Class::Trusted),
    ("sandbox.writable", Class::Trusted),
    ("sandbox.readable", Class::Trusted),
    ("sandbox.cache_limit", Class::Limit),
    ("sandbox.env", Class::Trusted),
    ("spec.commit_scope", Class::Free),
    ("spec.max_turns", Class::Limit),
    ("order.byproducts", Class::Free),
    ("rollup.include", Class::Free),
    ("rollup.exclude", Class::Free),
    ("rollup.budget", Class::Free),
    ("protect", Class::Free),
    ("protect_grader", Class::Safeguard),
    ("edits", Class::Free),
    ("price", Class::Trusted),
    ("providers", Class::Trusted),
];

impl Class {
    /// Whether an untrusted project may not replace `now` by `wanted`. Both are null if nothing is set.
    pub(crate) fn is_weakened(self, wanted: &Value, now: &Value) -> bool {
        match self {
            _ if wanted.is_null() => false,
            Self::Free => false,
            Self::Trusted => wanted != now,
            Self::Limit => !now.is_null() && magnitude(wanted) > magnitude(now),
            Self::Safeguard => magnitude(wanted) < magnitude(now),
            Self::Sandbox => wanted != now && strength(wanted) <= strength(now),
        }
    }
}

/// A number or a switch, or else the seconds of a duration or the bytes of a size, as something to compare.
fn magnitude(value: &Value) -> (Option<f64>, Option<u64>) {
    let switch = || value.as_bool().map(|on| f64::from(u8::from(on)));
    let time = |text: &str| text.parse().map(|time: Time| time.0.as_secs());
    let size = |text: &str| text.parse().map(|size: Size| size.0);
    let amount = |text: &str| time(text).or_else(|_| size(text)).ok();
    (
        value.as_f64().or_else(switch),
        value.as_str().and_then(amount),
    )
}

/// A container is as strong as its daemon: root.
fn strength(mode: &Value) -> u8 {
    match mode.as_str() {
        Some("namespaces") => 3,
        Some("auto") => 2,
        Some("landlock" | "docker") => 1,
        Some(_) | None => 0,
    }
}
