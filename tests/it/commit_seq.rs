//! What the commit number promises: one for each transaction that touches a stamped table, in commit order.

use anabranch::prelude::*;
use anabranch_tests::{Mode, again, assert_passed, execute, save_together, scene, try_execute};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Order {
    #[entity(id)]
    id: i64,
    item: String,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

/// Stamped too, with a key that is not the rowid.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Event {
    #[entity(id)]
    name: String,
    #[entity(commit_seq)]
    at: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Plain {
    #[entity(id)]
    id: i64,
    text: String,
}

fn order(item: &str) -> Order {
    Order {
        id: 0,
        item: item.to_owned(),
        seq: CommitSeq::default(),
    }
}

fn plain(text: &str) -> Plain {
    Plain {
        id: 0,
        text: text.to_owned(),
    }
}

async fn shop(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(Order, Event, Plain)>().await.unwrap();
    db
}

async fn save_order(db: &Database, item: &str) -> i64 {
    let mut ctx = db.context();
    let row = ctx.add(order(item));
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!(saved.commit_seq, Some(ctx[row].seq), "told twice");
    ctx[row].seq.0
}

/// The number of each order, by item.
async fn number_of(db: &Database, item: &str) -> i64 {
    let found = Order::query().filter(Order::ITEM.eq(item)).one(db).await;
    found.unwrap().seq.0
}

#[tokio::test]
async fn each_save_of_a_group_gets_a_number_of_its_own_in_their_order() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let mut contexts: Vec<_> = (0..20)
            .map(|save| {
                let mut ctx = db.context();
                for part in 0..3 {
                    ctx.add(order(&format!("{save}/{part}")));
                }
                ctx
            })
            .collect();
        let answers = save_together(&db, &mut contexts).await;
        assert_eq!(db.statistics().largest_group, 20);
        for ((save, answer), expected) in answers.iter().enumerate().zip(1..) {
            let number = answer.as_ref().unwrap().commit_seq.unwrap();
            assert_eq!(number.0, expected, "{mode:?}");
            for part in 0..3 {
                assert_eq!(number_of(&db, &format!("{save}/{part}")).await, number.0);
            }
            assert!(
                contexts[save]
                    .iter::<Order>()
                    .all(|(_, order)| order.seq == number)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_rise_in_commit_order_whoever_writes() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = shop(mode).await;
        let watched = db.clone();
        let mut seen = 0;
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut last = 0;
                    for round in 0..25 {
                        let item = format!("{task}/{round}");
                        let number = if task % 2 == 0 {
                            save_order(&db, &item).await
                        } else {
                            let mut tx = db.begin().await.unwrap();
                            sqlx::query("INSERT INTO \"order\" (item, seq) VALUES (?, 0)")
                                .bind(item)
                                .execute(&mut *tx)
                                .await
                                .unwrap();
                            tx.commit().await.unwrap().unwrap()
                        };
                        assert!(number > last, "{number} after {last}");
                        last = number;
                    }
                })
            })
            .collect();
        // A poller sees every number once, without a gap into which a late one could fall.
        while seen < 200 {
            let new = Order::query()
                .filter(Order::SEQ.gt(CommitSeq(seen)))
                .order_by([Order::SEQ.asc()])
                .all(&watched)
                .await
                .unwrap();
            for order in new {
                assert_eq!(order.seq.0, seen + 1, "{mode:?}");
                seen = order.seq.0;
            }
            tokio::task::yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn raw_sql_is_stamped_like_a_save() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        assert_eq!(save_order(&db, "typed").await, 1);
        let mut tx = db.begin().await.unwrap();
        for sql in [
            "INSERT INTO \"order\" (item, seq) VALUES ('raw', -5)",
            "INSERT INTO event (name, at) VALUES ('raw', 0)",
            "INSERT INTO plain (text) VALUES ('raw')",
        ] {
            sqlx::query(sql).execute(&mut *tx).await.unwrap();
        }
        assert_eq!(tx.commit().await.unwrap(), Some(2), "{mode:?}");
        assert_eq!(number_of(&db, "raw").await, 2);
        let event = Event::find(&db, "raw").await.unwrap().unwrap();
        assert_eq!(event.at, CommitSeq(2), "one number a transaction");
        assert_eq!(number_of(&db, "typed").await, 1, "the others keep theirs");

        execute(&db, "UPDATE \"order\" SET item = upper(item)").await;
        assert_eq!(number_of(&db, "TYPED").await, 3);
        assert_eq!(number_of(&db, "RAW").await, 3);
        execute(
            &db,
            "INSERT INTO event (name, at) VALUES ('raw', 0) ON CONFLICT DO UPDATE SET at = -1",
        )
        .await;
        let event = Event::find(&db, "raw").await.unwrap().unwrap();
        assert_eq!(event.at, CommitSeq(4));
        execute(&db, "REPLACE INTO event (name, at) VALUES ('raw', 0)").await;
        let event = Event::find(&db, "raw").await.unwrap().unwrap();
        assert_eq!(event.at, CommitSeq(5));
    }
}

#[tokio::test]
async fn rows_that_triggers_write_are_stamped() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        execute(
            &db,
            "CREATE TRIGGER told AFTER INSERT ON plain
             BEGIN INSERT INTO event (name, at) VALUES (NEW.text, 0); END",
        )
        .await;
        let mut ctx = db.context();
        ctx.add(plain("typed"));
        let saved = ctx.save_changes().await.unwrap();
        assert_eq!(saved.commit_seq, Some(CommitSeq(1)), "{mode:?}");
        execute(&db, "INSERT INTO plain (text) VALUES ('raw')").await;
        for (name, number) in [("typed", 1), ("raw", 2)] {
            let event = Event::find(&db, name).await.unwrap().unwrap();
            assert_eq!(event.at, CommitSeq(number), "{mode:?}");
        }
    }
}

/// A trigger on changes of a stamped table also sees its stamping; what it writes then is stamped as well.
#[tokio::test]
async fn rows_that_triggers_write_while_stamping_are_stamped() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        execute(
            &db,
            "CREATE TRIGGER told AFTER UPDATE ON \"order\"
             BEGIN INSERT INTO event (name, at) VALUES (NEW.item || NEW.seq, 0); END",
        )
        .await;
        let number = save_order(&db, "tea").await;
        let event = Event::find(&db, "tea1").await.unwrap().unwrap();
        assert_eq!(event.at, CommitSeq(number), "{mode:?}");
        assert_eq!(save_order(&db, "salt").await, number + 1);
    }
}

#[tokio::test]
async fn triggers_that_write_stamped_rows_without_end_are_refused() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        execute(
            &db,
            "CREATE TRIGGER again AFTER UPDATE ON \"order\"
             BEGIN INSERT INTO \"order\" (item, seq) VALUES ('again', 0); END",
        )
        .await;
        let mut ctx = db.context();
        ctx.add(order("typed"));
        let typed = ctx.save_changes().await.map(drop);
        let raw = try_execute(&db, "INSERT INTO \"order\" (item, seq) VALUES ('raw', 0)").await;
        for refused in [typed, raw] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Constraint);
        }
        assert_eq!(Order::query().count(&db).await.unwrap(), 0, "{mode:?}");
        execute(&db, "DROP TRIGGER again").await;
        assert_eq!(save_order(&db, "one").await, 1, "{mode:?}");
    }
}

#[tokio::test]
async fn tables_without_a_number_take_none() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let first = save_order(&db, "first").await;
        let mut ctx = db.context();
        ctx.add(plain("typed"));
        assert_eq!(ctx.save_changes().await.unwrap().commit_seq, None);
        let mut tx = db.begin().await.unwrap();
        sqlx::query("INSERT INTO plain (text) VALUES ('raw')")
            .execute(&mut *tx)
            .await
            .unwrap();
        assert_eq!(tx.commit().await.unwrap(), None);
        let nothing = db.begin().await.unwrap();
        assert_eq!(nothing.commit().await.unwrap(), None);
        assert_eq!(save_order(&db, "second").await, first + 1, "{mode:?}");
    }
}

#[tokio::test]
async fn what_is_undone_takes_no_number() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        execute(&db, "CREATE UNIQUE INDEX items ON \"order\" (item)").await;
        assert_eq!(save_order(&db, "tea").await, 1);
        // A save that is refused, alone and in a group.
        let mut contexts: Vec<_> = ["salt", "tea", "sugar"]
            .into_iter()
            .map(|item| {
                let mut ctx = db.context();
                ctx.add(order(&format!("{item} beside")));
                ctx.add(order(item));
                ctx
            })
            .collect();
        contexts[1].save_changes().await.unwrap_err();
        let answers = save_together(&db, &mut contexts).await;
        let numbers: Vec<_> = answers
            .iter()
            .map(|answer| answer.as_ref().ok().and_then(|saved| saved.commit_seq))
            .collect();
        assert_eq!(numbers, [Some(CommitSeq(2)), None, Some(CommitSeq(3))]);
        // A transaction that is rolled back, or dropped.
        let insert = "INSERT INTO \"order\" (item, seq) VALUES ('undone', 0)";
        let undone = db
            .write(async |tx| {
                sqlx::query(insert).execute(&mut *tx).await?;
                Err::<(), _>(Error::application("changed its mind"))
            })
            .await;
        assert_eq!(undone.unwrap_err().kind(), ErrorKind::Application);
        let mut tx = db.begin().await.unwrap();
        sqlx::query(insert).execute(&mut *tx).await.unwrap();
        drop(tx);
        try_execute(
            &db,
            "INSERT INTO \"order\" (item, seq) VALUES ('new', 0), ('tea', 0)",
        )
        .await
        .unwrap_err();
        // Only a savepoint of it.
        let mut tx = db.begin().await.unwrap();
        let undone = tx
            .savepoint(async |tx| {
                sqlx::query(insert).execute(&mut *tx).await?;
                Err::<(), _>(Error::application("changed its mind"))
            })
            .await;
        undone.unwrap_err();
        assert_eq!(tx.commit().await.unwrap(), None, "{mode:?}");
        assert_eq!(save_order(&db, "pepper").await, 4, "{mode:?}");
    }
}

#[tokio::test]
async fn a_savepoint_that_is_kept_is_stamped_with_its_transaction() {
    for mode in Mode::ALL {
        let db = shop(mode).await;
        let mut tx = db.begin().await.unwrap();
        sqlx::query("INSERT INTO \"order\" (item, seq) VALUES ('outer', 0)")
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.savepoint(async |tx| {
            let mut ctx = tx.context();
            ctx.add(order("inner"));
            ctx.save_changes().await.map(drop)
        })
        .await
        .unwrap();
        let undone = tx
            .savepoint(async |tx| {
                sqlx::query("UPDATE \"order\" SET item = 'changed'")
                    .execute(&mut *tx)
                    .await?;
                Err::<(), _>(Error::application("changed its mind"))
            })
            .await;
        undone.unwrap_err();
        assert_eq!(tx.commit().await.unwrap(), Some(1), "{mode:?}");
        assert_eq!(number_of(&db, "outer").await, 1);
        assert_eq!(number_of(&db, "inner").await, 1);
    }
}

#[tokio::test]
async fn the_numbers_go_on_after_the_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    for round in 0..3 {
        let db = Database::open(&path).await.unwrap();
        if round == 0 {
            db.create_tables::<(Order, Event, Plain)>().await.unwrap();
        }
        assert_eq!(save_order(&db, "typed").await, 2 * round + 1);
        // Raw SQL is stamped although nobody named the tables to this handle.
        execute(
            &db,
            "INSERT INTO event (name, at) VALUES (hex(randomblob(8)), 0)",
        )
        .await;
        assert_eq!(
            Event::query()
                .filter(Event::AT.eq(CommitSeq(2 * round + 2)))
                .count(&db)
                .await
                .unwrap(),
            1
        );
        if round == 1 {
            db.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn two_handles_count_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let first = Database::open(&path).await.unwrap();
    first
        .create_tables::<(Order, Event, Plain)>()
        .await
        .unwrap();
    let second = Database::open(&path).await.unwrap();
    for round in 0..10 {
        assert_eq!(save_order(&first, "a").await, 2 * round + 1);
        assert_eq!(save_order(&second, "b").await, 2 * round + 2);
    }
}

/// Two processes, and the number is still one for each commit.
#[tokio::test]
async fn two_processes_count_together() {
    let test = "commit_seq::two_processes_count_together";
    if let Some(path) = scene() {
        let db = Database::open(path).await.unwrap();
        for _ in 0..50 {
            save_order(&db, "child").await;
            execute(&db, "INSERT INTO \"order\" (item, seq) VALUES ('child', 0)").await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let db = Database::open(&path).await.unwrap();
    db.create_tables::<(Order, Event, Plain)>().await.unwrap();
    let child = again(test, path.to_str().unwrap())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..50 {
        save_order(&db, "parent").await;
        execute(
            &db,
            "INSERT INTO \"order\" (item, seq) VALUES ('parent', 0)",
        )
        .await;
    }
    assert_passed(&child.wait_with_output().unwrap());
    let orders = Order::query().order_by([Order::SEQ.asc()]).all(&db).await;
    let numbers: Vec<_> = orders.unwrap().iter().map(|order| order.seq.0).collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
}
