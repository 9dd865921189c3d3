//! Fields of structs inside of JSON, beside what `path` and Rust find there.

use std::{collections::BTreeMap, time::Duration};

use anabranch::{
    prelude::*,
    query::JsonScalar,
    sql::{Executor, Statement},
    value::{Json, Value},
};
use anabranch_tests::{ask_with, execute};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    index(on = "json_extract(extra, '$.mainColour')", name = "by_colour"),
    index(on = "json_extract(extra, '$.maker.home-town')", name = "by_town")
)]
struct Document {
    #[entity(id)]
    id: i64,
    #[entity(json)]
    extra: Extra,
    #[entity(json)]
    other: Option<Extra>,
    #[entity(references = Document, index)]
    parent_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonFields)]
#[serde(rename_all = "camelCase")]
struct Extra {
    main_colour: String,
    size: Option<i64>,
    weight: f64,
    is_new: bool,
    kind: Kind,
    #[serde(rename = "odd.\"key\"")]
    odd: i64,
    r#type: i64,
    maker: Maker,
    seller: Option<Maker>,
    tags: Vec<String>,
    sizes: Option<Vec<i64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    labels: BTreeMap<String, i64>,
    #[serde(rename(serialize = "written", deserialize = "written"))]
    both: i64,
    // A type that is not asked.
    lasts: Duration,
    #[serde(skip)]
    cache: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, EntityEnum, Serialize, Deserialize)]
enum Kind {
    Plain,
    Fancy,
}

impl JsonScalar for Kind {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonFields)]
#[serde(rename_all = "kebab-case")]
struct Maker {
    home_town: String,
    rating: Option<i64>,
}

fn maker(number: i64) -> Maker {
    Maker {
        home_town: ["Bern", "Rome", "Århus"][usize::try_from(number % 3).unwrap()].into(),
        rating: (number % 2 == 0).then_some(number),
    }
}

fn extra(number: i64) -> Extra {
    Extra {
        main_colour: ["red", "blue", "Red", ""][usize::try_from(number % 4).unwrap()].into(),
        size: (number % 3 != 0).then_some(number),
        weight: f64::from(u8::try_from(number).unwrap()) / 4.0,
        is_new: number % 2 == 0,
        kind: if number % 5 == 0 {
            Kind::Fancy
        } else {
            Kind::Plain
        },
        odd: -number,
        r#type: number * 2,
        maker: maker(number),
        seller: (number % 4 != 1).then(|| maker(number + 1)),
        tags: (0..number % 3).map(|tag| format!("tag {tag}")).collect(),
        sizes: (number % 3 != 2).then(|| (0..number % 5).collect()),
        notes: (number % 2..number % 3)
            .map(|note| note.to_string())
            .collect(),
        labels: BTreeMap::from([("one".to_owned(), number)]),
        both: number,
        lasts: Duration::from_secs(1),
        cache: 0,
    }
}

async fn documents() -> (Database, Vec<Document>) {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Document>().await.unwrap();
    let mut ctx = db.context();
    let documents: Vec<_> = (1..=20)
        .map(|id| Document {
            id,
            extra: extra(id),
            other: (id % 4 != 0).then(|| extra(id + 1)),
            parent_id: (id > 1).then_some(id / 2),
        })
        .collect();
    for document in &documents {
        ctx.add(document.clone());
    }
    ctx.save_changes().await.unwrap();
    (db, documents)
}

/// That conditions select those documents of which they are true in Rust, and their opposites the others.
macro_rules! selects {
    ($db:expr, $documents:expr, $($condition:expr => $is:expr;)*) => {$(
        let (condition, is): (Condition<Document>, fn(&Document) -> bool) = ($condition, $is);
        for (condition, wanted) in [(condition.clone(), true), (!condition, false)] {
            let query = Document::query().filter(condition).order_by(Document::ID.asc());
            let found = query.select(Document::ID).all($db).await.unwrap();
            let those = $documents.iter().filter(|document| is(document) == wanted);
            let expected: Vec<_> = those.map(|document| document.id).collect();
            assert_eq!(found, expected, "{} {wanted}", stringify!($condition));
        }
    )*};
}

#[tokio::test]
async fn fields_are_found_as_rust_finds_them() {
    let (db, documents) = documents().await;
    let (extra, other) = (Document::EXTRA, Document::OTHER);
    let seller = || extra.then(Extra::SELLER);
    selects! { &db, documents,
        extra.then(Extra::MAIN_COLOUR).eq("red") => |it| it.extra.main_colour == "red";
        extra.then(Extra::MAIN_COLOUR).starts_with_exact("R") => |it| it.extra.main_colour.starts_with('R');
        extra.then(Extra::SIZE).ge(5) => |it| it.extra.size >= Some(5);
        extra.then(Extra::SIZE).is_null() => |it| it.extra.size.is_none();
        extra.then(Extra::SIZE).ne(4) => |it| it.extra.size != Some(4);
        extra.then(Extra::WEIGHT).lt(2.5) => |it| it.extra.weight < 2.5;
        extra.then(Extra::IS_NEW).is_true() => |it| it.extra.is_new;
        extra.then(Extra::KIND).eq(Kind::Fancy) => |it| it.extra.kind == Kind::Fancy;
        extra.then(Extra::ODD).gt(-7) => |it| it.extra.odd > -7;
        extra.then(Extra::TYPE).is_in([4, 6]) => |it| [4, 6].contains(&it.extra.r#type);
        extra.then(Extra::BOTH).lt(extra.then(Extra::SIZE).coalesce(9)) => |it| it.extra.both < it.extra.size.unwrap_or(9);
        extra.then(Extra::MAKER).then(Maker::HOME_TOWN).eq("Bern") => |it| it.extra.maker.home_town == "Bern";
        extra.then(Extra::MAKER).then(Maker::RATING).gt(3) => |it| it.extra.maker.rating > Some(3);
        seller().then(Maker::HOME_TOWN).eq("Rome") => |it| it.extra.seller.as_ref().is_some_and(|it| it.home_town == "Rome");
        seller().then(Maker::RATING).eq(None) => |it| it.extra.seller.as_ref().is_none_or(|it| it.rating.is_none());
        seller().is_null() => |it| it.extra.seller.is_none();
        extra.then(Extra::TAGS).has("tag 1") => |it| it.extra.tags.contains(&"tag 1".to_owned());
        extra.then(Extra::TAGS).has_all(["tag 0", "tag 1"]) => |it| it.extra.tags.len() == 2;
        extra.then(Extra::TAGS).length().eq(1) => |it| it.extra.tags.len() == 1;
        extra.then(Extra::SIZES).has_any([3, 9]) => |it| it.extra.sizes.as_ref().is_some_and(|it| it.contains(&3));
        extra.then(Extra::NOTES).has("1") => |it| it.extra.notes.contains(&"1".to_owned());
        extra.then(Extra::NOTES).is_null() => |it| it.extra.notes.is_empty();
        extra.then(Extra::LABELS).path::<i64>("$.one").lt(5) => |it| it.id < 5;
        other.then(Extra::MAIN_COLOUR).eq("blue") => |it| it.other.as_ref().is_some_and(|it| it.main_colour == "blue");
        other.then(Extra::MAIN_COLOUR).is_null() => |it| it.other.is_none();
        other.then(Extra::SELLER).then(Maker::RATING).lt(9) => |it| {
            let rating = it.other.as_ref().and_then(|it| it.seller.as_ref()?.rating);
            rating.is_some_and(|it| it < 9)
        };
    }
    // Of a related row.
    let parents = Document::PARENT.get(Document::EXTRA).then(Extra::ODD);
    let found = Document::query().filter(parents.eq(-2)).count(&db).await;
    assert_eq!(found.unwrap(), 2);
    let lists = Document::PARENT.get(Document::EXTRA).then(Extra::TAGS);
    let refused = Document::query()
        .filter(lists.has("tag 1"))
        .count(&db)
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn what_stands_in_json_is_selected_as_what_it_is() {
    let (db, documents) = documents().await;
    let extra = Document::EXTRA;
    let read = Document::query().order_by(Document::ID.asc()).select((
        extra.then(Extra::MAIN_COLOUR),
        extra.then(Extra::SIZE),
        extra.then(Extra::IS_NEW),
        extra.then(Extra::MAKER),
        extra.then(Extra::SELLER),
        extra.then(Extra::TAGS),
        extra.then(Extra::KIND),
        Document::OTHER.then(Extra::WEIGHT),
    ));
    let read = read.all(&db).await.unwrap();
    assert_eq!(read.len(), documents.len());
    for (row, document) in read.into_iter().zip(documents) {
        let Extra {
            main_colour,
            size,
            is_new,
            maker,
            seller,
            tags,
            kind,
            ..
        } = document.extra;
        let weight = document.other.map(|other| other.weight);
        let (seller, tags) = (seller.map(Json), Json(tags));
        let expected = (
            main_colour,
            size,
            is_new,
            Json(maker),
            seller,
            tags,
            kind,
            weight,
        );
        assert_eq!(row, expected);
    }
}

fn statement(condition: Condition<Document>) -> Statement {
    Document::query().filter(condition).sql().unwrap()
}

#[tokio::test]
async fn a_field_is_the_same_expression_as_its_path() {
    let (db, _) = documents().await;
    let (extra, town) = (
        Document::EXTRA,
        Document::EXTRA.then(Extra::MAKER).then(Maker::HOME_TOWN),
    );
    for (field, path) in [
        (
            extra.then(Extra::MAIN_COLOUR).eq("red"),
            extra.path::<String>("$.mainColour").eq("red"),
        ),
        (
            town.clone().eq("Bern"),
            extra.path::<String>("$.maker.home-town").eq("Bern"),
        ),
        (
            extra.then(Extra::ODD).lt(1),
            extra.path::<i64>(r#"$."odd.\"key\"""#).lt(1),
        ),
        (
            extra.then(Extra::TYPE).lt(1),
            extra.path::<i64>("$.type").lt(1),
        ),
    ] {
        assert_eq!(statement(field), statement(path));
    }
    for (condition, step) in [
        (
            extra.then(Extra::MAIN_COLOUR).eq("red"),
            "SEARCH document USING INDEX by_colour (<expr>=?)",
        ),
        (
            town.starts_with_exact("B"),
            "SEARCH document USING INDEX by_town (<expr>>? AND <expr><?)",
        ),
    ] {
        let statement = statement(condition);
        let mut read = ask_with(&format!("EXPLAIN QUERY PLAN {statement}"), statement.args);
        read.decode = |row| Ok(row.value(3).to_value().unwrap_or(Value::Null));
        let plan = Executor::read(&db, read).await.unwrap().swap_remove(0);
        assert_eq!(plan, Value::Text(step.into()));
    }
}

#[tokio::test]
async fn a_field_that_another_program_left_out_is_null() {
    let (db, _) = documents().await;
    execute(
        &db,
        "UPDATE document SET extra = '{\"size\": \"large\"}' WHERE id <= 2",
    )
    .await;
    let colour = || Document::EXTRA.then(Extra::MAIN_COLOUR);
    let first = || Document::query().filter(Document::ID.le(2));
    assert_eq!(
        first().filter(colour().is_null()).count(&db).await.unwrap(),
        2
    );
    assert_eq!(
        first().filter(colour().ne("red")).count(&db).await.unwrap(),
        2
    );
    // What is not of the field's type is an error only where it is read.
    let size = || Document::EXTRA.then(Extra::SIZE);
    assert_eq!(first().filter(size().gt(0)).count(&db).await.unwrap(), 0);
    let kind = |error: Error| error.kind();
    let read = first().select(colour()).all(&db).await.map_err(kind);
    assert_eq!(read, Err(ErrorKind::Decode));
    let read = first()
        .select(colour().nullable())
        .all(&db)
        .await
        .map_err(kind);
    assert_eq!(read, Ok(vec![None, None]));
    let read = first().select(size()).all(&db).await.map_err(kind);
    assert_eq!(read, Err(ErrorKind::Decode));
}
