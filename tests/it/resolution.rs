//! Lost races, resolved and saved again.

use anabranch::{context::Winner, prelude::*};
use anabranch_tests::{Mode, execute};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Item {
    #[entity(id)]
    id: i64,
    name: String,
    price: i64,
    weight: Option<f64>,
    #[entity(version)]
    version: i64,
}

fn item(name: &str) -> Item {
    Item {
        id: 0,
        name: name.to_owned(),
        price: 1,
        weight: None,
        version: 0,
    }
}

async fn shop(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Item>().await.unwrap();
    let mut ctx = db.context();
    ctx.add(item("pot"));
    ctx.add(item("lid"));
    ctx.save_changes().await.unwrap();
    db
}

async fn stored(db: &Database, id: i64) -> Option<Item> {
    Item::find(db, id).await.unwrap()
}

/// A context in which the name of item 1 is changed and item 2 removed, while others changed prices and versions.
async fn lost(db: &Database) -> (Context<'static>, Tracked<Item>, Tracked<Item>, Error) {
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
    ctx[pot].name = "kettle".to_owned();
    ctx.remove(lid);
    execute(db, "UPDATE item SET price = 9, version = 7").await;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.conflicts().len(), 2);
    (ctx, pot, lid, error)
}

#[tokio::test]
async fn the_client_wins_the_whole_entity_and_the_delete() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let (mut ctx, pot, lid, error) = lost(&db).await;
        ctx.client_wins(&error).unwrap();
        assert_eq!(ctx.entry(pot).modified_columns(), ["name", "price"]);
        let saved = ctx.save_changes().await.unwrap();
        assert_eq!((saved.updated, saved.deleted), (1, 1));
        let row = stored(&db, 1).await.unwrap();
        assert_eq!(
            (row.name.as_str(), row.price, row.version),
            ("kettle", 1, 8)
        );
        assert_eq!(ctx[pot], row);
        assert_eq!(ctx.entry(lid).state(), EntityState::Detached);
        assert_eq!(stored(&db, 2).await, None);
    }
}

#[tokio::test]
async fn the_store_wins_the_whole_entity_and_the_delete() {
    let db = shop(Mode::Inline).await;
    let (mut ctx, pot, lid, error) = lost(&db).await;
    ctx.store_wins(&error).unwrap();
    assert!(!ctx.has_changes());
    assert_eq!(Some(&ctx[pot]), stored(&db, 1).await.as_ref());
    assert_eq!(Some(&ctx[lid]), stored(&db, 2).await.as_ref());
    ctx[lid].price = 10;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
}

#[tokio::test]
async fn a_merge_takes_both_sides_and_asks_about_the_rest() {
    let db = shop(Mode::Inline).await;
    let (mut ctx, pot, lid, error) = lost(&db).await;
    let refused = ctx.merge(&error).unwrap_err();
    assert_eq!(refused.conflicts().len(), 1, "the delete alone");
    assert!(refused.conflicts()[0].deletes);
    assert_eq!(
        ctx.entry(pot).modified_columns(),
        ["name"],
        "nothing is changed"
    );

    ctx[pot].weight = Some(2.0);
    execute(&db, "UPDATE item SET weight = 3 WHERE id = 1").await;
    // The error knows nothing of that weight: the row is not as it was then, but its version is.
    ctx.merge_with(&error, |clash| {
        assert_eq!(clash.column(), None);
        Winner::Store
    })
    .unwrap();
    assert_eq!(ctx.entry(lid).state(), EntityState::Unchanged);
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    let row = stored(&db, 1).await.unwrap();
    assert_eq!(
        (row.name.as_str(), row.price, row.weight),
        ("kettle", 9, Some(2.0))
    );
    assert_eq!(ctx[pot], row);
}

#[tokio::test]
async fn clashing_columns_are_named_and_decided_one_by_one() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx[pot].name = "kettle".to_owned();
    ctx[pot].price = 5;
    ctx[pot].weight = Some(1.0);
    execute(
        &db,
        "UPDATE item SET name = 'pan', price = 9, weight = 1.0, version = 7",
    )
    .await;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.conflicts()[0].clashing, ["name", "price"]);
    let refused = ctx.merge(&error).unwrap_err();
    assert!(refused.is_conflict());
    assert_eq!(refused.column(), Some("name, price"));
    ctx.merge_with(&refused, |clash| {
        if clash.is(Item::NAME) {
            Winner::Client
        } else {
            Winner::Store
        }
    })
    .unwrap();
    ctx.save_changes().await.unwrap();
    let row = stored(&db, 1).await.unwrap();
    assert_eq!(
        (row.name.as_str(), row.price, row.weight),
        ("kettle", 9, Some(1.0))
    );
}

#[tokio::test]
async fn rows_that_are_gone_come_back_or_are_forgotten() {
    for mode in Mode::ALL {
        for store in [false, true] {
            let db = shop(mode).await;
            let mut ctx = db.context();
            let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
            let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
            ctx[pot].price = 5;
            ctx.remove(lid);
            execute(&db, "DELETE FROM item").await;
            let error = ctx.save_changes().await.unwrap_err();
            if store {
                ctx.store_wins(&error).unwrap();
                assert!(ctx.is_empty());
            } else {
                ctx.client_wins(&error).unwrap();
                assert_eq!(ctx.entry(pot).state(), EntityState::Added);
            }
            assert_eq!(ctx.entry(lid).state(), EntityState::Detached);
            let saved = ctx.save_changes().await.unwrap();
            assert_eq!(saved.inserted, usize::from(!store));
            assert_eq!(stored(&db, 1).await.as_ref(), ctx.get(pot));
        }
    }
}

#[tokio::test]
async fn two_that_write_in_turns_both_get_through() {
    let db = shop(Mode::Inline).await;
    let mut ctx = db.context();
    let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
    ctx[pot].name = "kettle".to_owned();
    let mut rounds = 0;
    execute(
        &db,
        "UPDATE item SET price = price + 1, version = version + 1",
    )
    .await;
    while let Err(error) = ctx.save_changes().await {
        assert!(error.is_conflict(), "{error}");
        ctx.merge(&error).unwrap();
        rounds += 1;
        if rounds < 4 {
            execute(
                &db,
                "UPDATE item SET price = price + 1, version = version + 1",
            )
            .await;
        }
    }
    let row = stored(&db, 1).await.unwrap();
    assert_eq!((rounds, row.name.as_str(), row.price), (4, "kettle", 5));
}

#[tokio::test]
async fn a_conflict_in_a_transaction_is_resolved_inside_of_it() {
    let db = shop(Mode::Inline).await;
    db.write(async |tx| {
        let mut ctx = tx.context();
        let pot = ctx.find::<Item>(1).await?.unwrap();
        ctx[pot].name = "kettle".to_owned();
        let raw = sqlx::query("UPDATE item SET price = 9, version = 7 WHERE id = 1");
        raw.execute(ctx.transaction().unwrap()).await?;
        let error = ctx.save_changes().await.unwrap_err();
        ctx.merge(&error)?;
        ctx.save_changes().await.map(drop)
    })
    .await
    .unwrap();
    let row = stored(&db, 1).await.unwrap();
    assert_eq!(
        (row.name.as_str(), row.price, row.version),
        ("kettle", 9, 8)
    );
}

#[tokio::test]
async fn an_error_that_cannot_be_resolved_changes_nothing() {
    let db = shop(Mode::Inline).await;
    let (mut ctx, pot, lid, error) = lost(&db).await;
    let other = Error::new(ErrorKind::Check, "a check failed");
    assert_eq!(
        ctx.client_wins(&other).unwrap_err().kind(),
        ErrorKind::Refused
    );
    ctx.detach(lid);
    for refused in [
        ctx.client_wins(&error),
        ctx.store_wins(&error),
        ctx.merge(&error),
        ctx.merge_with(&error, |_| Winner::Client),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    }
    assert_eq!((ctx[pot].name.as_str(), ctx[pot].version), ("kettle", 1));
    ctx.clear();
    assert_eq!(ctx.merge(&error).unwrap_err().kind(), ErrorKind::Refused);
}

/// The key of the row in the conflict is that of the error, not what the field says by now.
#[tokio::test]
async fn a_key_that_was_changed_since_does_not_lead_to_another_row() {
    let db = shop(Mode::Inline).await;
    let (mut ctx, pot, lid, error) = lost(&db).await;
    ctx[pot].id = 2;
    ctx.client_wins(&error).unwrap();
    ctx.detach(lid);
    let refused = ctx.save_changes().await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.column()),
        (ErrorKind::Refused, Some("id"))
    );
    assert_eq!(stored(&db, 2).await.unwrap().name, "lid");
    ctx[pot].id = 1;
    assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
    assert_eq!(stored(&db, 1).await.unwrap().name, "kettle");
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Address {
    street: Option<String>,
    city: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Person {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(embed)]
    home: Option<Address>,
    #[entity(version)]
    version: i64,
}

#[tokio::test]
async fn a_merge_takes_an_embedded_struct_that_others_filled_in_or_emptied() {
    let filled = Address {
        street: None,
        city: "Delft".to_owned(),
    };
    for (before, after) in [(None, Some(&filled)), (Some(&filled), None)] {
        let db = Mode::Inline.temporary().await;
        db.create_tables::<Person>().await.unwrap();
        let mut ctx = db.context();
        let ada = ctx.add(Person {
            id: 0,
            name: "Ada".to_owned(),
            home: before.cloned(),
            version: 0,
        });
        ctx.save_changes().await.unwrap();
        let mut other = db.context();
        let same = other.find::<Person>(1).await.unwrap().unwrap();
        other[same].home = after.cloned();
        other.save_changes().await.unwrap();

        ctx[ada].name.push('!');
        let error = ctx.save_changes().await.unwrap_err();
        ctx.merge(&error).unwrap();
        assert_eq!(ctx.entry(ada).modified_columns(), ["name"]);
        ctx.save_changes().await.unwrap();
        let row = Person::find(&db, 1).await.unwrap().unwrap();
        assert_eq!((row.name.as_str(), row.home.as_ref()), ("Ada!", after));
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Part {
    #[entity(id)]
    id: i64,
    #[entity(references = Item)]
    item_id: Option<i64>,
}

/// A conflict was looked at before the save was undone: what a delete of that save had done by itself to the row counted
/// as the database's, and the context took it for what was stored.
#[tokio::test]
async fn a_conflict_shows_the_row_without_what_the_save_itself_did() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        db.create_tables::<Part>().await.unwrap();
        let mut ctx = db.context();
        let pot = ctx.find::<Item>(1).await.unwrap().unwrap();
        let lid = ctx.find::<Item>(2).await.unwrap().unwrap();
        let item_id = Some(1);
        let part = ctx.add(Part { id: 0, item_id });
        ctx.save_changes().await.unwrap();
        // The part goes first: it refers.
        execute(&db, "UPDATE item SET version = 7 WHERE id = 2").await;
        execute(
            &db,
            "CREATE TRIGGER cheaper AFTER DELETE ON part BEGIN UPDATE item SET price = 0; END",
        )
        .await;
        ctx.remove(part);
        ctx.remove(lid);
        ctx.remove(pot);
        let error = ctx.save_changes().await.unwrap_err();
        let [conflict] = error.conflicts() else {
            panic!("the lid alone was changed by others");
        };
        let row: Item = conflict.database_as().unwrap().unwrap();
        assert_eq!(Some(row), stored(&db, 2).await, "{mode:?}");
        db.write(async |tx| {
            let error = ctx.save_changes_in(tx).await.unwrap_err();
            let row: Item = error.conflicts()[0].database_as()?.unwrap();
            assert_eq!(row.price, 1);
            Ok(())
        })
        .await
        .unwrap();
    }
}

/// The changed key was taken for the one that was read, and the row of another entity was deleted.
#[tokio::test]
async fn a_key_that_was_changed_is_not_the_rows_after_a_conflict() {
    let db = shop(Mode::Inline).await;
    let (mut ctx, pot, lid, error) = lost(&db).await;
    ctx[pot].id = 2;
    ctx.get_mut(lid).unwrap().id = 1;
    ctx.client_wins(&error).unwrap();
    let refused = ctx.save_changes().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    ctx.detach(pot);
    assert_eq!(ctx.save_changes().await.unwrap().deleted, 1);
    let left = Item::query().all(&db).await.unwrap();
    assert_eq!(left.iter().map(|item| item.id).collect::<Vec<_>>(), [1]);
}
