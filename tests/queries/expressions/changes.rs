//! Set-based updates and deletes.

use anabranch::{
    entity::CommitSeq,
    prelude::*,
    query::{Query, case, fragment},
};
use anabranch_tests::execute;
use chrono::{DateTime, TimeDelta, Utc};

use crate::expressions::places::by_hand;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(live = Account::live), has_many(entries: Entry))]
pub(in crate::expressions) struct Account {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    owner: String,
    #[entity(check = "balance >= 0")]
    balance: i64,
    limit: Option<i64>,
    deleted: bool,
    #[entity(generated = "balance * 2")]
    double: i64,
    #[entity(version)]
    version: i64,
    #[entity(created_at)]
    created_at: DateTime<Utc>,
    #[entity(updated_at)]
    updated_at: DateTime<Utc>,
    #[entity(commit_seq)]
    commit_seq: CommitSeq,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Entry {
    #[entity(id)]
    id: i64,
    #[entity(references = Account, on_delete = Cascade)]
    account_id: i64,
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    #[entity(references = Account)]
    account_id: i64,
    #[entity(json)]
    tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Place {
    #[entity(id)]
    x: i64,
    #[entity(id)]
    y: i64,
    height: i64,
}

impl Account {
    fn live() -> Condition<Self> {
        Self::DELETED.eq(false)
    }
}

/// Accounts 1 to 6, of which the last is deleted, with entries.
async fn bank() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Account, Entry, Note, Place)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    for number in 1..=6 {
        ctx.add(Account {
            id: number,
            owner: format!("owner {number}"),
            balance: number * 10,
            limit: (number % 2 == 0).then_some(number),
            deleted: number == 6,
            double: 0,
            version: 0,
            created_at: DateTime::UNIX_EPOCH + TimeDelta::days(1),
            updated_at: DateTime::UNIX_EPOCH + TimeDelta::days(1),
            commit_seq: CommitSeq(0),
        });
        for amount in 0..number {
            ctx.add(Entry {
                id: 0,
                account_id: number,
                amount,
            });
        }
    }
    ctx.save_changes().await.unwrap();
    db
}

/// Runs the same in each place where rows are written, on a database of its own, and looks at both what it told and what
/// is there then.
macro_rules! written {
    ($fixture:expr, $at:ident => $write:expr, ($db:ident, $told:ident) => $check:expr) => {{
        {
            let $db = &$fixture;
            let $told = {
                let $at = $db;
                $write.await.map_err(|error: Error| error.kind())
            };
            $check
        }
        {
            let $db = &$fixture;
            let $told = $db
                .write(async |$at| Ok($write.await.map_err(|error: Error| error.kind())))
                .await
                .unwrap();
            $check
        }
        {
            let $db = &$fixture;
            let $told = $db
                .concurrent(async |$at| Ok($write.await.map_err(|error: Error| error.kind())))
                .await
                .unwrap();
            $check
        }
    }};
}
pub(in crate::expressions) use written;

fn balances(db: &Database) -> Vec<(i64, i64)> {
    by_hand(db, "SELECT id, balance FROM account ORDER BY id")
}

#[tokio::test]
async fn rows_become_what_expressions_say() {
    let rich = case::<Account, i64>()
        .when(Account::BALANCE.gt(30), Account::BALANCE - 5)
        .otherwise(Account::BALANCE * 2);
    let update = || {
        Account::query()
            .filter(Account::LIMIT.is_null().or(Account::BALANCE.lt(30)))
            .update()
            .set(Account::BALANCE, rich.clone())
            .set(
                Account::LIMIT,
                Account::LIMIT.coalesce(0) + Account::BALANCE,
            )
    };
    written!(bank().await, at => update().execute(at), (db, told) => {
        assert_eq!(told, Ok(4));
        assert_eq!(balances(db), [(1, 20), (2, 40), (3, 60), (4, 40), (5, 45), (6, 60)]);
        // Of the row as it was.
        let limits: Vec<(Option<i64>, i64)> = by_hand(db, "SELECT \"limit\", version FROM account ORDER BY id");
        assert_eq!(limits, [(Some(10), 2), (Some(22), 2), (Some(30), 2), (Some(4), 1), (Some(50), 2), (Some(6), 1)]);
        let kept: Vec<(i64,)> = by_hand(db, "SELECT id FROM account WHERE updated_at > '1971' AND created_at < '1971' ORDER BY id");
        assert_eq!(kept, [(1,), (2,), (3,), (5,)]);
        let stamps: Vec<(i64, i64)> = by_hand(db, "SELECT count(DISTINCT commit_seq), max(commit_seq) FROM account WHERE version = 2");
        assert_eq!(stamps[0].0, 1);
        let before: Vec<(i64,)> = by_hand(db, "SELECT max(commit_seq) FROM account WHERE version = 1");
        assert!(stamps[0].1 > before[0].0);
    });
}

#[tokio::test]
async fn relations_and_other_queries_decide_which_rows_and_what() {
    let mean = || {
        Entry::query()
            .select(Entry::AMOUNT.avg())
            .as_value::<Account>()
    };
    let update = || {
        Account::query()
            .filter(Account::ENTRIES.any(Entry::AMOUNT.gt(2)))
            .filter(mean().gt(0.0))
            .update()
            .set(
                Account::BALANCE,
                Account::ENTRIES.of_all(Entry::AMOUNT.sum()).coalesce(0),
            )
            .set(
                Account::OWNER,
                fragment::<Account, String>("{} || '!'", (Account::OWNER,)),
            )
            .returning((
                Account::ID,
                Account::BALANCE,
                Account::DOUBLE,
                Account::OWNER.char_length(),
                Account::VERSION,
            ))
    };
    written!(bank().await, at => update().all(at), (db, told) => {
        let mut rows = told.unwrap();
        rows.sort_unstable();
        assert_eq!(rows, [(4, 6, 12, 8, 2), (5, 10, 20, 8, 2)]);
        assert_eq!(balances(db)[3..], [(4, 6), (5, 10), (6, 60)]);
    });
    let delete = || {
        Entry::query()
            .filter(Entry::ACCOUNT.get(Account::BALANCE).gt(30))
            .filter(
                Entry::ACCOUNT_ID.not_in_query(
                    Account::query()
                        .filter(Account::ID.eq(4))
                        .select(Account::ID),
                ),
            )
            .delete()
            .returning(Entry::AMOUNT)
    };
    written!(bank().await, at => delete().all(at), (db, told) => {
        let mut rows = told.unwrap();
        rows.sort_unstable();
        // A relation that always leads to one leads to a row that a filter leaves out, too.
        let left: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM entry WHERE account_id > 4");
        assert_eq!((rows, left[0].0), (vec![0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5], 0));
    });
}

#[tokio::test]
async fn what_is_returned_is_of_the_row_itself() {
    let db = bank().await;
    execute(
        &db,
        "INSERT INTO note (account_id, tags) VALUES (1, '[\"a\", \"b\"]'), (2, '[]')",
    )
    .await;
    let update = Note::query()
        .filter(Note::ACCOUNT.get(Account::ID).lt(3))
        .update()
        .set(Note::TAGS, Note::TAGS)
        .returning((Note::ID, Note::TAGS.has_any(["b".to_owned()]).as_bool()));
    assert_eq!(update.all(&db).await.unwrap(), [(1, true), (2, false)]);
    let related = Entry::query()
        .delete()
        .returning(Entry::ACCOUNT.get(Account::OWNER));
    assert_eq!(
        related.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let counted = Entry::query().delete().returning(anabranch::query::count());
    assert_eq!(
        counted.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let whole = Entry::query()
        .filter(Entry::ACCOUNT_ID.eq(2))
        .delete()
        .returning(anabranch::query::Whole);
    assert_eq!(whole.all(&db).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_limit_changes_the_first_rows_of_the_order() {
    let update = || {
        Account::query()
            .order_by(Account::BALANCE.desc())
            .limit(2)
            .offset(1)
            .update()
            .set(Account::BALANCE, 0)
    };
    written!(bank().await, at => update().execute(at), (db, told) => {
        assert_eq!(told, Ok(2));
        assert_eq!(balances(db), [(1, 10), (2, 20), (3, 0), (4, 0), (5, 50), (6, 60)]);
    });
    let delete = || {
        Entry::query()
            .order_by([Entry::ACCOUNT.get(Account::BALANCE).desc(), Entry::ID.asc()])
            .limit(3)
            .delete()
    };
    written!(bank().await, at => delete().execute(at), (db, told) => {
        assert_eq!(told, Ok(3));
        let left: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM entry WHERE account_id = 6");
        assert_eq!(left, [(3,)]);
    });
    let db = bank().await;
    let composite = Place::query()
        .limit(1)
        .delete()
        .execute(&db)
        .await
        .unwrap_err();
    assert_eq!(composite.kind(), ErrorKind::Refused);
    assert_eq!(
        Account::query()
            .limit(0)
            .delete()
            .execute(&db)
            .await
            .unwrap(),
        0
    );
}

#[tokio::test]
async fn filters_of_the_entity_apply_and_can_be_lifted() {
    let delete = || Account::query().delete();
    written!(bank().await, at => delete().execute(at), (db, told) => {
        assert_eq!(told, Ok(5));
        assert_eq!(balances(db), [(6, 60)]);
        // Cascades are not counted, and followed.
        let left: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM entry");
        assert_eq!(left, [(6,)]);
    });
    let all = || {
        Account::query()
            .without_filter("live")
            .update()
            .set(Account::BALANCE, 1)
    };
    written!(bank().await, at => all().execute(at), (db, told) => {
        assert_eq!(told, Ok(6));
        assert_eq!(balances(db)[5], (6, 1));
    });
    let limited = || {
        Account::query()
            .without_filters()
            .order_by(Account::ID.desc())
            .limit(1)
            .delete()
    };
    written!(bank().await, at => limited().execute(at), (db, told) => {
        assert_eq!((told, balances(db).len()), (Ok(1), 5));
    });
}

#[tokio::test]
async fn what_the_library_or_the_database_keeps_cannot_be_set() {
    let db = bank().await;
    let all = || Account::query().update();
    let kinds = [
        (all().set(Account::VERSION, 5), ErrorKind::Model),
        (
            all().set(Account::COMMIT_SEQ, CommitSeq(5)),
            ErrorKind::Model,
        ),
        (all().set(Account::DOUBLE, 5), ErrorKind::Model),
        (all(), ErrorKind::Refused),
        (all().set(Account::OWNER, "a\0"), ErrorKind::Value),
        (
            Account::query()
                .distinct()
                .update()
                .set(Account::BALANCE, 1),
            ErrorKind::Refused,
        ),
        (
            Account::query()
                .group_by(Account::OWNER)
                .update()
                .set(Account::BALANCE, 1),
            ErrorKind::Refused,
        ),
        (
            Query::<Account>::from_sql("SELECT * FROM account", ())
                .update()
                .set(Account::BALANCE, 1),
            ErrorKind::Refused,
        ),
        (
            Account::query()
                .without_filter("none")
                .update()
                .set(Account::BALANCE, 1),
            ErrorKind::Model,
        ),
    ];
    for (update, kind) in kinds {
        assert_eq!(
            update.clone().execute(&db).await.unwrap_err().kind(),
            kind,
            "{update:?}"
        );
    }
    let twice = all()
        .set(Account::BALANCE, 1)
        .set(Account::BALANCE, 2)
        .set_if(Account::LIMIT, Some(Some(3)));
    assert_eq!(twice.execute(&db).await.unwrap(), 5);
    assert_eq!(balances(&db)[0], (1, 2));
}

#[tokio::test]
async fn a_constraint_keeps_its_kind_and_undoes_all_of_it() {
    let unique = || Account::query().update().set(Account::OWNER, "same");
    written!(bank().await, at => unique().execute(at), (db, told) => {
        assert_eq!(told, Err(ErrorKind::Unique));
        let same: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM account WHERE owner = 'same' OR version > 1");
        assert_eq!(same, [(0,)]);
    });
    let check = || {
        Account::query()
            .update()
            .set(Account::BALANCE, Account::BALANCE - 25)
    };
    written!(bank().await, at => check().execute(at), (db, told) => {
        assert_eq!((told, balances(db)[4]), (Err(ErrorKind::Check), (5, 50)));
    });
    let db = bank().await;
    let error = unique().execute(&db).await.unwrap_err();
    assert_eq!(
        (error.table(), error.column()),
        (Some("account"), Some("owner"))
    );
    execute(&db, "INSERT INTO note (account_id, tags) VALUES (1, '[]')").await;
    let error = Account::query().delete().execute(&db).await.unwrap_err();
    assert_eq!(
        (error.kind(), balances(&db).len()),
        (ErrorKind::ForeignKey, 6)
    );
    let error = Account::query()
        .update()
        .set(Account::BALANCE, Account::BALANCE + i64::MAX)
        .execute(&db)
        .await
        .unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    assert_eq!(balances(&db)[0], (1, 10));
    // In a transaction what came before stays, and what comes after goes on.
    db.write(async |tx| {
        assert_eq!(
            Entry::query()
                .filter(Entry::ACCOUNT_ID.eq(5))
                .delete()
                .execute(&mut *tx)
                .await?,
            5
        );
        assert_eq!(
            unique().execute(&mut *tx).await.unwrap_err().kind(),
            ErrorKind::Unique
        );
        assert_eq!(
            Account::query()
                .filter(Account::ID.eq(2))
                .update()
                .set(Account::BALANCE, 7)
                .execute(&mut *tx)
                .await?,
            1
        );
        Ok(())
    })
    .await
    .unwrap();
    let left: Vec<(i64, i64)> = by_hand(
        &db,
        "SELECT count(*), (SELECT balance FROM account WHERE id = 2) FROM entry WHERE account_id = 5",
    );
    assert_eq!(left, [(0, 7)]);
}

#[tokio::test]
async fn an_entity_that_is_tracked_meanwhile_is_in_conflict() {
    let db = bank().await;
    let mut ctx = db.context();
    let account = ctx.find::<Account>(3).await.unwrap().unwrap();
    Account::query()
        .update()
        .set(Account::LIMIT, 9)
        .execute(&db)
        .await
        .unwrap();
    ctx[account].balance = 1;
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(balances(&db)[2], (3, 30));
}

#[tokio::test]
async fn sessions_that_count_the_same_rows_are_serial_and_blind_ones_add_up() {
    let db = bank().await;
    let mut first = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut second = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let rich = || Account::query().filter(Account::BALANCE.ge(30));
    let told = rich()
        .update()
        .set(Account::BALANCE, Account::BALANCE - 15)
        .execute(&mut *first)
        .await
        .unwrap();
    let other = rich()
        .update()
        .set(Account::BALANCE, Account::BALANCE - 15)
        .execute(&mut *second)
        .await
        .unwrap();
    assert_eq!((told, other), (3, 3));
    first.commit().await.unwrap();
    let error = second.commit().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    // 3, 4 and 5 have 15, 25 and 35 now.
    let told = db
        .concurrent(async |s| {
            rich()
                .update()
                .set(Account::BALANCE, Account::BALANCE - 15)
                .execute(&mut *s)
                .await
        })
        .await
        .unwrap();
    assert_eq!((told, balances(&db)[4]), (1, (5, 20)));
    let mut first = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let mut second = db.begin_concurrent(Isolation::Serializable).await.unwrap();
    let one = |id: i64| {
        Account::query()
            .filter(Account::ID.eq(id))
            .update()
            .set(Account::BALANCE, Account::BALANCE + 1)
    };
    one(1).execute(&mut *first).await.unwrap();
    one(2).execute(&mut *second).await.unwrap();
    one(3).execute(&mut *first).await.unwrap();
    one(3).execute(&mut *second).await.unwrap();
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(balances(&db)[..3], [(1, 11), (2, 21), (3, 17)]);
}
