//! What a save does to rows that refer to each other, and to keys that are taken.
#![allow(
    clippy::duplicated_attributes,
    reason = "clippy takes the `unique` of two indexes for one attribute"
)]

use anabranch::{
    error::{ErrorKind, Result},
    prelude::*,
};
use anabranch_tests::{Mode, execute, try_execute};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Parent {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Child {
    #[entity(id)]
    id: i64,
    #[entity(references = Parent, on_delete = Cascade)]
    parent: i64,
}

/// Two tables that refer to each other, and one to itself.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Team {
    #[entity(id)]
    id: i64,
    #[entity(references = Player)]
    captain: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Player {
    #[entity(id)]
    id: i64,
    #[entity(references = Team)]
    team: i64,
    #[entity(references = Player)]
    coach: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    index(columns(code, country), unique),
    index(name = "one_default", on = "code, coalesce(region, '')", unique)
)]
struct Rate {
    #[entity(id)]
    id: i64,
    code: String,
    country: Option<String>,
    region: Option<String>,
}

/// INSERT OR REPLACE would delete the parent's row first, and its children with it.
#[tokio::test]
async fn saving_a_parent_keeps_its_children_and_its_rowid() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<(Parent, Child)>().await.unwrap();
        let mut ctx = db.context();
        let parent = ctx.add(Parent {
            id: 0,
            name: "a".to_owned(),
        });
        ctx.add(Child {
            id: 0,
            parent: ctx[parent].id,
        });
        ctx.save_changes().await.unwrap();
        execute(
            &db,
            "CREATE TRIGGER no_delete BEFORE DELETE ON parent BEGIN SELECT RAISE(ABORT, 'deleted'); END",
        )
        .await;
        let id = ctx[parent].id;
        ctx[parent].name = "b".to_owned();
        ctx.save_changes().await.unwrap();
        let mut other = db.context();
        other
            .update(Parent {
                id,
                name: "c".to_owned(),
            })
            .unwrap();
        other.save_changes().await.unwrap();
        assert_eq!(Child::query().count(&db).await.unwrap(), 1);
        assert_eq!(Parent::find(&db, id).await.unwrap().unwrap().name, "c");
    }
}

/// The id of the previous insert is not that of a row that was not inserted.
#[tokio::test]
async fn an_insert_that_is_refused_gives_no_id() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Parent, Child)>().await?;
    let mut ctx = db.context();
    let parent = |name: &str| Parent {
        id: 0,
        name: name.to_owned(),
    };
    let first = ctx.add(parent("a"));
    ctx.save_changes().await?;
    let second = ctx.add(parent("b"));
    let again = ctx.add(parent("a"));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert!(ctx[again].id < 0 && ctx[second].id < 0, "still temporary");
    ctx[again].name = "c".to_owned();
    ctx.save_changes().await?;
    for (handle, name) in [(first, "a"), (second, "b"), (again, "c")] {
        let read = Parent::find(&db, ctx[handle].id).await?.unwrap();
        assert_eq!((read.name.as_str(), &read), (name, &ctx[handle]));
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_refer_to_each_other_are_saved_in_any_order() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<(Team, Player)>().await.unwrap();
        let mut ctx = db.context();
        let team = ctx.add(Team { id: 0, captain: 0 });
        let captain = ctx.add(Player {
            id: 0,
            team: ctx[team].id,
            coach: None,
        });
        ctx[team].captain = ctx[captain].id;
        // Leaf first, and one that refers to itself.
        let leaf = ctx.add(Player {
            id: 0,
            team: ctx[team].id,
            coach: None,
        });
        let root = ctx.add(Player {
            id: 0,
            team: ctx[team].id,
            coach: None,
        });
        ctx[leaf].coach = Some(ctx[root].id);
        ctx[root].coach = Some(ctx[root].id);
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[team].captain, ctx[captain].id);
        assert_eq!(ctx[root].coach, Some(ctx[root].id));
        let read = Player::find(&db, ctx[leaf].id).await.unwrap().unwrap();
        assert_eq!(read.coach, Some(ctx[root].id));

        let error = try_execute(&db, "UPDATE team SET captain = 99").await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ForeignKey);
        ctx[team].captain = 99;
        let error = ctx.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignKey, "deferral is over");
        ctx.reset(team);
        for player in [captain, leaf, root] {
            ctx.remove(player);
        }
        ctx.remove(team);
        ctx.save_changes().await.unwrap();
        assert_eq!(Player::query().count(&db).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn nulls_are_unique_only_where_an_index_says_what_stands_for_them() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Rate>().await?;
    let mut ctx = db.context();
    let rate = |country: Option<&str>, region: Option<&str>| Rate {
        id: 0,
        code: "a".to_owned(),
        country: country.map(str::to_owned),
        region: region.map(str::to_owned),
    };
    ctx.add(rate(None, None));
    ctx.add(rate(None, Some("n")));
    ctx.save_changes().await?;
    ctx.add(rate(Some("nl"), None));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert_eq!(Rate::query().count(&db).await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_key_without_autoincrement_may_return_after_the_file_was_closed() -> Result<()> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let db = Database::open(file.path()).await?;
        db.create_tables::<Parent>().await?;
        let mut ctx = db.context();
        let parent = || Parent {
            id: 0,
            name: "a".to_owned(),
        };
        for _ in 0..2 {
            let last = ctx.add(parent());
            ctx.save_changes().await?;
            ids.push(ctx[last].id);
            ctx.remove(last);
            ctx.save_changes().await?;
        }
        db.close().await?;
    }
    assert_eq!(ids, [1, 2, 1, 2]);
    Ok(())
}
