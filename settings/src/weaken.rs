//! What a project may not decide by itself: a cloned repository's file may only tighten.

use crate::{Bases, Layer, Sandbox, Settings};

/// Takes out of a project's layer everything that would weaken what is in force without it, and says what that was, one line each:
/// `sandbox.network = true`.
pub(crate) fn take_weakening(layer: &mut Layer, without: &Settings, bases: Bases<'_>) -> Vec<String> {
    let mut taken = Vec::new();
    let base_url = without.base_url.value.as_deref();
    take(
        &mut layer.model.base_url,
        |url| base_url != Some(&url.0),
        |url| {
            taken.push(format!("model.base_url = {:?}", url.0));
        },
    );
    // It decides what a call costs, and who is sent the code.
    take(
        &mut layer.model.name,
        |name| name.0 != without.model.value,
        |name| {
            taken.push(format!("model.name = {:?}", name.0.to_string()));
        },
    );
    take_limits(layer, without, &mut taken);
    let sizes = [
        ("output_limit", &mut layer.build.output_limit, without.build_output.value),
        ("prompt_limit", &mut layer.build.prompt_limit, without.build_prompt.value),
    ];
    for (key, wanted, limit) in sizes {
        take(wanted, |wanted| wanted.0 > limit, |wanted| taken.push(format!("build.{key} = \"{wanted}\"")));
    }
    take_walls(layer, without, bases, &mut taken);
    for price in layer.price.drain(..) {
        taken.push(format!("price of {:?}", price.prefix));
    }
    take(&mut layer.spec.notify, |_| true, |command| taken.push(format!("spec.notify = {:?}", command.text)));
    taken
}

/// A limit may be lowered.
fn take_limits(layer: &mut Layer, without: &Settings, taken: &mut Vec<String>) {
    let limits = &mut layer.limits;
    let counts = [
        ("max_tokens", &mut limits.max_tokens, without.max_tokens.value),
        ("max_calls", &mut limits.max_calls, without.max_calls.value),
        ("rounds", &mut limits.rounds, without.rounds.value),
    ];
    let (cost, time) = (without.max_cost.value, without.max_time.value);
    take(
        &mut limits.max_cost,
        |wanted| cost.is_some_and(|limit| wanted.0 > limit),
        |wanted| {
            taken.push(format!("limits.max_cost = {}", wanted.0.as_usd()));
        },
    );
    for (key, wanted, limit) in counts {
        take(
            wanted,
            |wanted| limit.is_some_and(|limit| wanted.0 > limit),
            |wanted| {
                taken.push(format!("limits.{key} = {}", wanted.0));
            },
        );
    }
    take(
        &mut limits.max_time,
        |wanted| time.is_some_and(|limit| wanted.0 > limit),
        |wanted| {
            taken.push(format!("limits.max_time = \"{wanted}\""));
        },
    );
}

fn take_walls(layer: &mut Layer, without: &Settings, bases: Bases<'_>, taken: &mut Vec<String>) {
    let walls = &mut layer.sandbox;
    let mode = without.sandbox.value;
    take(
        &mut walls.mode,
        |wanted| is_weaker(*wanted, mode),
        |wanted| {
            taken.push(format!("sandbox.mode = {:?}", wanted.as_str()));
        },
    );
    take(
        &mut walls.network,
        |wanted| *wanted && !without.network.value,
        |_| {
            taken.push("sandbox.network = true".to_owned());
        },
    );
    let places = [
        ("writable", &mut walls.writable, &without.writable),
        ("readable", &mut walls.readable, &without.readable),
    ];
    for (key, wanted, there) in places {
        wanted.retain(|place| {
            let known = there.iter().any(|setting| setting.value == bases.find(place));
            if !known {
                taken.push(format!("sandbox.{key} = [{:?}]", place.0));
            }
            known
        });
    }
    walls.env.retain(|name| {
        let known = without.env.iter().any(|setting| setting.value == name.0);
        if !known {
            taken.push(format!("sandbox.env = [{:?}]", name.0));
        }
        known
    });
}

/// Takes the value out if it weakens.
fn take<T>(place: &mut Option<T>, weakens: impl FnOnce(&T) -> bool, told: impl FnOnce(T)) {
    if let Some(value) = place.take() {
        if weakens(&value) {
            told(value);
        } else {
            *place = Some(value);
        }
    }
}

/// Whether one wall lets through what the other does not, or may. A container is no more than its daemon, which is root.
fn is_weaker(wanted: Sandbox, now: Sandbox) -> bool {
    let strength = |mode| match mode {
        Sandbox::Off => 0,
        Sandbox::Landlock | Sandbox::Docker => 1,
        Sandbox::Auto => 2,
        Sandbox::Bwrap => 3,
    };
    wanted != now && strength(wanted) <= strength(now)
}
