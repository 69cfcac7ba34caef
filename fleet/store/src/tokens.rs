//! Who may ask the gateway for what.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Fence, Store, StoreError, hex};

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Carry out orders, and nothing else.
    Worker,
    /// Look.
    Viewer,
    /// Look, submit, and end or queue again what is its tenant's.
    Submitter,
    /// All of that, and steer: caps, pauses, workers.
    Operator,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Whose it is.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// For whose orders; `None`: for all.
    pub tenant: Option<String>,
    /// RFC 3339, by the database's clock.
    pub made_at: String,
    /// It is refused.
    pub is_revoked: bool,
}

// 244 random bits.
const SECRET: &str = "SELECT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')";
const MAKE: &str = "
    INSERT INTO tokens (sha256, name, role, tenant) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING";
const REVOKE: &str = "UPDATE tokens SET revoked_at = now() WHERE name = $1 AND revoked_at IS NULL";
const COLUMNS: &str = "
    SELECT name, role, tenant, to_char(made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), revoked_at IS NOT NULL
    FROM tokens";

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Worker, Self::Viewer, Self::Submitter, Self::Operator];

    /// As in the database and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Store {
    /// A new token, whose secret is said only here; `None` if the name is taken. A worker's has no tenant: it would be believed to
    /// get the orders of that tenant alone.
    pub async fn make_token(
        &self,
        name: &str,
        role: Role,
        tenant: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        if role == Role::Worker && tenant.is_some() {
            return Err(StoreError::WorkerOfTenant);
        }
        let client = self.client().await?;
        let secret: String = client.query_one(SECRET, &[]).await?.get(0);
        let made = client
            .execute(MAKE, &[&hash(&secret), &name, &role.word(), &tenant])
            .await?;
        Ok((made == 1).then_some(secret))
    }

    /// From now on it is refused. `Gone` if there is none of this name.
    pub async fn revoke_token(&self, name: &str) -> Result<Fence, StoreError> {
        Ok(Fence::of(
            self.client().await?.execute(REVOKE, &[&name]).await?,
        ))
    }

    /// All of them.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let rows = self
            .client()
            .await?
            .query(&format!("{COLUMNS} ORDER BY name"), &[])
            .await?;
        Ok(rows.iter().map(token).collect())
    }

    /// Whose secret it is; `None` if it is nobody's, or revoked. The database compares hashes, so the time that it takes tells
    /// nothing of the secret.
    pub async fn token(&self, secret: &str) -> Result<Option<Token>, StoreError> {
        let client = self.client().await?;
        let find = format!("{COLUMNS} WHERE sha256 = $1 AND revoked_at IS NULL");
        let found = client
            .query_opt(&client.prepare_cached(&find).await?, &[&hash(secret)])
            .await?;
        Ok(found.as_ref().map(token))
    }
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

fn token(row: &tokio_postgres::Row) -> Token {
    let role: &str = row.get(1);
    Token {
        name: row.get(0),
        // The table has no other words; the least right is the safe reading.
        role: Role::ALL
            .into_iter()
            .find(|known| known.word() == role)
            .unwrap_or(Role::Worker),
        tenant: row.get(2),
        made_at: row.get(3),
        is_revoked: row.get(4),
    }
}
