//! How much of a campaign runs. `CI_SIZE=full .ci/run` sets the variables for the night.

/// A number from the environment, for a longer campaign.
pub fn chosen(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// The step of a campaign over all moments of a run: every fifth is tried, or every `KILL_EVERY`th.
pub fn every() -> usize {
    chosen("KILL_EVERY", 5)
}

/// Real toolchains, projects, loops or pages that a test tries one after the other: the first, or the first `SAMPLES`.
pub fn samples<T>(what: &str, all: Vec<T>) -> Vec<T> {
    let (count, wanted) = (all.len(), chosen("SAMPLES", 1));
    if wanted < count {
        eprintln!(
            "SKIPPED: {} of {count} {what}, because SAMPLES is {wanted}; CI_SIZE=full tries them all",
            count - wanted
        );
    }
    all.into_iter().take(wanted).collect()
}
