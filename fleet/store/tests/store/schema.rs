use code_commit_fleet_store::StoreError;

use super::*;

#[tokio::test]
async fn an_empty_database_is_refused_with_the_command_that_helps() {
    let Some(database) = Database::create().unwrap() else { return };
    let error = Store::open(&database.address()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the database has schema 0, and this version needs 3; run `code-commit-fleet migrate`"
    );
    Store::migrate(&database.address()).await.unwrap();
    Store::open(&database.address()).await.unwrap();
}

#[tokio::test]
async fn migrations_at_the_same_time_wait_for_each_other() {
    let Some(database) = Database::create().unwrap() else { return };
    let all: Vec<_> = (0..4)
        .map(|_| {
            let address = database.address();
            tokio::spawn(async move { Store::migrate(&address).await.map(drop) })
        })
        .collect();
    for migrated in all {
        migrated.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let Some(database) = Database::create().unwrap() else { return };
    Store::migrate(&database.address()).await.unwrap();
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (999, 'later', '', '0')";
    database.query(newer).unwrap();
    for refused in [Store::open(&database.address()).await, Store::migrate(&database.address()).await] {
        assert!(matches!(refused, Err(StoreError::Newer { found: 999, known: 3 })));
    }
}
