//! Upserts by every kind of unique key.

use std::sync::Arc;

use anabranch::{
    entity::CommitSeq,
    prelude::*,
    query::{Upserted, upsert},
    sql::WriteExecutor,
};
use anabranch_tests::execute;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use uuid::Uuid;

use crate::expressions::{changes::written, places::by_hand};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(columns(street, number), unique))]
struct Person {
    #[entity(id)]
    id: i64,
    #[entity(unique, collate = "NOCASE")]
    email: String,
    #[entity(unique)]
    code: Option<Uuid>,
    street: String,
    number: Option<i64>,
    #[entity(index(unique, where = "phone <> ''"))]
    phone: String,
    #[entity(collate = "NOCASE")]
    name: String,
    hits: i64,
    #[entity(generated = "hits * 2", unique)]
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
struct Pet {
    #[entity(id)]
    id: i64,
    #[entity(references = Person, on_delete = Cascade)]
    person_id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Setting {
    #[entity(id)]
    name: String,
    value: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Token {
    #[entity(id)]
    id: Uuid,
    uses: i64,
}

fn person(number: i64) -> Person {
    Person {
        id: 0,
        email: format!("P{number}@example.org"),
        code: Some(Uuid::from_u128(number.unsigned_abs().into())),
        street: "Way".to_owned(),
        number: Some(number),
        phone: String::new(),
        name: format!("person {number}"),
        hits: number,
        double: 0,
        version: 0,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH,
        commit_seq: CommitSeq(0),
    }
}

/// Persons 1 to 3, of whom each has a pet.
async fn town() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Person, Pet, Setting, Token)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    for number in 1..=3 {
        let mut person = person(number);
        person.created_at += TimeDelta::days(2);
        person.updated_at += TimeDelta::days(2);
        let person = ctx.add(person);
        ctx.add(Pet {
            id: 0,
            person_id: ctx[person].id,
        });
    }
    ctx.save_changes().await.unwrap();
    db
}

fn kind<E: std::fmt::Debug>(told: &Result<Upserted<E>, ErrorKind>) -> &'static str {
    match told {
        Ok(Upserted::Inserted(_)) => "inserted",
        Ok(Upserted::Updated(_)) => "updated",
        Ok(Upserted::Existing(_)) => "existing",
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn any_unique_key_decides() {
    let changed = || Person {
        name: "new".to_owned(),
        hits: 50,
        ..person(2)
    };
    let by_email = || Person {
        email: "p2@EXAMPLE.org".to_owned(),
        code: None,
        number: Some(9),
        ..changed()
    };
    let by_code = || Person {
        email: "other".to_owned(),
        number: None,
        ..changed()
    };
    let by_place = || Person {
        email: "another".to_owned(),
        code: None,
        ..changed()
    };
    let by_id = || Person { id: 2, ..changed() };
    let upserts = || {
        [
            upsert(by_email()).on(Person::EMAIL),
            upsert(by_code()).on(Person::CODE),
            upsert(by_place()).on(Person::NUMBER).on(Person::STREET),
            upsert(by_id()),
        ]
    };
    for number in 0..4 {
        written!(town().await, at => upserts().into_iter().nth(number).unwrap().execute(at), (db, told) => {
            assert_eq!(kind(&told), "updated", "{number}");
            let row = told.unwrap().into_inner();
            assert_eq!((row.id, row.version, row.hits, row.double, &row.name[..]), (2, 2, 50, 100, "new"), "{number}");
            assert!(row.updated_at > row.created_at && row.created_at == DateTime::UNIX_EPOCH + TimeDelta::days(2));
            let found = Person::find(db, 2).await.unwrap().unwrap();
            assert!(found.commit_seq.0 > 1, "{number}");
            assert_eq!(found, Person { commit_seq: found.commit_seq, ..row });
            let pets: Vec<(i64,)> = by_hand(db, "SELECT count(*) FROM pet WHERE person_id = 2");
            assert_eq!(pets, [(1,)]);
        });
    }
    written!(town().await, at => upsert(person(7)).on(Person::EMAIL).execute(at), (db, told) => {
        assert_eq!(kind(&told), "inserted");
        let row = told.unwrap().into_inner();
        assert_eq!((row.id, row.version, row.double), (4, 1, 14));
        assert!(row.created_at > DateTime::UNIX_EPOCH + TimeDelta::days(300));
        let found = Person::find(db, 4).await.unwrap().unwrap();
        assert_eq!(found, Person { commit_seq: found.commit_seq, ..row });
    });
}

#[tokio::test]
async fn what_is_there_already_is_told_and_stays() {
    let db = town().await;
    let before = Person::find(&db, 1).await.unwrap().unwrap();
    let same = upsert(person(1))
        .on(Person::EMAIL)
        .execute(&db)
        .await
        .unwrap();
    assert_eq!(same, Upserted::Existing(before.clone()));
    let kept = upsert(Person {
        name: "x".to_owned(),
        ..person(1)
    })
    .on(Person::CODE)
    .keep()
    .execute(&db)
    .await
    .unwrap();
    assert_eq!(kept, Upserted::Existing(before.clone()));
    let part = upsert(Person {
        name: "x".to_owned(),
        hits: 99,
        ..person(1)
    })
    .on(Person::CODE)
    .update(Person::HITS)
    .execute(&db)
    .await
    .unwrap()
    .into_inner();
    assert_eq!((part.hits, &part.name[..]), (99, "person 1"));
    // A column that collates NOCASE differs where a letter does.
    let case = upsert(Person {
        name: "PERSON 2".to_owned(),
        ..person(2)
    })
    .on(Person::CODE)
    .execute(&db)
    .await
    .unwrap();
    assert!(
        matches!(&case, Upserted::Updated(row) if row.name == "PERSON 2"),
        "{case:?}"
    );
    let email = upsert(Person {
        email: "p3@example.ORG".to_owned(),
        ..person(3)
    })
    .on(Person::EMAIL)
    .update(Person::EMAIL)
    .execute(&db)
    .await
    .unwrap();
    assert!(
        matches!(&email, Upserted::Updated(row) if row.email == "p3@example.ORG"),
        "{email:?}"
    );
}

#[tokio::test]
async fn keys_of_text_and_uuids_decide() {
    let setting = |value: &str| Setting {
        name: "colour".to_owned(),
        value: value.to_owned(),
    };
    written!({
        let db = town().await;
        let first = upsert(setting("red")).execute(&db).await.map_err(|error| error.kind());
        assert_eq!(kind(&first), "inserted");
        db
    }, at => upsert(setting("blue")).execute(at), (db, told) => {
        assert_eq!(told, Ok(Upserted::Updated(setting("blue"))));
        assert_eq!(Setting::query().count(db).await.unwrap(), 1);
    });
    let db = town().await;
    let token = upsert(Token {
        id: Uuid::nil(),
        uses: 1,
    })
    .execute(&db)
    .await
    .unwrap();
    assert!(matches!(&token, Upserted::Inserted(token) if !token.id.is_nil()));
    let token = token.into_inner();
    let again = upsert(Token {
        uses: 2,
        ..token.clone()
    })
    .execute(&db)
    .await
    .unwrap();
    assert_eq!(again, Upserted::Updated(Token { uses: 2, ..token }));
}

#[tokio::test]
async fn another_key_that_clashes_is_an_error_and_changes_nothing() {
    let clash = || {
        upsert(Person {
            code: Some(Uuid::from_u128(1)),
            ..person(2)
        })
        .on(Person::EMAIL)
    };
    written!(town().await, at => clash().execute(at), (db, told) => {
        assert_eq!(told, Err(ErrorKind::Unique));
        assert_eq!(Person::find(db, 2).await.unwrap().unwrap().version, 1);
    });
    let new = || {
        upsert(Person {
            code: Some(Uuid::from_u128(1)),
            ..person(8)
        })
        .on(Person::EMAIL)
    };
    written!(town().await, at => new().execute(at), (db, told) => {
        assert_eq!(told, Err(ErrorKind::Unique));
        assert_eq!(Person::query().count(db).await.unwrap(), 3);
    });
    let db = town().await;
    let error = new().execute(&db).await.unwrap_err();
    assert_eq!(
        (error.table(), error.column()),
        (Some("person"), Some("code"))
    );
}

#[tokio::test]
async fn what_is_no_key_of_all_rows_is_refused() {
    let db = town().await;
    let kinds = [
        (upsert(person(1)).on(Person::STREET), ErrorKind::Model),
        (upsert(person(1)).on(Person::NAME), ErrorKind::Model),
        (
            upsert(person(1)).on(Person::EMAIL).on(Person::EMAIL),
            ErrorKind::Model,
        ),
        (
            upsert(person(1)).on(Person::EMAIL).on(Person::CODE),
            ErrorKind::Model,
        ),
        (
            upsert(person(1)).on(Person::EMAIL).update(Person::ID),
            ErrorKind::Model,
        ),
        (
            upsert(person(1)).on(Person::EMAIL).update(Person::VERSION),
            ErrorKind::Model,
        ),
        (
            upsert(person(1)).on(Person::EMAIL).update(Person::DOUBLE),
            ErrorKind::Model,
        ),
        (upsert(person(1)).on(Person::DOUBLE), ErrorKind::Model),
        (
            upsert(Person {
                code: None,
                ..person(1)
            })
            .on(Person::CODE),
            ErrorKind::Value,
        ),
        (
            upsert(Person {
                number: None,
                ..person(1)
            })
            .on(Person::STREET)
            .on(Person::NUMBER),
            ErrorKind::Value,
        ),
        (
            upsert(Person {
                name: "\0".to_owned(),
                ..person(1)
            })
            .on(Person::EMAIL),
            ErrorKind::Value,
        ),
    ];
    for (upsert, kind) in kinds {
        let text = format!("{upsert:?}");
        assert_eq!(
            upsert.execute(&db).await.unwrap_err().kind(),
            kind,
            "{text}"
        );
    }
    assert_eq!(Person::query().count(&db).await.unwrap(), 3);
}

#[tokio::test]
async fn a_trigger_that_passes_over_the_row_is_told() {
    let db = town().await;
    execute(&db, "CREATE TRIGGER no_hits BEFORE INSERT ON person WHEN NEW.hits > 100 BEGIN SELECT RAISE(IGNORE); END").await;
    let error = upsert(Person {
        hits: 101,
        ..person(9)
    })
    .on(Person::EMAIL)
    .execute(&db)
    .await
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Constraint);
    assert_eq!(Person::query().count(&db).await.unwrap(), 3);
    execute(
        &db,
        "CREATE TRIGGER stays BEFORE UPDATE ON person BEGIN SELECT RAISE(IGNORE); END",
    )
    .await;
    let told = upsert(Person {
        hits: 5,
        ..person(1)
    })
    .on(Person::EMAIL)
    .execute(&db)
    .await
    .unwrap();
    assert!(matches!(told, Upserted::Existing(row) if row.hits == 1));
}

async fn hit<'c>(at: impl WriteExecutor<'c>, task: i64) -> Result<Upserted<Person>, Error> {
    let person = Person {
        code: None,
        number: None,
        name: format!("task {task}"),
        hits: 1000 + task,
        ..person(77)
    };
    upsert(person).on(Person::EMAIL).execute(at).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_insert_one_row_and_lose_no_update() {
    for in_session in [false, true] {
        let db = Arc::new(town().await);
        let tasks = (0..16).map(|task| {
            let db = Arc::clone(&db);
            tokio::spawn(async move {
                let told = if in_session {
                    db.concurrent(async |s| hit(&mut *s, task).await).await
                } else {
                    hit(&*db, task).await
                };
                kind(&told.map_err(|error| error.kind()))
            })
        });
        let told: Vec<_> = join_all(tasks)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            told.iter().filter(|it| **it == "inserted").count(),
            1,
            "{told:?}"
        );
        assert_eq!(
            told.iter().filter(|it| **it == "updated").count(),
            15,
            "{told:?}"
        );
        let found = Person::query()
            .filter(Person::EMAIL.eq("p77@example.org"))
            .one(&*db)
            .await
            .unwrap();
        assert_eq!(found.version, 16);
    }
}
