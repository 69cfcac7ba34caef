//! Which sandbox commands get.

use code_commit_repo::WorkTree;
use code_commit_runner::{Access, Confinement, NoSandbox, Probed, Rung, probe, works};
use code_commit_settings::Settings;

use super::{hosts_can_be_opened, mode};
use crate::exit::Failure;
use crate::host::Host;
use crate::{caches, place};

/// The strongest sandbox that works here, with what commands can access in it, and with the project's layers over the
/// caches of tools where the system allows them; says in one line which it is. The caller holds the project's lock.
pub(crate) fn choose(
    tree: &WorkTree,
    settings: &Settings,
    host: Host<'_>,
    access: impl Fn(Rung) -> Access,
) -> Result<Result<Confinement, NoSandbox>, Failure> {
    let (state, mode) = (place::state(tree)?, mode(settings.sandbox.value));
    // One trial of all that commands get tells as much as one of the rung and one of its layers.
    if let Some(probed) = Probed::preferred(mode) {
        let layers = || caches::layers(&state, settings, host.output);
        let caches = probed.rung.has_views().then(layers).transpose()?;
        let memory = Some(state.clone());
        let confinement = probed.confine(Access {
            caches,
            memory,
            ..access(probed.rung)
        });
        if works(&confinement).is_ok() {
            host.output.note(&format!("sandbox: {}", probed.why));
            hosts_can_be_opened(settings, probed.rung)?;
            caches::say_if_missing(probed.rung, settings, host.output);
            return Ok(Ok(confinement));
        }
    }
    let probed = match probe(mode, host.environment.docker_host()) {
        Ok(probed) => probed,
        Err(reason) => return Ok(Err(reason)),
    };
    host.output.note(&format!("sandbox: {}", probed.why));
    hosts_can_be_opened(settings, probed.rung)?;
    if probed.rung == Rung::Off {
        return Ok(Ok(Confinement::off()));
    }
    caches::in_layers(
        probed.confine(access(probed.rung)),
        &state,
        settings,
        host.output,
    )
    .map(Ok)
}
