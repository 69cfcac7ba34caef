//! Ctrl-C: once to stop in order, twice to stop at once.

use anyhow::Context as _;
use runner::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// What Ctrl-C raises from now on.
pub fn watched() -> anyhow::Result<Cancel> {
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    watch(&cancel)?;
    Ok(cancel)
}

/// Watches for signals from now on. The first one raises `cancel`; the second one ends every process of ours and then this one.
pub fn watch(cancel: &Cancel) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
    let cancel = cancel.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _signal in signals.forever() {
                if cancel.is_set() {
                    leave();
                }
                cancel.set();
            }
        })
        .context("cannot watch for Ctrl-C")?;
    Ok(())
}

/// The same while the terminal is somebody else's: what is typed there is not ours to act on.
pub(crate) fn watch_but_the_keys(cancel: &Cancel) -> anyhow::Result<()> {
    let (key, other) = ([SIGINT, SIGQUIT], [SIGTERM, SIGHUP]);
    let mut signals = Signals::new(key.iter().chain(&other)).context("cannot watch for signals")?;
    let cancel = cancel.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.forever().filter(|signal| other.contains(signal)).for_each(|_| cancel.set()))
        .context("cannot watch for signals")?;
    Ok(())
}

#[expect(clippy::exit, reason = "a second Ctrl-C means now")]
fn leave() -> ! {
    runner::sweep();
    std::process::exit(Exit::Interrupted.code().into())
}
