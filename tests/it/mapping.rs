//! How structs become tables: embedded structs, newtypes, keys of several columns, what the database computes.

use anabranch::{
    entity::{Entity, ForeignKeyAction},
    error::{ErrorKind, Result},
    prelude::*,
    sql::Executor,
    value::Value,
};
use anabranch_tests::{Mode, ask};
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(rename_all = "camelCase", index(columns(name, home.city), name = "by_city", unique))]
struct Customer {
    #[entity(id, autoincrement)]
    id: CustomerId,
    #[entity(collate = "NOCASE", index(unique, where = "name <> ''"))]
    name: Name,
    #[entity(embed)]
    home: Address,
    #[entity(embed, prefix = "w_")]
    work: Option<Address>,
    #[entity(default = Level::Basic)]
    level: Level,
    #[entity(created_at)]
    registered: DateTime<Utc>,
    #[entity(updated_at)]
    last_change: Option<DateTime<Utc>>,
    #[entity(skip)]
    cached: Option<String>,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EntityNewtype)]
#[entity(key)]
struct CustomerId(i64);

#[derive(Debug, Clone, PartialEq, EntityNewtype)]
struct Name(String);

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Address {
    street: Option<String>,
    #[entity(index)]
    city: String,
    #[entity(embed, prefix = "")]
    place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
#[entity(rename_all = "UPPERCASE")]
struct Place {
    latitude: f64,
    longitude: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, EntityEnum)]
#[entity(rename_all = "snake_case")]
enum Level {
    Basic,
    VeryGood,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid)]
struct Line {
    #[entity(id, references = Invoice, on_delete = Cascade)]
    invoice: i64,
    #[entity(id)]
    number: i64,
    price: i64,
    quantity: i64,
    #[entity(generated = "price * quantity")]
    total: i64,
    #[entity(generated = "'line ' || number", stored, index)]
    label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Invoice {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer, on_delete = Restrict)]
    customer: Option<CustomerId>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(columns(invoice, line), references = Line, on_delete = Cascade))]
struct Remark {
    #[entity(id)]
    id: Uuid,
    invoice: i64,
    line: i64,
    text: String,
}

type All = (Customer, Invoice, Line, Remark);

fn address(city: &str) -> Address {
    Address {
        street: None,
        city: city.to_owned(),
        place: None,
    }
}

fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId(0),
        name: Name(name.to_owned()),
        home: address("Delft"),
        work: None,
        level: Level::VeryGood,
        registered: DateTime::default(),
        last_change: None,
        cached: Some("not kept".to_owned()),
        version: 0,
    }
}

const fn line(invoice: i64, number: i64, price: i64, quantity: i64) -> Line {
    Line {
        invoice,
        number,
        price,
        quantity,
        total: 0,
        label: None,
    }
}

async fn open(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<All>().await.unwrap();
    db
}

#[test]
fn embedded_structs_are_columns_with_prefixed_names() {
    let names: Vec<_> = Customer::TABLE
        .columns
        .iter()
        .map(|column| column.name)
        .collect();
    assert_eq!(
        names,
        [
            "id",
            "name",
            "home_street",
            "home_city",
            "home_LATITUDE",
            "home_LONGITUDE",
            "w_street",
            "w_city",
            "w_LATITUDE",
            "w_LONGITUDE",
            "level",
            "registered",
            "lastChange",
            "version"
        ]
    );
    let city = Customer::WORK.then(Address::CITY);
    assert_eq!(city.definition().name, "w_city");
    assert_eq!(city.definition().field, "work.city");
    assert!(city.definition().nullable && city.definition().index);
    let latitude = Customer::HOME.then(Address::PLACE).then(Place::LATITUDE);
    assert_eq!(latitude.definition().name, "home_LATITUDE");
    assert!(latitude.definition().nullable);
    assert!(!Customer::HOME.then(Address::CITY).definition().nullable);
}

#[test]
fn a_key_of_several_columns_is_a_tuple() {
    assert_eq!(line(3, 4, 1, 1).key(), (3, 4));
    assert_eq!(Line::TABLE.key, [0, 1]);
    let key = Remark::TABLE.foreign_keys[0];
    assert_eq!(key.columns, [1, 2]);
    assert_eq!((key.reference.table)().name, "line");
    assert_eq!(key.reference.on_delete, ForeignKeyAction::Cascade);
}

#[tokio::test]
async fn embedded_structs_and_newtypes_come_back_as_they_were() {
    for mode in Mode::ALL {
        let db = open(mode).await;
        let mut ctx = db.context();
        let mut with_work = customer("Ada");
        with_work.work = Some(Address {
            street: Some("Canal".to_owned()),
            place: Some(Place {
                latitude: 52.01,
                longitude: 4.36,
            }),
            ..address("Leiden")
        });
        let ada = ctx.add(with_work.clone());
        let bob = ctx.add(customer("Bob"));
        ctx.save_changes().await.unwrap();
        assert_eq!((ctx[ada].id, ctx[bob].id), (CustomerId(1), CustomerId(2)));
        let read = Customer::find(&db, ctx[ada].id).await.unwrap().unwrap();
        assert_eq!(
            read,
            Customer {
                cached: None,
                ..ctx[ada].clone()
            }
        );
        assert_eq!(read.work, with_work.work);

        ctx[ada].work = None;
        ctx[bob].home.city = "Gouda".to_owned();
        assert_eq!(ctx.save_changes().await.unwrap().updated, 2);
        let found = Customer::query()
            .filter(Customer::HOME.then(Address::CITY).starts_with("Gou"))
            .filter(Customer::WORK.then(Address::CITY).is_null())
            .filter(Customer::NAME.eq(Name("bob".to_owned())))
            .one(&db)
            .await
            .unwrap();
        assert_eq!(found.id, CustomerId(2));
        assert_eq!(
            Customer::find(&db, CustomerId(1))
                .await
                .unwrap()
                .unwrap()
                .work,
            None
        );
    }
}

#[tokio::test]
async fn half_an_embedded_struct_is_a_decode_error() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.add(customer("Ada"));
    ctx.save_changes().await?;
    db.write(async |tx| {
        sqlx::query("UPDATE customer SET w_street = 'Canal'")
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await?;
    let error = Customer::find(&db, CustomerId(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(
        (error.table(), error.column()),
        (Some("customer"), Some("w_city"))
    );
    Ok(())
}

#[tokio::test]
async fn a_key_with_autoincrement_is_never_given_again() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.add(customer("Ada"));
    let bob = ctx.add(customer("Bob"));
    ctx.save_changes().await?;
    ctx.remove(bob);
    ctx.save_changes().await?;
    db.close().await?;
    // A new engine does not remember; the file does.
    let file = tempfile::NamedTempFile::new().unwrap();
    let db = Database::open(file.path()).await?;
    db.create_tables::<All>().await?;
    let mut ctx = db.context();
    let first = ctx.add(customer("Ada"));
    ctx.save_changes().await?;
    ctx.remove(first);
    ctx.save_changes().await?;
    db.close().await?;
    let db = Database::open(file.path()).await?;
    let mut ctx = db.context();
    let second = ctx.add(customer("Bob"));
    ctx.save_changes().await?;
    assert_eq!(ctx[second].id, CustomerId(2));
    Ok(())
}

#[tokio::test]
async fn references_in_keys_get_the_real_key_at_save() {
    for mode in Mode::ALL {
        let db = open(mode).await;
        let mut ctx = db.context();
        let invoice = ctx.add(Invoice {
            id: 0,
            customer: None,
        });
        let id = ctx[invoice].id;
        let first = ctx.add(line(id, 1, 10, 3));
        let second = ctx.add(line(id, 2, 7, 2));
        let remark = ctx.add(Remark {
            id: Uuid::nil(),
            invoice: id,
            line: 2,
            text: "cold".to_owned(),
        });
        ctx.save_changes().await.unwrap();
        let id = ctx[invoice].id;
        assert!(id > 0);
        assert_eq!(ctx[first].key(), (id, 1));
        assert_eq!(ctx[remark].invoice, id);
        assert_eq!(ctx.find::<Line>((id, 2)).await.unwrap(), Some(second));
        let read = Line::find(&db, (id, 2)).await.unwrap().unwrap();
        assert_eq!(read, ctx[second]);
        assert_eq!(Line::find(&db, (id, 9)).await.unwrap(), None);

        ctx[second].price = 8;
        ctx.save_changes().await.unwrap();
        ctx.remove(second);
        ctx.save_changes().await.unwrap();
        assert_eq!(Remark::query().count(&db).await.unwrap(), 0);
        assert_eq!(Line::query().count(&db).await.unwrap(), 1);
    }
}

/// The second column of a key is not found by the key's index, and may be unique by itself.
#[tokio::test]
async fn a_part_of_a_key_may_have_an_index_or_be_unique() -> Result<()> {
    #[derive(Debug, Entity)]
    struct Seat {
        #[entity(id)]
        room: i64,
        #[entity(id, index)]
        row: i64,
        #[entity(id, unique)]
        guest: String,
    }
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Seat>().await?;
    let mut ctx = db.context();
    for room in [1, 2] {
        ctx.add(Seat {
            room,
            row: 1,
            guest: "Ada".to_owned(),
        });
    }
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    let index = ask("SELECT count(*) FROM sqlite_schema WHERE name = 'seat_row'");
    assert_eq!(Executor::read(&db, index).await?, [Value::Integer(1)]);
    Ok(())
}

#[tokio::test]
async fn a_conflict_names_all_columns_of_the_key() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    let invoice = ctx.add(Invoice {
        id: 0,
        customer: None,
    });
    let one = ctx.add(line(ctx[invoice].id, 1, 10, 3));
    ctx.save_changes().await?;
    db.write(async |tx| {
        sqlx::query("DELETE FROM line").execute(&mut *tx).await?;
        Ok(())
    })
    .await?;
    ctx[one].price = 11;
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.is_conflict());
    let key = [1.into(), 1.into()].map(Value::Integer);
    assert_eq!(error.conflicts()[0].key, key);
    assert_eq!(error.key(), key);

    ctx[one].number = 5;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.column(), Some("number"));
    Ok(())
}

#[tokio::test]
async fn what_the_database_computes_is_read_back() {
    for mode in Mode::ALL {
        let db = open(mode).await;
        let mut ctx = db.context();
        let invoice = ctx.add(Invoice {
            id: 0,
            customer: None,
        });
        let one = ctx.add(line(ctx[invoice].id, 1, 10, 3));
        ctx.save_changes().await.unwrap();
        assert_eq!(
            (ctx[one].total, ctx[one].label.as_deref()),
            (30, Some("line 1"))
        );
        assert_eq!(ctx.entry(one).state(), EntityState::Unchanged);

        ctx[one].quantity = 4;
        ctx[one].total = 99; // not the application's: passed over
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[one].total, 40);
        assert_eq!(
            Line::find(&db, ctx[one].key()).await.unwrap().unwrap(),
            ctx[one]
        );
        assert!(!ctx.has_changes());
    }
}

#[tokio::test]
async fn times_of_saves_are_kept() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    let before = Utc::now();
    let ada = ctx.add(customer("Ada"));
    let old = DateTime::UNIX_EPOCH + TimeDelta::days(9_000);
    let bob = ctx.add(Customer {
        registered: old,
        ..customer("Bob")
    });
    ctx.save_changes().await?;
    let registered = ctx[ada].registered;
    assert!(registered >= before && registered <= Utc::now());
    assert_eq!(ctx[ada].last_change, Some(registered));
    assert_eq!(ctx[bob].registered, old, "what is set stays");
    let start = Some(DateTime::UNIX_EPOCH);
    let eve = ctx.add(Customer {
        last_change: start,
        ..customer("Eve")
    });
    ctx.save_changes().await?;
    assert_eq!(
        ctx[eve].last_change, start,
        "of an Option only None is unset"
    );
    assert_eq!(
        ctx[bob].last_change,
        Some(registered),
        "one time for the whole save"
    );

    ctx[ada].level = Level::Basic;
    ctx.save_changes().await?;
    assert_eq!(ctx[ada].registered, registered);
    assert!(ctx[ada].last_change > Some(registered));
    let read = Customer::find(&db, ctx[ada].id).await?.unwrap();
    assert_eq!(
        (read.registered, read.last_change),
        (registered, ctx[ada].last_change)
    );
    assert_eq!(
        ctx.save_changes().await?.updated,
        0,
        "a time alone is no change"
    );
    Ok(())
}

#[tokio::test]
async fn a_save_that_fails_leaves_times_and_computed_values_alone() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.add(customer("Ada"));
    ctx.save_changes().await?;
    let twin = ctx.add(customer("ada"));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert_eq!(ctx[twin].registered, DateTime::<Utc>::default());
    assert_eq!(ctx[twin].last_change, None);
    ctx[twin].name = Name("Eve".to_owned());
    ctx.save_changes().await?;
    assert!(ctx[twin].registered > DateTime::UNIX_EPOCH);
    Ok(())
}

#[tokio::test]
async fn unique_values_of_several_columns_may_move_within_a_save() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    let gone = ctx.add(customer("x"));
    ctx.save_changes().await?;
    // The unique index on name and city: a deleted row makes room for a new one, and a changed one too.
    ctx.remove(gone);
    let again = ctx.add(customer("x"));
    ctx.save_changes().await?;
    ctx[again].name = Name("y".to_owned());
    ctx.add(customer("x"));
    ctx.save_changes().await?;
    assert_eq!(Customer::query().count(&db).await?, 2);
    Ok(())
}

#[tokio::test]
async fn the_definition_in_the_file_is_what_was_declared() -> Result<()> {
    let db = open(Mode::Inline).await;
    let sql: Vec<String> = db
        .write(async |tx| {
            Ok(sqlx::query_scalar(
                "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
            )
            .fetch_all(&mut *tx)
            .await?)
        })
        .await?;
    expect_test::expect![[r#"
        CREATE TABLE "customer" (
          "id" INTEGER PRIMARY KEY AUTOINCREMENT,
          "name" TEXT NOT NULL COLLATE "NOCASE",
          "home_street" TEXT,
          "home_city" TEXT NOT NULL,
          "home_LATITUDE" REAL,
          "home_LONGITUDE" REAL,
          "w_street" TEXT,
          "w_city" TEXT,
          "w_LATITUDE" REAL,
          "w_LONGITUDE" REAL,
          "level" TEXT NOT NULL DEFAULT 'basic',
          "registered" TEXT NOT NULL,
          "lastChange" TEXT,
          "version" INTEGER NOT NULL
        ) STRICT
        CREATE INDEX "customer_home_city" ON "customer" ("home_city")
        CREATE INDEX "customer_w_city" ON "customer" ("w_city")
        CREATE UNIQUE INDEX "customer_name" ON "customer" ("name") WHERE name <> ''
        CREATE UNIQUE INDEX "by_city" ON "customer" ("name", "home_city")
        CREATE TABLE "invoice" (
          "id" INTEGER PRIMARY KEY,
          "customer" INTEGER REFERENCES "customer" ("id") ON DELETE RESTRICT
        ) STRICT
        CREATE TABLE "line" (
          "invoice" INTEGER NOT NULL REFERENCES "invoice" ("id") ON DELETE CASCADE,
          "number" INTEGER NOT NULL,
          "price" INTEGER NOT NULL,
          "quantity" INTEGER NOT NULL,
          "total" INTEGER NOT NULL GENERATED ALWAYS AS (price * quantity) VIRTUAL,
          "label" TEXT GENERATED ALWAYS AS ('line ' || number) STORED,
          PRIMARY KEY ("invoice", "number")
        ) STRICT, WITHOUT ROWID
        CREATE INDEX "line_label" ON "line" ("label")
        CREATE TABLE "remark" (
          "id" BLOB PRIMARY KEY NOT NULL,
          "invoice" INTEGER NOT NULL,
          "line" INTEGER NOT NULL,
          "text" TEXT NOT NULL,
          FOREIGN KEY ("invoice", "line") REFERENCES "line" ("invoice", "number") ON DELETE CASCADE
        ) STRICT"#]]
    .assert_eq(&sql.join("\n"));
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Profile {
    #[entity(id, references = Customer)]
    id: CustomerId,
    text: String,
}

#[tokio::test]
async fn a_shared_primary_key_is_that_of_the_other_entity_or_asked_for() {
    let db = open(Mode::Inline).await;
    db.create_tables::<Profile>().await.unwrap();
    let mut ctx = db.context();
    let ada = ctx.add(customer("Ada"));
    let profile = ctx.add(Profile {
        id: CustomerId(0),
        text: "x".to_owned(),
    });
    assert_eq!(ctx[profile].id, CustomerId(0));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(
        error.to_string(),
        "profile.id: the key is that of the Customer: set it"
    );
    ctx[profile].id = ctx[ada].id;
    assert_eq!(ctx.save_changes().await.unwrap().inserted, 2);
    assert_eq!(ctx[profile].id, ctx[ada].id);
    let key = ctx[ada].id;
    assert_eq!(ctx.find::<Profile>(key).await.unwrap(), Some(profile));
}
