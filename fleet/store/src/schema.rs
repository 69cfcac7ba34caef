//! Migrations, forward only.

use crate::{Store, StoreError};

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// Any number; migrations of one database wait for each other.
const LOCK: &str = "SELECT pg_advisory_lock(7310438)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(7310438)";
const APPLIED: &str =
    "SELECT CASE WHEN to_regclass('refinery_schema_history') IS NULL THEN 0 ELSE 1 END";
const VERSION: &str = "SELECT coalesce(max(version), 0)::int FROM refinery_schema_history";

/// The newest schema that this version knows.
fn known() -> i32 {
    let versions = embedded::migrations::runner();
    versions
        .get_migrations()
        .iter()
        .map(refinery::Migration::version)
        .max()
        .unwrap_or(0)
}

/// Fails unless the schema is the one that this version was written for.
pub(crate) async fn check(store: &Store) -> Result<(), StoreError> {
    match (found(store).await?, known()) {
        (found, known) if found > known => Err(StoreError::Newer { found, known }),
        (found, known) if found < known => Err(StoreError::Older { found, known }),
        _ => Ok(()),
    }
}

/// Applies what is missing. A newer schema is refused: an older program would write rows that break its rules.
pub(crate) async fn migrate(store: &Store) -> Result<(), StoreError> {
    let lock = store.client().await?;
    lock.batch_execute(LOCK).await?;
    let migrated = migrate_alone(store).await;
    lock.batch_execute(UNLOCK).await?;
    migrated
}

async fn migrate_alone(store: &Store) -> Result<(), StoreError> {
    let (found, known) = (found(store).await?, known());
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    let mut client = store.client().await?;
    embedded::migrations::runner()
        .run_async(&mut **client.as_mut())
        .await?;
    Ok(())
}

async fn found(store: &Store) -> Result<i32, StoreError> {
    let client = store.client().await?;
    let applied: i32 = client.query_one(APPLIED, &[]).await?.get(0);
    Ok(if applied == 0 {
        0
    } else {
        client.query_one(VERSION, &[]).await?.get(0)
    })
}
