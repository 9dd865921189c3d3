//! What the writer promises: one answer per caller, in one commit for many.

use anabranch::prelude::*;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Account {
    #[entity(id)]
    id: i64,
    owner: String,
    balance: i64,
    #[entity(version)]
    version: i64,
}

fn account(owner: &str) -> Account {
    Account {
        id: 0,
        owner: owner.to_owned(),
        balance: 0,
        version: 0,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_save_at_once_and_each_is_answered() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|task| {
            let db = db.clone();
            tokio::spawn(async move {
                for save in 0..100 {
                    let mut ctx = db.context();
                    let added = ctx.add(account(&format!("{task}/{save}")));
                    let saved = ctx.save_changes().await.unwrap();
                    assert_eq!(saved.inserted, 1);
                    let id = ctx[added].id;
                    assert!(id > 0);
                    let found = Account::find(&db, id).await.unwrap().unwrap();
                    assert_eq!(found, ctx[added]);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(Account::query().count(&db).await.unwrap(), 5000);
    let statistics = db.statistics();
    assert_eq!(statistics.saves, 5000);
    db.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_save_does_not_fail_its_neighbours() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let mut ctx = db.context();
    let row = ctx.add(account("ada"));
    ctx.save_changes().await.unwrap();
    let id = ctx[row].id;
    let tasks: Vec<_> = (0..20)
        .map(|task| {
            let db = db.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    loop {
                        let mut ctx = db.context();
                        let row = ctx.find::<Account>(id).await.unwrap().unwrap();
                        ctx[row].balance += 1;
                        ctx.add(account(&format!("log of {task}")));
                        match ctx.save_changes().await {
                            Ok(saved) => {
                                assert_eq!((saved.inserted, saved.updated), (1, 1));
                                break;
                            }
                            Err(error) => assert!(error.is_conflict(), "{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let row = Account::find(&db, id).await.unwrap().unwrap();
    assert_eq!(row.balance, 400);
    assert_eq!(Account::query().count(&db).await.unwrap(), 401);
}

#[tokio::test]
async fn a_transaction_mixes_contexts_and_raw_sql() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let total: i64 = db
        .write(async move |tx| {
            let mut ctx = tx.context();
            ctx.add(account("ada"));
            ctx.save_changes().await?;
            sqlx::query("UPDATE account SET balance = balance + ?")
                .bind(5_i64)
                .execute(&mut *tx)
                .await?;
            let rows = Account::query().all(&mut *tx).await?;
            assert_eq!(rows[0].balance, 5);
            Ok(sqlx::query_scalar("SELECT sum(balance) FROM account")
                .fetch_one(&mut *tx)
                .await?)
        })
        .await
        .unwrap();
    assert_eq!(total, 5);
    let mut tx = db.begin().await.unwrap();
    sqlx::query("DELETE FROM account")
        .execute(&mut *tx)
        .await
        .unwrap();
    drop(tx);
    assert_eq!(Account::query().count(&db).await.unwrap(), 1);
    let error = db
        .write(async |tx| {
            sqlx::query("COMMIT").execute(&mut *tx).await?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_can_be_spawned() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Account>().await.unwrap();
    let name = String::from("spawned");
    let spawned = tokio::spawn(async move {
        let borrowed = &name;
        let id = db
            .write(async |tx| {
                let mut ctx = tx.context();
                let row = ctx.add(account(borrowed));
                ctx.save_changes().await?;
                let id = ctx[row].id;
                drop(ctx);
                sqlx::query("SELECT 1").execute(&mut *tx).await?;
                Ok(id)
            })
            .await?;
        let mut ctx = db.context();
        Account::query()
            .filter(Account::ID.eq(id))
            .load(&mut ctx)
            .await?;
        let mut tx = db.begin().await?;
        tx.savepoint(async |tx| {
            Account::query().all(&mut *tx).await?;
            Ok(())
        })
        .await?;
        tx.commit().await?;
        db.close().await?;
        Ok::<_, Error>(id)
    });
    assert!(spawned.await.unwrap().unwrap() > 0);
}
