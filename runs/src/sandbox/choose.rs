//! Which sandbox commands get.

use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_runner::{Access, Backend, Confinement, NoSandbox, Probed, probe, works};
use code_commit_settings::Settings;

use super::{hosts_can_be_opened, mode};
use crate::exit::Failure;
use crate::host::Host;
use crate::{caches, place};

/// Says which sandbox is in force; where it is the strongest one, with `--verbose` only.
pub(crate) fn say(probed: &Probed, output: &Output) {
    let text = format!("sandbox: {}", probed.why);
    if probed.backend == Backend::Namespaces {
        output.detail(&text);
    } else {
        output.note(&text);
    }
}

/// The strongest sandbox that works here, with what commands can access in it, and with the project's layers over the
/// caches of tools where the system allows them; says in one line which it is. The caller holds the project's lock.
pub(crate) fn choose(
    tree: &WorkTree,
    settings: &Settings,
    host: Host<'_>,
    access: impl Fn(Backend) -> Access,
) -> Result<Result<Confinement, NoSandbox>, Failure> {
    let (state, mode) = (place::state(tree)?, mode(settings.sandbox()));
    // One trial of all that commands get tells as much as one of the backend and one of its layers.
    if let Some(probed) = Probed::preferred(mode) {
        let layers = || caches::layers(&state, settings, host.output);
        let caches = probed.backend.has_views().then(layers).transpose()?;
        let memory = Some(state.clone());
        let confinement = probed.confine(Access {
            caches,
            memory,
            ..access(probed.backend)
        });
        if works(&confinement).is_ok() {
            say(&probed, host.output);
            hosts_can_be_opened(settings, probed.backend)?;
            caches::say_if_missing(probed.backend, settings, host.output);
            return Ok(Ok(confinement));
        }
    }
    let probed = match probe(mode, host.environment.docker_host()) {
        Ok(probed) => probed,
        Err(reason) => return Ok(Err(reason)),
    };
    say(&probed, host.output);
    hosts_can_be_opened(settings, probed.backend)?;
    if probed.backend == Backend::Off {
        return Ok(Ok(Confinement::off()));
    }
    caches::in_layers(
        probed.confine(access(probed.backend)),
        &state,
        settings,
        host.output,
    )
    .map(Ok)
}
