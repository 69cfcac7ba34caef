//! The protocol between workers and the gateway: JSON over HTTP, on a Unix socket or with a token over TCP.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `POST /v1/lease` | [`Ask`] | 200 [`Lease`], or 204: nothing came within `wait_ms` |
//! | `POST /v1/beat` | [`Held`] | 204, or 410: the lease is gone, end the order |
//! | `PUT /v1/artifact/TOKEN` | the bytes | 200 [`Stored`] |
//! | `POST /v1/finish` | [`Finish`] | 204, or 410 |
//! | `POST /v1/lost` | [`Lost`] | 204, or 410 |
//! | `POST /v1/fleet` | what the fleet's `store` calls a request | 200 what it says there; 403, 422 with a reason |
//! | `GET /v1/bundle/ORDER` | | 200 the bytes, or 404 |
//!
//! The token of a lease is the fence: it is new for each lease, and whoever has an old one is refused. This crate holds data only.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The newest record that this version can make and read. An order may ask for a newer one than a worker knows.
pub const RECORD: i32 = 2;

/// A worker asks for an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// Its name, for people.
    pub worker: String,
    /// The version of its program, for people.
    pub version: String,
    /// The newest record that it knows.
    pub record: i32,
    /// How long the gateway may wait for an order.
    pub wait_ms: u64,
}

/// An order and the right to carry it out until the lease lapses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The order.
    pub order: i64,
    /// How often it has been leased, this time included.
    pub epoch: i32,
    /// The fence, and the program's way to the models.
    pub token: Uuid,
    /// The hub.
    pub repo: String,
    /// The commit that the order changes; the last one of a train.
    pub base: String,
    /// As for `--llm-model`.
    pub model: String,
    /// The order as it was submitted; of a train, its [`Member`]s.
    pub content: String,
    /// Where the result goes: a new name for each lease, so that a stale worker cannot touch another's.
    pub reference: String,
    /// Nothing is to be changed: the acceptance commands of all members have to pass on `base`.
    #[serde(default)]
    pub is_train: bool,
    /// The worker beats at least this often.
    pub beat_ms: u64,
    /// The span of this lease, as W3C Trace Context has it.
    #[serde(default)]
    pub traceparent: Option<String>,
}

/// An order whose result is part of a train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The order.
    pub order: i64,
    /// As it was submitted.
    pub content: String,
}

/// Which order and which of its leases a name in the hub belongs to, where this fleet gave it; `None` for all other names.
pub fn of_result_ref(fleet: &str, name: &str) -> Option<(i64, i32)> {
    let own = name
        .strip_prefix("refs/fleet/")?
        .strip_prefix(fleet)?
        .strip_prefix('/')?;
    let (order, epoch) = own.split_once('/')?;
    Some((order.parse().ok()?, epoch.parse().ok()?))
}

/// Names a lease.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Held {
    /// Its token.
    pub token: Uuid,
}

/// An artifact was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// In hex.
    pub sha256: String,
}

/// An order has ended with a verdict.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finish {
    /// The lease.
    pub token: Uuid,
    /// Its verdict.
    pub verdict: Verdict,
    /// The exported run, stored before.
    pub bundle: Option<String>,
    /// Of the program.
    pub elapsed_ms: i64,
}

/// The verdict on an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// PASS; the commit is in the hub at [`Lease::result_ref`].
    Passed {
        /// The commit.
        commit: String,
    },
    /// FAIL.
    Failed {
        /// The stage at which it ended.
        reason: String,
    },
    /// The model could not be reached or may not be used.
    NoModel {
        /// The program's last line.
        reason: String,
    },
}

/// The reason of a train whose commands fail for these orders.
pub fn failing(orders: &[i64]) -> String {
    let orders: Vec<String> = orders.iter().map(i64::to_string).collect();
    format!("{FAILING}{}", orders.join(", "))
}

/// The orders that a reason names, as [`failing`] writes it; none if it is another one.
pub fn of_failing(reason: &str) -> Vec<i64> {
    let orders = reason.strip_prefix(FAILING).unwrap_or_default();
    orders
        .split(", ")
        .filter_map(|order| order.parse().ok())
        .collect()
}

const FAILING: &str = "acceptance commands fail for orders ";

/// Whether this is the id of a commit, in full.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A worker gives an order back without a verdict: the machine is to blame, or it shuts down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lost {
    /// The lease.
    pub token: Uuid,
    /// For people.
    pub reason: String,
    /// Whether it counts against the order; a worker that drains did nothing wrong, and neither did the order.
    pub counts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_orders_that_it_was_written_for() {
        assert_eq!(of_failing(&failing(&[7, 12])), [7, 12]);
        assert!(of_failing("its lease lapsed").is_empty());
    }

    #[test]
    fn only_a_whole_id_is_a_commit() {
        assert!(is_commit(&"a1".repeat(20)));
        for other in ["", "main", "+main", &"A1".repeat(20), &"a1".repeat(21)] {
            assert!(!is_commit(other), "{other}");
        }
    }

    #[test]
    fn only_names_of_this_fleet_are_results_of_its_orders() {
        assert_eq!(of_result_ref("0a1b", "refs/fleet/0a1b/7/2"), Some((7, 2)));
        for other in [
            "refs/heads/main",
            "refs/fleet/7/2",
            "refs/fleet/other/7/2",
            "refs/fleet/0a1b/7/2/3",
        ] {
            assert_eq!(of_result_ref("0a1b", other), None, "{other}");
        }
    }
}
