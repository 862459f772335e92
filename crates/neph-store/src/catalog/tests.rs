use std::collections::BTreeSet;

use rusqlite::Connection;

use super::*;

fn database_path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("catalog.sqlite");
    (folder, path)
}

fn version(path: &Path) -> u32 {
    Connection::open(path)
        .and_then(|connection| {
            connection.query_row("SELECT version FROM schema_version", [], |row| row.get(0))
        })
        .expect("a versioned catalog")
}

#[test]
fn a_newer_catalog_is_refused_for_reading_and_writing() {
    let (_folder, path) = database_path();
    drop(Catalog::open(&path, Access::Write).expect("a new catalog"));
    let connection = Connection::open(&path).expect("a catalog");
    connection
        .execute("UPDATE schema_version SET version = 99", [])
        .expect("changed");
    drop(connection);
    for access in [Access::Read, Access::Write] {
        let error = Catalog::open(&path, access).expect_err("newer").to_string();
        assert!(error.contains("schema version 99"), "{error}");
    }
    assert_eq!(version(&path), 99);
}

#[test]
fn migrations_run_in_order_and_once_and_only_for_a_writer() {
    let (_folder, path) = database_path();
    let first_steps = ["CREATE TABLE one (a INTEGER) STRICT; INSERT INTO one VALUES (1)"];
    let steps = [
        first_steps[0],
        "ALTER TABLE one ADD COLUMN b INTEGER; UPDATE one SET b = a + 1",
    ];
    let mut connection = Connection::open(&path).expect("a new file");
    migrate::migrate_to_newest(&mut connection, &path, &first_steps).expect("version 1");
    let error = migrate::check(&connection, &path, &steps).expect_err("older");
    assert!(
        matches!(
            error,
            StoreError::OlderSchema {
                found: 1,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
    for _ in 0..2 {
        migrate::migrate_to_newest(&mut connection, &path, &steps).expect("version 2");
    }
    migrate::check(&connection, &path, &steps).expect("up to date");
    let sum: i64 = connection
        .query_row("SELECT sum(a + b) FROM one", [], |row| row.get(0))
        .expect("one row");
    assert_eq!((sum, version(&path)), (3, 2));
}

#[test]
fn a_failing_migration_keeps_the_previous_version() {
    let (_folder, path) = database_path();
    let mut connection = Connection::open(&path).expect("a new file");
    let working_steps = ["CREATE TABLE one (a INTEGER) STRICT"];
    migrate::migrate_to_newest(&mut connection, &path, &working_steps).expect("version 1");
    let failing_steps = [
        working_steps[0],
        "CREATE TABLE two (a INTEGER) STRICT; NO SUCH THING",
    ];
    migrate::migrate_to_newest(&mut connection, &path, &failing_steps).expect_err("a wrong step");
    assert_eq!(version(&path), 1);
    connection
        .execute("SELECT * FROM two", [])
        .expect_err("not made");
}

#[test]
fn a_campaign_of_version_1_survives_the_migration_to_2() {
    let (_folder, path) = database_path();
    let mut connection = Connection::open(&path).expect("a new file");
    migrate::migrate_to_newest(&mut connection, &path, &migrate::MIGRATIONS[..1])
        .expect("version 1");
    connection.execute(
        "INSERT INTO campaigns VALUES ('018f3b1e-7c2a-7000-8000-000000000001', 'old', 'version = 1',
            'ab', 'plan.toml', '7', 'random', 2, 'interrupted', 5, NULL)",
        [],
    )
    .expect("a campaign of version 1");
    drop(connection);
    let catalog = Catalog::open(&path, Access::Write).expect("brought up to date");
    let campaigns = catalog.campaigns().expect("campaigns");
    assert_eq!(campaigns.len(), 1);
    let old_campaign = &campaigns[0];
    assert_eq!(
        (
            old_campaign.name.as_str(),
            old_campaign.seed,
            old_campaign.blocks
        ),
        ("old", 7, 2)
    );
    assert_eq!(
        (&old_campaign.topology_text, &old_campaign.topology_hash),
        (&None, &None)
    );
}

/// docs/schema.md lists every table and column of the catalog below its table's heading.
#[test]
fn the_docs_describe_every_catalog_column() {
    let (_folder, path) = database_path();
    let catalog = Catalog::open(&path, Access::Write).expect("a new catalog");
    let page = include_str!("../../../../docs/schema.md");
    let columns: BTreeSet<(String, String)> = catalog
        .connection
        .prepare(
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
             WHERE t.type = 'table'",
        )
        .expect("a query")
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("rows")
        .collect::<rusqlite::Result<_>>()
        .expect("texts");
    assert!(columns.len() > 80, "{} columns", columns.len());
    for (table, column) in columns {
        let heading = format!("### `{table}`");
        let section = page
            .split("\n### ")
            .find(|candidate| format!("### {candidate}").starts_with(&heading));
        let section = section.unwrap_or_else(|| panic!("docs/schema.md lacks {heading}"));
        assert!(
            section.contains(&format!("| `{column}` |")),
            "{table} lacks {column}"
        );
    }
}
