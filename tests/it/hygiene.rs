//! The derives under any conditions: names that are reserved or ours, types that hide those of the prelude, nothing
//! imported, any visibility, and the strictest lints.

use anabranch::{
    entity::{Entity, EntityEmbed, EntityEnum, EntityNewtype},
    error::{ErrorKind, Result},
    prelude::Database,
    query::Projection,
    sql::Executor,
};
use anabranch_tests::{Mode, ask, execute};
use uuid::Uuid;

/// Nothing is imported, nothing is left out, and the lints are as strict as they come.
mod strict {
    #![deny(missing_docs, warnings, clippy::all, clippy::pedantic, clippy::nursery)]
    #![deny(unused_qualifications, unreachable_pub, unnameable_types)]
    #![deny(missing_debug_implementations, single_use_lifetimes, unused_lifetimes)]
    #![allow(
        clippy::redundant_pub_crate,
        reason = "this is a crate of its own for the sake of the test"
    )]

    /// Public, with fields that are not.
    #[derive(Debug, Clone, PartialEq, ::anabranch::entity::Entity)]
    #[entity(
        has_many(relation: Relation),
        has_one(condition: Condition),
        has_many(r#type: Condition, through = Relation),
        filter(r#match = positive)
    )]
    pub(crate) struct Model {
        #[entity(id)]
        id: i64,
        pub(crate) entity: Entity,
        pub(super) column: Column,
        #[entity(embed)]
        error: Error,
        #[entity(embed)]
        pub(in crate::hygiene) result: Option<Result>,
        #[entity(embed)]
        option: Choice,
    }

    #[derive(Debug, Clone, PartialEq, Eq, ::anabranch::entity::EntityNewtype)]
    pub(crate) struct Entity(::std::string::String);

    #[derive(Debug, Clone, Copy, PartialEq, Eq, ::anabranch::entity::EntityEnum)]
    #[entity(check)]
    pub(crate) enum Column {
        Ok,
        Err,
        Some,
        None,
    }

    #[derive(Debug, Clone, PartialEq, Eq, ::anabranch::entity::EntityEmbed)]
    struct Error {
        kind: ::std::string::String,
        row: i64,
    }

    #[derive(Debug, Clone, PartialEq, Eq, ::anabranch::entity::EntityEmbed)]
    pub(crate) struct Result {
        value: i64,
        first: i64,
    }

    /// Its fields are named as the parameters of what the derive writes.
    #[derive(Debug, Clone, PartialEq, Eq, ::anabranch::entity::EntityEmbed)]
    enum Choice {
        None,
        Some(i64),
        Ok {
            column: i64,
            value: ::std::string::String,
            row: ::std::option::Option<i64>,
            first: i64,
            json: i64,
        },
        #[deprecated]
        Type {
            r#type: i64,
        },
        Err(#[entity(embed)] Error),
    }

    fn positive() -> ::anabranch::query::Condition<Model> {
        Model::ID.gt(0)
    }

    /// Refers to two, once by a field and once by a foreign key.
    #[derive(Debug, ::anabranch::entity::Entity)]
    #[entity(foreign_key(columns(condition), references = Condition, relation = r#where))]
    pub(crate) struct Relation {
        #[entity(id)]
        id: i64,
        #[entity(references = Model)]
        pub(super) model_id: i64,
        condition: ::std::option::Option<i64>,
    }

    #[derive(Debug, ::anabranch::entity::Entity)]
    pub(crate) struct Condition {
        #[entity(id, references = Model, relation = r#type)]
        id: i64,
    }

    impl Relation {
        pub(super) const fn of(model: &Model, condition: ::std::option::Option<i64>) -> Self {
            Self {
                id: 0,
                model_id: model.id,
                condition,
            }
        }
    }

    /// Private, as what it is read from is not.
    #[derive(Debug, PartialEq, Eq, ::anabranch::query::Projection)]
    #[projection(entity = Model)]
    pub(super) struct Projection {
        id: i64,
        entity: Entity,
        column: Column,
        #[projection(from = Model::ERROR.then(Error::ROW))]
        parts: i64,
        #[projection(from = Model::COLUMN)]
        selection: Column,
        #[projection(from = Model::ID)]
        r#type: i64,
        #[projection(from = Model::ID)]
        __selected: i64,
        #[projection(nested = Model::RELATION)]
        relation: ::std::vec::Vec<Selection>,
        #[projection(nested = Model::CONDITION)]
        condition: ::std::option::Option<Parts>,
    }

    impl Projection {
        pub(super) fn is_of(&self, model: &Model) -> bool {
            let same = self.parts == model.error.row && self.condition.is_none();
            let id = self.id == self.r#type && self.id == self.__selected && self.id == model.id;
            let column = self.column == self.selection && self.column == model.column;
            same && id && column && self.entity == model.entity
        }

        pub(super) fn relations(&self) -> usize {
            let is_known = |it: &&Selection| it.model_id == self.id && it.r#where.is_none();
            self.relation.iter().filter(is_known).count()
        }
    }

    #[derive(Debug, PartialEq, Eq, ::anabranch::query::Projection)]
    #[projection(entity = Relation)]
    pub(crate) struct Selection {
        model_id: i64,
        #[projection(nested = Relation::WHERE)]
        r#where: ::std::option::Option<Parts>,
    }

    #[derive(Debug, PartialEq, Eq, ::anabranch::query::Projection)]
    #[projection(entity = Condition)]
    pub(crate) struct Parts {
        id: i64,
    }

    pub(super) fn model() -> Model {
        Model {
            id: 0,
            entity: Entity("e".to_owned()),
            column: Column::Some,
            error: Error {
                kind: "k".to_owned(),
                row: 1,
            },
            result: Some(Result { value: 1, first: 2 }),
            option: Choice::Ok {
                column: 1,
                value: "v".to_owned(),
                row: None,
                first: 2,
                json: 3,
            },
        }
    }

    impl Model {
        /// The variants that nothing else makes.
        #[allow(deprecated, reason = "a deprecated variant may still be stored")]
        pub(super) fn others(&self) -> [Self; 4] {
            let other = |option| Self {
                id: 0,
                option,
                column: [Column::Ok, Column::Err, Column::None][0],
                ..self.clone()
            };
            [
                other(Choice::None),
                other(Choice::Some(4)),
                other(Choice::Type { r#type: 5 }),
                other(Choice::Err(Error {
                    kind: "e".to_owned(),
                    row: 2,
                })),
            ]
        }
    }
}

#[tokio::test]
async fn types_that_are_named_like_ours_do_no_harm() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(strict::Model, strict::Relation, strict::Condition)>()
        .await?;
    let mut ctx = db.context();
    let one = ctx.add(strict::model());
    let others = ctx[one].others().map(|other| ctx.add(other));
    ctx.save_changes().await?;
    for handle in others.into_iter().chain([one]) {
        let key = ctx[handle].key();
        let read = strict::Model::find(&db, key).await?;
        assert_eq!(read.as_ref(), Some(&ctx[handle]));
    }
    assert_eq!(ctx[one].result.as_ref(), strict::model().result.as_ref());

    ctx.add(strict::Relation::of(&ctx[one], None));
    ctx.save_changes().await?;
    let rows = strict::Model::query().project::<strict::Projection>();
    let rows = rows.order_by(strict::Model::ID.desc()).all(&db).await?;
    assert!(rows.last().unwrap().is_of(&ctx[one]));
    assert_eq!(
        rows.iter()
            .map(strict::Projection::relations)
            .sum::<usize>(),
        1
    );
    Ok(())
}

/// Types with the names of the prelude: what the derives write must not mean them.
mod shadowed {
    #![allow(dead_code, unused_macros, reason = "the names are all that matters")]

    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Value;
    pub(super) struct Self_;
    pub(super) trait Default {}
    pub(super) trait Clone {}
    pub(super) trait Into {}
    pub(super) trait From {}
    pub(super) trait Send {}
    pub(super) trait Sized {}
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod anabranch {}
    macro_rules! assert {
        () => {};
    }
    macro_rules! matches {
        () => {};
    }

    #[derive(::anabranch::entity::Entity)]
    #[entity(has_many(children: Shadowed), filter(known = known))]
    pub(super) struct Shadowed {
        #[entity(id, autoincrement)]
        pub(super) id: Key,
        #[entity(embed)]
        pub(super) part: ::std::option::Option<Part>,
        #[entity(embed)]
        pub(super) choice: Choice,
        #[entity(json)]
        pub(super) list: ::std::vec::Vec<i64>,
        #[entity(skip)]
        pub(super) skipped: i64,
        pub(super) word: Word,
        #[entity(references = Self)]
        pub(super) parent_id: ::std::option::Option<Key>,
    }

    fn known() -> ::anabranch::query::Condition<Shadowed> {
        Shadowed::WORD.ne(Word::None)
    }

    #[derive(::anabranch::query::Projection)]
    #[projection(entity = Shadowed)]
    pub(super) struct Projected {
        pub(super) id: Key,
        #[projection(json)]
        pub(super) list: ::std::vec::Vec<i64>,
        #[projection(nested = Shadowed::CHILDREN)]
        pub(super) children: ::std::vec::Vec<Child>,
        #[projection(nested = Shadowed::PARENT)]
        pub(super) parent: ::std::option::Option<Child>,
    }

    #[derive(::anabranch::query::Projection)]
    #[projection(entity = Shadowed)]
    pub(super) struct Child {
        pub(super) word: Word,
    }

    #[derive(
        ::std::fmt::Debug,
        ::std::clone::Clone,
        ::std::marker::Copy,
        PartialEq,
        Eq,
        Hash,
        ::anabranch::entity::EntityNewtype,
    )]
    #[entity(key)]
    pub(super) struct Key(pub(super) i64);

    #[derive(::anabranch::entity::EntityEmbed)]
    pub(super) struct Part {
        pub(super) text: ::std::string::String,
    }

    #[derive(::anabranch::entity::EntityEmbed)]
    pub(super) enum Choice {
        One(i64),
        Two,
    }

    #[derive(PartialEq, ::anabranch::entity::EntityEnum)]
    #[entity(check)]
    pub(super) enum Word {
        Some,
        None,
    }
}

#[tokio::test]
async fn the_prelude_may_be_hidden() -> Result<()> {
    use shadowed::{Choice, Key, Part, Shadowed, Word};

    let db = Mode::Inline.temporary().await;
    db.create_tables::<Shadowed>().await?;
    let mut ctx = db.context();
    let one = ctx.add(Shadowed {
        id: Key(0),
        part: Some(Part {
            text: "x".to_owned(),
        }),
        choice: Choice::One(3),
        list: vec![1],
        skipped: 1,
        word: Word::Some,
        parent_id: None,
    });
    ctx.save_changes().await?;
    let read = Shadowed::find(&db, ctx[one].id).await?.unwrap();
    assert!(matches!(read.choice, Choice::One(3)));
    assert!(matches!(read.word, Word::Some));
    assert_eq!(read.part.unwrap().text, "x");
    assert_eq!((read.list, read.skipped), (vec![1], 0));
    let query = Shadowed::query().filter(Shadowed::WORD.ne(Word::None));
    assert_eq!(query.clone().count(&db).await?, 1);
    let row = query.project::<shadowed::Projected>().one(&db).await?;
    assert_eq!((row.id, row.list), (Key(1), vec![1]));
    assert!(row.parent.is_none() && row.children.iter().all(|child| child.word == Word::Some));
    Ok(())
}

#[tokio::test]
async fn types_of_a_function_are_entities_too() -> Result<()> {
    #[derive(Debug, PartialEq, Entity)]
    struct Local {
        #[entity(id)]
        id: i64,
        #[entity(embed)]
        inner: Inner,
        state: State,
        #[entity(references = Local, relation = above)]
        parent: Option<i64>,
    }

    #[derive(Debug, PartialEq, Projection)]
    #[projection(entity = Local)]
    struct Row {
        state: State,
        #[projection(nested = Local::ABOVE)]
        above: Option<Above>,
    }

    #[derive(Debug, PartialEq, Projection)]
    #[projection(entity = Local)]
    struct Above {
        id: i64,
    }

    #[derive(Debug, PartialEq, EntityEmbed)]
    struct Inner {
        name: Name,
    }

    #[derive(Debug, PartialEq, EntityNewtype)]
    struct Name(String);

    #[derive(Debug, PartialEq, EntityEnum)]
    enum State {
        New,
    }

    let db = Mode::Inline.temporary().await;
    db.create_tables::<Local>().await?;
    let mut ctx = db.context();
    let local = |parent| Local {
        id: 0,
        inner: Inner {
            name: Name("x".to_owned()),
        },
        state: State::New,
        parent,
    };
    let one = ctx.add(local(None));
    ctx.save_changes().await?;
    assert_eq!(Local::find(&db, 1).await?.unwrap(), ctx[one]);
    ctx.add(local(Some(1)));
    ctx.save_changes().await?;
    let row = Local::query().filter(Local::ID.eq(2)).project::<Row>();
    let expected = Row {
        state: State::New,
        above: Some(Above { id: 1 }),
    };
    assert_eq!(row.one(&db).await?, expected);
    Ok(())
}

/// Reserved words and odd names for everything that has a name: table, columns, key, index, foreign key.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    table = "select",
    index(columns(from, where_, place.order), name = "index", unique),
    foreign_key(columns(from, by), references = Quoted, on_delete = Cascade)
)]
struct Reserved {
    #[entity(id, column = "primary")]
    key: Uuid,
    from: String,
    #[entity(column = "references")]
    by: i64,
    #[entity(column = "where", index)]
    where_: Option<String>,
    #[entity(unique)]
    group: i64,
    #[entity(embed, prefix = "")]
    place: Place,
    #[entity(references = Reserved, on_delete = SetNull)]
    r#match: Option<Uuid>,
    #[entity(version)]
    values: i64,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Place {
    order: i64,
    #[entity(column = "naïve 日本 🦀", index)]
    größe: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "a\"b.c'd")]
struct Quoted {
    #[entity(id, column = "a\"b")]
    one: String,
    #[entity(id, column = "a.b; --")]
    two: i64,
    #[entity(column = "%s ?1 :x @y $z [w] `v`", index)]
    three: i64,
    #[entity(column = "  ü  ")]
    four: Option<String>,
    #[entity(column = "null")]
    five: Option<i64>,
}

fn reserved(group: i64) -> Reserved {
    Reserved {
        key: Uuid::nil(),
        from: "q".to_owned(),
        by: 1,
        where_: Some("w".to_owned()),
        group,
        place: Place {
            order: group,
            größe: 2,
        },
        r#match: None,
        values: 0,
    }
}

async fn open_reserved() -> Result<Database> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Reserved, Quoted)>().await?;
    let mut ctx = db.context();
    ctx.add(Quoted {
        one: "q".to_owned(),
        two: 1,
        three: 3,
        four: None,
        five: Some(5),
    });
    ctx.save_changes().await?;
    Ok(db)
}

#[tokio::test]
async fn reserved_words_and_odd_names_are_names() -> Result<()> {
    let db = open_reserved().await?;
    let mut ctx = db.context();
    let one = ctx.add(reserved(1));
    ctx.save_changes().await?;
    let two = ctx.add(Reserved {
        r#match: Some(ctx[one].key),
        ..reserved(2)
    });
    ctx.save_changes().await?;
    assert_eq!(
        Reserved::find(&db, ctx[two].key).await?.as_ref(),
        Some(&ctx[two])
    );
    let found = Reserved::query()
        .filter(Reserved::GROUP.gt(1))
        .filter(Reserved::PLACE.then(Place::ORDER).eq(2))
        .filter(Reserved::PLACE.then(Place::GRÖSSE).is_in([1, 2]))
        .filter(Reserved::WHERE_.starts_with("W"))
        .order_by(Reserved::FROM.desc())
        .one(&db)
        .await?;
    assert_eq!(found, ctx[two]);

    ctx[two].place.größe = 9;
    ctx[two].where_ = None;
    assert_eq!(ctx.save_changes().await?.updated, 1);
    let mut other = db.context();
    let same = other.find::<Reserved>(ctx[two].key).await?.unwrap();
    other[same].place.größe = 10;
    other.save_changes().await?;
    ctx[two].group = 7;
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.is_conflict());
    ctx.merge(&error)?;
    ctx.save_changes().await?;
    assert_eq!((ctx[two].group, ctx[two].place.größe), (7, 10));

    ctx[two].group = 1;
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    ctx[two].group = 7;
    ctx.remove(one);
    ctx.save_changes().await?;
    assert_eq!(ctx[two].r#match, None);

    let quoted = ctx.find::<Quoted>(("q".to_owned(), 1)).await?.unwrap();
    ctx[quoted].three = 4;
    ctx[quoted].four = Some("x".to_owned());
    ctx.save_changes().await?;
    let found = Quoted::query().filter(Quoted::THREE.eq(4)).one(&db).await?;
    assert_eq!(found, ctx[quoted]);
    ctx.remove(quoted);
    ctx.save_changes().await?;
    assert_eq!(Reserved::query().count(&db).await?, 0, "by cascade");
    Ok(())
}

/// The names by which SQLite calls the rowid are columns here, of other types and with other values.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "rows")]
struct Rowids {
    #[entity(id)]
    id: i64,
    rowid: String,
    oid: Option<i64>,
    #[entity(unique)]
    _rowid_: i64,
    #[entity(commit_seq)]
    seq: anabranch::entity::CommitSeq,
    #[entity(version)]
    version: i64,
}

#[tokio::test]
async fn columns_named_like_the_rowid_are_columns() -> Result<()> {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Rowids>().await?;
        let mut ctx = db.context();
        let rows = [1, 2, 3].map(|number| {
            ctx.add(Rowids {
                id: 0,
                rowid: format!("row {number}"),
                oid: Some(100 - number),
                _rowid_: 50 - number,
                seq: anabranch::entity::CommitSeq(0),
                version: 0,
            })
        });
        ctx.save_changes().await?;
        assert_eq!(rows.map(|row| ctx[row].id), [1, 2, 3]);
        ctx[rows[1]].rowid = "changed".to_owned();
        ctx[rows[1]].oid = None;
        ctx.save_changes().await?;
        assert!(ctx[rows[1]].seq > ctx[rows[0]].seq);
        execute(&db, "INSERT INTO rows VALUES (9, 'raw', 1, 2, 0, 1)").await;
        let next = ctx.add(Rowids {
            id: 0,
            _rowid_: 60,
            ..ctx[rows[0]].clone()
        });
        ctx.remove(rows[2]);
        ctx.save_changes().await?;
        assert_eq!(ctx[next].id, 10);
        for row in [rows[0], rows[1], next] {
            assert_eq!(Rowids::find(&db, ctx[row].id).await?.unwrap(), ctx[row]);
        }
        let found = Rowids::query()
            .filter(Rowids::ROWID.eq("changed".to_owned()))
            .filter(Rowids::OID.is_null())
            .filter(Rowids::_ROWID_.eq(48));
        assert_eq!(found.count(&db).await?, 1);
    }
    Ok(())
}

/// A key that is called `rowid` and is none.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Named {
    #[entity(id)]
    rowid: String,
    #[entity(commit_seq)]
    seq: anabranch::entity::CommitSeq,
}

#[tokio::test]
async fn a_key_may_be_called_rowid_and_be_none() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Named>().await?;
    let mut ctx = db.context();
    let one = ctx.add(Named {
        rowid: "a".to_owned(),
        seq: anabranch::entity::CommitSeq(0),
    });
    ctx.save_changes().await?;
    assert!(ctx[one].seq.0 > 0);
    let read = Named::find(&db, "a").await?.unwrap();
    assert_eq!(read, ctx[one]);
    Ok(())
}

/// SQLite would take a name in double quotes that it does not know for a text.
#[tokio::test]
async fn a_mistyped_column_in_double_quotes_is_an_error() -> Result<()> {
    let db = open_reserved().await?;
    for sql in [
        "SELECT \"nosuch\"",
        "SELECT 1 FROM \"select\" WHERE \"group\" = \"nosuch\"",
        "INSERT INTO \"a\"\"b.c'd\" (\"a\"\"b\", \"a.b; --\", \"%s ?1 :x @y $z [w] `v`\") VALUES (\"nosuch\", 1, 1)",
        "CREATE INDEX wrong ON \"select\" (\"nosuch\")",
    ] {
        let raw = db
            .write(async |tx| {
                sqlx::query(sqlx::AssertSqlSafe(sql))
                    .execute(&mut *tx)
                    .await?;
                Ok(())
            })
            .await
            .unwrap_err();
        assert!(raw.to_string().contains("nosuch"), "{raw}");
    }
    let read = Executor::read(&db, ask("SELECT \"nosuch\""))
        .await
        .unwrap_err();
    assert!(read.to_string().contains("nosuch"), "{read}");
    Ok(())
}

/// Definitions that another program wrote so are read as they were meant; what is looked up later is an error then.
#[tokio::test]
async fn texts_in_double_quotes_in_the_tables_of_others_stay_texts() -> Result<()> {
    let file = tempfile::NamedTempFile::new().unwrap();
    anabranch_tests::outsider(file.path())
        .execute_batch(
            "CREATE TABLE named (rowid TEXT PRIMARY KEY NOT NULL CHECK (rowid <> \"x\"), seq INTEGER NOT NULL) STRICT;
             CREATE INDEX part ON named (seq) WHERE rowid <> \"y\";
             CREATE TABLE log (text);
             CREATE TRIGGER later AFTER DELETE ON named BEGIN INSERT INTO log VALUES (\"gone\"); END;",
        )
        .unwrap();
    let db = Database::open(file.path()).await?;
    let mut ctx = db.context();
    let named = |rowid: &str| Named {
        rowid: rowid.to_owned(),
        seq: anabranch::entity::CommitSeq(0),
    };
    let one = ctx.add(named("a"));
    ctx.save_changes().await?;
    let wrong = ctx.add(named("x"));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Check);
    ctx.remove(wrong);
    ctx.remove(one);
    let error = ctx.save_changes().await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    assert_eq!(Named::query().count(&db).await?, 1, "nothing is lost");
    Ok(())
}
