//! Ctrl-C: once for an orderly stop, twice to stop at once.

use anyhow::Context as _;
use code_commit_runner::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// The flag that the host has given, or else one that Ctrl-C raises from now on.
pub(crate) fn watched(given: Option<&Cancel>) -> anyhow::Result<Cancel> {
    if let Some(cancel) = given {
        return Ok(cancel.clone());
    }
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    watch(&cancel)?;
    Ok(cancel)
}

/// Watches for signals from now on. The first raises `cancel`; the second kills all our processes, then this
/// one.
pub fn watch(cancel: &Cancel) -> anyhow::Result<()> {
    let cancel = cancel.clone();
    each(move || {
        if cancel.is_set() {
            leave();
        }
        cancel.set();
    })
}

/// Calls `heard` for each signal that asks the program to end, from now on.
pub fn each(mut heard: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.forever().for_each(|_signal| heard()))
        .context("cannot watch for Ctrl-C")?;
    Ok(())
}

/// Watches for signals while another program has the terminal: keys typed there are not for us.
pub(crate) fn watch_but_the_keys(cancel: &Cancel) -> anyhow::Result<()> {
    let (key, other) = ([SIGINT, SIGQUIT], [SIGTERM, SIGHUP]);
    let mut signals = Signals::new(key.iter().chain(&other)).context("cannot watch for signals")?;
    let cancel = cancel.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            signals
                .forever()
                .filter(|signal| other.contains(signal))
                .for_each(|_| cancel.set());
        })
        .context("cannot watch for signals")?;
    Ok(())
}

/// Kills all our processes, then this one.
#[expect(clippy::exit, reason = "a second Ctrl-C means now")]
pub fn leave() -> ! {
    code_commit_runner::sweep();
    std::process::exit(Exit::Interrupted.code().into())
}
