//! What people and programs ask for, with the rights that they have: one place for all of them, however they come.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Fence, Filter, Nanodollars, NewOrder, OrderId, PauseKind, Role, Scope, Store, StoreError,
};

/// What is asked for; what each one gives is said beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    tag = "do",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Request {
    /// Takes orders, with the cap of their batch in US dollars: [`Submitted`](crate::Submitted) of each.
    Submit {
        /// All or none.
        orders: Vec<NewOrder>,
        /// Of their batch.
        max_cost_usd: Option<f64>,
    },
    /// The first `limit` orders after one: [`OrderRow`](crate::OrderRow) of each.
    Orders {
        /// Which ones.
        filter: Filter,
        /// Zero: from the beginning.
        after: OrderId,
        /// At most [`PAGE`].
        limit: i64,
    },
    /// The [`Event`](crate::Event)s of an order.
    Events {
        /// Which one.
        order: OrderId,
    },
    /// Ends orders that are not over: their [`OrderId`]s.
    Cancel {
        /// Which ones; never empty.
        filter: Filter,
    },
    /// Queues orders again that ended without success: their [`OrderId`]s.
    Retry {
        /// Which ones; never empty.
        filter: Filter,
    },
    /// What was paid: [`Cost`](crate::Cost)s.
    Costs {
        /// For whom.
        filter: Filter,
    },
    /// The whole fleet: a [`Snapshot`](crate::Snapshot).
    Snapshot,
    /// Sets what a scope may spend: whether any order belongs to it.
    Cap {
        /// Which one.
        scope: Scope,
        /// In US dollars.
        usd: f64,
    },
    /// Nobody leases these orders from now on: true.
    Pause {
        /// What they have in common.
        kind: PauseKind,
        /// Which one.
        name: String,
    },
    /// They are leased again: whether they were held back.
    Resume {
        /// What they have in common.
        kind: PauseKind,
        /// Which one.
        name: String,
    },
    /// [`WorkerRow`](crate::WorkerRow)s.
    Workers,
    /// A worker gets no more orders, or gets them again: whether it is known.
    Drain {
        /// Which one.
        worker: String,
        /// Whether it gets none.
        is_draining: bool,
    },
}

/// The most orders of one page.
pub const PAGE: i64 = 1_000;

/// What somebody may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// What their token is for.
    pub role: Role,
    /// For whose orders; `None`: for all.
    pub tenant: Option<String>,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Their token is for less.
    #[error("a token of role {role}{} may not do that", tenant.as_ref().map(|tenant| format!(" for tenant {tenant}")).unwrap_or_default())]
    Forbidden {
        /// Its role.
        role: Role,
        /// Its tenant.
        tenant: Option<String>,
    },
    /// It is not valid, whoever asks.
    #[error("{0}")]
    Invalid(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Rights {
    /// Of whoever has the database's password.
    pub const ALL: Self = Self {
        role: Role::Operator,
        tenant: None,
    };

    fn need(&self, role: Role) -> Result<(), Refusal> {
        if self.role >= role {
            Ok(())
        } else {
            Err(self.refusal())
        }
    }

    /// The filter, within their tenant.
    fn within(&self, filter: Filter) -> Result<Filter, Refusal> {
        match (&self.tenant, &filter.tenant) {
            (Some(own), Some(other)) if own != other => Err(self.refusal()),
            (Some(own), _) => Ok(Filter {
                tenant: Some(own.clone()),
                ..filter
            }),
            (None, _) => Ok(filter),
        }
    }

    /// The same for what changes orders: a filter that was forgotten must not mean all of them.
    fn chosen(&self, filter: Filter) -> Result<Filter, Refusal> {
        if filter == Filter::default() {
            return Err(Refusal::Invalid(
                "name orders, or a tenant, batch, repository, model or state".to_owned(),
            ));
        }
        self.within(filter)
    }

    fn refusal(&self) -> Refusal {
        Refusal::Forbidden {
            role: self.role,
            tenant: self.tenant.clone(),
        }
    }
}

impl Request {
    /// The least role that may ask for it, and whether it concerns more than one tenant.
    fn needs(&self) -> (Role, bool) {
        match self {
            Self::Orders { .. } | Self::Events { .. } | Self::Costs { .. } => (Role::Viewer, false),
            Self::Snapshot => (Role::Viewer, true),
            Self::Submit { .. } | Self::Cancel { .. } | Self::Retry { .. } => {
                (Role::Submitter, false)
            }
            Self::Cap { .. }
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Workers
            | Self::Drain { .. } => (Role::Operator, true),
        }
    }
}

impl Store {
    /// Does what is asked for, if these rights allow it.
    pub async fn perform(&self, rights: &Rights, request: Request) -> Result<Value, Refusal> {
        let (role, is_for_all) = request.needs();
        rights.need(role)?;
        if is_for_all && rights.tenant.is_some() {
            return Err(rights.refusal());
        }
        let is = |fence: Fence| value(&(fence == Fence::Held));
        match request {
            Request::Submit {
                orders,
                max_cost_usd,
            } => self.take(rights, &orders, max_cost_usd).await,
            Request::Orders {
                filter,
                after,
                limit,
            } => value(
                &self
                    .page(&rights.within(filter)?, after, limit.clamp(1, PAGE))
                    .await?,
            ),
            Request::Events { order } => {
                self.visible(rights, order).await?;
                value(&self.events(order).await?)
            }
            Request::Cancel { filter } => value(&self.cancel(&rights.chosen(filter)?).await?),
            Request::Retry { filter } => value(&self.retry(&rights.chosen(filter)?).await?),
            Request::Costs { filter } => value(&self.costs(&rights.within(filter)?).await?),
            Request::Snapshot => value(&self.snapshot().await?),
            Request::Cap { scope, usd } => is(self.cap(&scope, dollars(usd)?).await?),
            Request::Pause { kind, name } => {
                self.hold_back(kind, &name).await?;
                is(Fence::Held)
            }
            Request::Resume { kind, name } => is(self.resume(kind, &name).await?),
            Request::Workers => value(&self.workers().await?),
            Request::Drain {
                worker,
                is_draining,
            } => is(self.drain(&worker, is_draining).await?),
        }
    }

    async fn take(
        &self,
        rights: &Rights,
        orders: &[NewOrder],
        cap: Option<f64>,
    ) -> Result<Value, Refusal> {
        for order in orders {
            rights.within(Filter {
                tenant: Some(order.tenant.clone()),
                ..Filter::default()
            })?;
        }
        value(&self.submit(orders, cap.map(dollars).transpose()?).await?)
    }

    /// An order that these rights do not see is none.
    pub async fn visible(&self, rights: &Rights, order: OrderId) -> Result<(), Refusal> {
        rights.need(Role::Viewer)?;
        let only = rights.within(Filter {
            orders: vec![order],
            ..Filter::default()
        })?;
        if self.page(&only, OrderId(0), 1).await?.is_empty() {
            return Err(StoreError::NoOrder(order.0).into());
        }
        Ok(())
    }
}

fn dollars(usd: f64) -> Result<Nanodollars, Refusal> {
    Nanodollars::from_usd(usd)
        .ok_or_else(|| Refusal::Invalid(format!("{usd} is not a valid amount in US dollars")))
}

fn value(answer: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal::Invalid(error.to_string()))
}
