//! The fleet, however it is reached.

use anyhow::Context as _;
use code_commit_fleet_store::{Filter, OrderId, OrderRow, PAGE, Request, Rights, Store};
use code_commit_fleet_worker::Client;
use serde::de::DeserializeOwned;

/// Its database, or a gateway that asks it for the holder of a token.
pub(crate) enum Fleet {
    Database(Box<Store>),
    Gateway(Client),
}

impl Fleet {
    /// Asks for something; what it gives is said at [`Request`].
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: Request) -> anyhow::Result<T> {
        let answer = match self {
            Self::Database(store) => store.perform(&Rights::ALL, request).await?,
            Self::Gateway(gateway) => serde_json::from_slice(&gateway.ask(&request).await?)?,
        };
        serde_json::from_value(answer).context("the answer is of another version")
    }

    /// All orders that the filter means, page by page.
    pub(crate) async fn orders(&self, filter: &Filter) -> anyhow::Result<Vec<OrderRow>> {
        let mut all: Vec<OrderRow> = Vec::new();
        loop {
            let after = all.last().map_or(OrderId(0), |last| last.order);
            let page: Vec<OrderRow> = self
                .ask(Request::Orders {
                    filter: filter.clone(),
                    after,
                    limit: PAGE,
                })
                .await?;
            let is_last = i64::try_from(page.len()).is_ok_and(|rows| rows < PAGE);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The exported run of an order; `None` if there is none, or none any more.
    pub(crate) async fn bundle(&self, order: OrderId) -> anyhow::Result<Option<Vec<u8>>> {
        match self {
            Self::Database(store) => Ok(store.bundle(order).await?),
            Self::Gateway(gateway) => gateway.bundle(order.0).await,
        }
    }
}
