//! Saves that are refused inside an open transaction: they undo themselves only, and can be mended and tried again.

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Shelf {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    label: String,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Book {
    #[entity(id)]
    id: i64,
    #[entity(references = Shelf)]
    shelf_id: i64,
}

fn shelf(label: &str) -> Shelf {
    Shelf {
        id: 0,
        label: label.to_owned(),
        version: 0,
    }
}

async fn shelves(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(Shelf, Book)>().await.unwrap();
    execute(
        &db,
        "INSERT INTO shelf (label, version) VALUES ('a', 1), ('b', 1)",
    )
    .await;
    db
}

#[tokio::test]
async fn after_a_conflict_the_same_transaction_saves_again() {
    for mode in Mode::ALL {
        let db = shelves(mode).await;
        let stale = Shelf::find(&db, 1).await.unwrap().unwrap();
        execute(&db, "UPDATE shelf SET version = 2 WHERE id = 1").await;
        db.write(async |tx| {
            let mut ctx = tx.context();
            let a = ctx.attach(stale)?;
            let book = ctx.add(Book { id: 0, shelf_id: 1 });
            ctx[a].label = "mine".to_owned();
            let error = ctx.save_changes().await.unwrap_err();
            assert!(error.is_conflict());
            let theirs: Shelf = error.conflicts()[0].database_as()?.unwrap();
            assert_eq!(Book::query().count(ctx.transaction().unwrap()).await?, 0);
            ctx.detach(a);
            let a = ctx.attach(theirs)?;
            ctx[a].label = "mine".to_owned();
            let saved = ctx.save_changes().await?;
            assert_eq!((saved.inserted, saved.updated), (1, 1));
            assert_eq!(ctx[book].id, 1);
            Ok(())
        })
        .await
        .unwrap();
        let mine = Shelf::find(&db, 1).await.unwrap().unwrap();
        assert_eq!((&mine.label[..], mine.version), ("mine", 3), "{mode:?}");
    }
}

#[tokio::test]
async fn after_a_constraint_the_same_transaction_saves_again() {
    for mode in Mode::ALL {
        let db = shelves(mode).await;
        db.write(async |tx| {
            sqlx::query("INSERT INTO shelf (label, version) VALUES ('raw', 1)")
                .execute(&mut *tx)
                .await?;
            let mut ctx = tx.context();
            let new = ctx.add(shelf("fresh"));
            let twice = ctx.add(shelf("raw"));
            let error = ctx.save_changes().await.unwrap_err();
            assert_eq!(
                (error.kind(), error.table()),
                (ErrorKind::Unique, Some("shelf"))
            );
            assert_eq!(ctx.entry(new).state(), EntityState::Added);
            ctx[twice].label = "other".to_owned();
            assert_eq!(ctx.save_changes().await?.inserted, 2);
            assert_eq!((ctx[new].id, ctx[twice].id), (4, 5));
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(Shelf::query().count(&db).await.unwrap(), 5, "{mode:?}");
    }
}

/// Where raw SQL of the transaction left a reference to be mended, a refused save neither mends nor hides it.
#[tokio::test]
async fn deferred_foreign_keys_outlive_a_refused_save() {
    for mode in Mode::ALL {
        for mends in [true, false] {
            let db = shelves(mode).await;
            let written = db
                .write(async |tx| {
                    sqlx::raw_sql(
                        "PRAGMA defer_foreign_keys = ON; INSERT INTO book (shelf_id) VALUES (9)",
                    )
                    .execute(&mut *tx)
                    .await?;
                    let mut ctx = tx.context();
                    let b = ctx.add(shelf("b"));
                    let error = ctx.save_changes().await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unique);
                    ctx[b].label = "c".to_owned();
                    if mends {
                        ctx.add(Shelf {
                            id: 9,
                            ..shelf("nine")
                        });
                    }
                    ctx.save_changes().await.map(|saved| saved.inserted)
                })
                .await;
            match written {
                Ok(inserted) => assert_eq!((mends, inserted), (true, 2)),
                Err(error) => assert_eq!((mends, error.kind()), (false, ErrorKind::ForeignKey)),
            }
        }
    }
}

#[tokio::test]
async fn a_trigger_that_rolls_back_ends_the_transaction_and_every_call_says_so() {
    for mode in Mode::ALL {
        let db = shelves(mode).await;
        execute(
            &db,
            "CREATE TRIGGER no_books BEFORE INSERT ON book BEGIN SELECT RAISE(ROLLBACK, 'no books'); END",
        )
        .await;
        let mut tx = db.begin().await.unwrap();
        let mut ctx = tx.context();
        ctx.add(shelf("c"));
        ctx.save_changes().await.unwrap();
        let book = ctx.add(Book { id: 0, shelf_id: 1 });
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(
            (error.kind(), error.table()),
            (ErrorKind::Constraint, Some("book"))
        );
        assert_eq!(ctx.entry(book).state(), EntityState::Added);
        for error in [
            ctx.save_changes().await.unwrap_err(),
            ctx.find::<Shelf>(1).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::TransactionEnded, "{mode:?}");
            assert!(error.is_retryable());
        }
        let error = tx.commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionEnded);
        assert_eq!(Shelf::query().count(&db).await.unwrap(), 2);
    }
}
