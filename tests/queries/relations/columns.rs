//! Relations on columns that no reference declares, as tables of other programs have them.

use anabranch::prelude::*;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Person {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    login: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Visit {
    #[entity(id)]
    id: i64,
    person: String,
    guide: Option<String>,
}

const VISITS: Relation<Person, Vec<Visit>> = Relation::on(Person::LOGIN, Visit::PERSON);
const GUIDED: Relation<Person, Vec<Visit>> = Relation::on(Person::LOGIN, Visit::GUIDE);
const PERSON: Relation<Visit, Option<Person>> = Relation::on(Visit::PERSON, Person::LOGIN);
const GUIDE: Relation<Visit, Option<Person>> = Relation::on(Visit::GUIDE, Person::LOGIN);

/// Two persons and two visits have NULL in the columns of the relations.
async fn museum() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Person, Visit)>().await.unwrap();
    let mut ctx = db.context();
    for login in [Some("ada"), Some("bob"), None, None] {
        let login = login.map(str::to_owned);
        ctx.add(Person { id: 0, login });
    }
    for (person, guide) in [("ada", Some("bob")), ("ada", None), ("eve", None)] {
        ctx.add(Visit {
            id: 0,
            person: person.to_owned(),
            guide: guide.map(str::to_owned),
        });
    }
    ctx.save_changes().await.unwrap();
    db
}

#[tokio::test]
async fn columns_that_may_be_null_lead_to_many() {
    let db = museum().await;
    let read = Person::query()
        .order_by(Person::ID.asc())
        .select((
            VISITS.order_by(Visit::ID.asc()).select(Visit::ID),
            GUIDED.select(Visit::ID),
            VISITS.count(),
            GUIDED.count(),
        ))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(
        read,
        [
            (vec![1, 2], vec![], 2, 0),
            (vec![], vec![1], 0, 1),
            (vec![], vec![], 0, 0),
            (vec![], vec![], 0, 0),
        ]
    );
    let nobody = Person { id: 3, login: None };
    assert_eq!(GUIDED.of(&nobody).count(&db).await.unwrap(), 0);
}

#[tokio::test]
async fn columns_that_may_be_null_lead_to_one_or_none() {
    let db = museum().await;
    let read = Visit::query()
        .order_by(Visit::ID.asc())
        .select((PERSON.select(Person::ID), GUIDE.select(Person::ID)))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(read, [(Some(1), Some(2)), (Some(1), None), (None, None)]);
    let unguided = Visit::query().filter(!GUIDE.exists());
    assert_eq!(unguided.count(&db).await.unwrap(), 2);
}
