//! `cancel`, `retry`, `pause`, `resume`, `workers`, `drain`, `cap`.

use clap::Args;
use code_commit_fleet_store::{Filter, OrderId, PauseKind, Request, Scope, WorkerRow};
use code_commit_llm::ModelId;

use crate::fleet::Fleet;
use crate::print::Out;
use crate::{Exit, Which};

/// Orders by their numbers, or by what they have in common.
#[derive(Debug, Args)]
pub(crate) struct Orders {
    /// Their numbers
    #[arg(value_name = "ORDER", required_unless_present_any = ["tenant", "batch", "repo", "model", "state"])]
    orders: Vec<i64>,
    #[command(flatten)]
    which: Which,
}

impl Orders {
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            orders: self.orders.iter().copied().map(OrderId).collect(),
            ..self.which.filter()
        }
    }
}

/// Says what was done to which orders; 7 if there was nothing to do for any of them.
pub(crate) async fn each(
    fleet: &Fleet,
    orders: &Orders,
    out: Out,
    word: &str,
    request: impl FnOnce(Filter) -> Request,
) -> anyhow::Result<Exit> {
    let done: Vec<OrderId> = fleet.ask(request(orders.filter())).await?;
    for &OrderId(order) in &done {
        out.line(&serde_json::json!({ "order": order, "done": true }), || {
            format!("order {order}: {word}")
        });
    }
    for order in orders
        .orders
        .iter()
        .filter(|order| !done.contains(&OrderId(**order)))
    {
        out.line(&serde_json::json!({ "order": order, "done": false }), || {
            format!("order {order}: unchanged: its state does not allow it, or there is no such order")
        });
    }
    Ok(if done.is_empty() {
        Exit::Nothing
    } else {
        Exit::Done
    })
}

/// What to pause or resume: `tenant:NAME`, `repo:URL` or `model:MODEL`.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    kind: PauseKind,
    name: String,
}

pub(crate) fn target(text: &str) -> Result<Target, String> {
    let kinds = [PauseKind::Tenant, PauseKind::Repo, PauseKind::Model];
    let (kind, name) = text.split_once(':').unwrap_or_default();
    let kind = kinds.into_iter().find(|known| known.word() == kind);
    match kind.filter(|_| !name.is_empty()) {
        // As orders have it, also where it is named without its provider.
        Some(PauseKind::Model) => {
            let model: ModelId = name.parse().map_err(|error| format!("{error}"))?;
            Ok(Target {
                kind: PauseKind::Model,
                name: model.to_string(),
            })
        }
        Some(kind) => Ok(Target {
            kind,
            name: name.to_owned(),
        }),
        None => Err(format!(
            "`{text}` is none of tenant:NAME, repo:URL, model:MODEL"
        )),
    }
}

pub(crate) async fn pause(fleet: &Fleet, target: &Target, out: Out) -> anyhow::Result<Exit> {
    let Target { kind, name } = target.clone();
    fleet
        .ask::<bool>(Request::Pause {
            kind,
            name: name.clone(),
        })
        .await?;
    let fact = serde_json::json!({ "paused": kind, "name": name });
    out.line(&fact, || {
        format!("{} {name} is paused; leased orders continue", kind.word())
    });
    Ok(Exit::Done)
}

pub(crate) async fn resume(fleet: &Fleet, target: &Target, out: Out) -> anyhow::Result<Exit> {
    let Target { kind, name } = target.clone();
    let was_held: bool = fleet
        .ask(Request::Resume {
            kind,
            name: name.clone(),
        })
        .await?;
    let fact = serde_json::json!({ "resumed": kind, "name": name, "done": was_held });
    let words = if was_held {
        "is no longer paused"
    } else {
        "was not paused"
    };
    out.line(&fact, || format!("{} {name} {words}", kind.word()));
    Ok(if was_held { Exit::Done } else { Exit::Nothing })
}

pub(crate) async fn workers(fleet: &Fleet, out: Out) -> anyhow::Result<Exit> {
    let workers: Vec<WorkerRow> = fleet.ask(Request::Workers).await?;
    for row in &workers {
        let WorkerRow {
            worker,
            version,
            silent_s,
            leases,
            is_draining,
        } = row;
        let drains = if *is_draining { "  drains" } else { "" };
        out.line(row, || {
            format!("{worker}  {leases} orders  asked {silent_s:.0} s ago{drains}  {version}")
        });
    }
    Ok(if workers.is_empty() {
        Exit::Nothing
    } else {
        Exit::Done
    })
}

pub(crate) async fn drain(
    fleet: &Fleet,
    worker: &str,
    is_draining: bool,
    out: Out,
) -> anyhow::Result<Exit> {
    let is_known: bool = fleet
        .ask(Request::Drain {
            worker: worker.to_owned(),
            is_draining,
        })
        .await?;
    let fact = serde_json::json!({ "worker": worker, "drains": is_draining, "done": is_known });
    let words = match (is_known, is_draining) {
        (false, _) => "is not a known worker; `workers` lists them",
        (true, true) => "gets no more orders; `workers` shows how many it still has",
        (true, false) => "gets orders again",
    };
    out.line(&fact, || format!("{worker} {words}"));
    Ok(if is_known { Exit::Done } else { Exit::Nothing })
}

pub(crate) async fn cap(fleet: &Fleet, scope: &Scope, usd: f64, out: Out) -> anyhow::Result<Exit> {
    let is_used: bool = fleet
        .ask(Request::Cap {
            scope: scope.clone(),
            usd,
        })
        .await?;
    anyhow::ensure!(
        is_used,
        "no order belongs to {scope}; `code-commit-fleet costs` lists tenants and batches"
    );
    out.line(
        &serde_json::json!({ "scope": scope.to_string(), "cap_usd": usd }),
        || format!("{scope} may spend {}", crate::print::usd(usd)),
    );
    Ok(Exit::Done)
}
