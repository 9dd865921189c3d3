//! Rows whose unique values or keys another row takes in the same save.

use anabranch::{error::Result, prelude::*};
use anabranch_tests::Mode;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Parent {
    #[entity(id)]
    id: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Child {
    #[entity(id)]
    id: i64,
    #[entity(references = Parent, on_delete = Cascade)]
    parent: Option<String>,
    #[entity(references = Parent, on_delete = SetNull)]
    weak: Option<String>,
    note: String,
}

fn key(id: &str) -> Option<String> {
    Some(id.to_owned())
}

fn child(parent: Option<String>, weak: Option<String>) -> Child {
    Child {
        id: 0,
        parent,
        weak,
        note: String::new(),
    }
}

/// With the parents "a" and "q".
async fn family() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Parent, Child)>().await.unwrap();
    let mut ctx = db.context();
    for id in ["a", "q"] {
        ctx.add(Parent { id: id.to_owned() });
    }
    ctx.save_changes().await.unwrap();
    db
}

/// Removes a parent and adds one with the same key.
async fn replace(ctx: &mut Context<'_>, id: &str) {
    let old = ctx.find::<Parent>(id.to_owned()).await.unwrap().unwrap();
    ctx.remove(old);
    ctx.add(Parent { id: id.to_owned() });
}

async fn assert_same(db: &Database, ctx: &Context<'_>) {
    let rows = Child::query().order_by(Child::ID.asc()).all(db).await;
    let mut tracked: Vec<_> = (ctx.iter::<Child>())
        .map(|(_, child)| child.clone())
        .collect();
    tracked.sort_by_key(|child| child.id);
    assert_eq!(rows.unwrap(), tracked);
    assert!(!ctx.has_changes());
}

#[tokio::test]
async fn a_child_that_is_moved_to_a_replaced_parent_stays() {
    for (parent, weak) in [
        (None, None),
        (key("q"), None),
        (key("q"), key("q")),
        (None, key("q")),
    ] {
        let db = family().await;
        let mut ctx = db.context();
        let moved = ctx.add(child(parent, weak.clone()));
        let left = ctx.add(child(key("a"), None));
        ctx.save_changes().await.unwrap();
        replace(&mut ctx, "a").await;
        ctx[moved].parent = key("a");
        ctx[moved].weak = weak.and(key("a"));
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[moved].parent, key("a"));
        assert!(ctx.get(left).is_none());
        assert_same(&db, &ctx).await;
    }
}

#[tokio::test]
async fn what_was_added_below_a_replaced_parent_stays() {
    let db = family().await;
    let mut ctx = db.context();
    let idle = ctx.add(child(None, key("a")));
    let renamed = ctx.add(child(None, key("a")));
    let kept = ctx.add(child(key("q"), key("a")));
    ctx.save_changes().await.unwrap();
    replace(&mut ctx, "a").await;
    let strong = ctx.add(child(key("a"), None));
    let weak = ctx.add(child(None, key("a")));
    ctx[renamed].note.push('!');
    assert!(ctx.mark_modified(kept, Child::WEAK));
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[strong].parent, key("a"));
    assert_eq!(ctx[weak].weak, key("a"));
    assert_eq!((&ctx[idle].weak, &ctx[renamed].weak), (&None, &None));
    assert_eq!(ctx[kept].weak, key("a"));
    assert_same(&db, &ctx).await;
}

/// What is done between the save and its settling is the application's.
#[tokio::test]
async fn a_save_in_flight_that_replaces_a_parent_is_accepted_step_by_step() {
    let db = family().await;
    let mut ctx = db.context();
    let [renamed, moved, removed] = [(); 3].map(|()| ctx.add(child(None, key("a"))));
    ctx.save_changes().await.unwrap();
    replace(&mut ctx, "a").await;
    let added = ctx.add(child(key("a"), None));
    ctx[renamed].note.push('!');
    ctx[moved].weak = key("q");
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    ctx[renamed].note.push('?');
    ctx[moved].weak = key("a");
    ctx.remove(added);
    ctx.remove(removed);
    tx.commit().await.unwrap();
    ctx.find::<Parent>("none".to_owned()).await.unwrap();
    let modified = |ctx: &Context<'_>, handle, column| ctx.entry(handle).is_modified(column);
    assert_eq!(ctx[renamed].weak, None);
    assert!(!modified(&ctx, renamed, Child::WEAK));
    assert_eq!(ctx[moved].weak, key("a"));
    assert!(modified(&ctx, moved, Child::WEAK));
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.updated, saved.deleted), (2, 2));
    assert_same(&db, &ctx).await;
}

/// An update cannot come before a delete and after the insert behind it: the save is refused as a whole.
#[tokio::test]
async fn a_child_between_two_replaced_parents_is_a_conflict_and_not_lost() {
    let db = family().await;
    let mut ctx = db.context();
    let moved = ctx.add(child(key("q"), None));
    ctx.save_changes().await.unwrap();
    replace(&mut ctx, "a").await;
    replace(&mut ctx, "q").await;
    ctx[moved].parent = key("a");
    assert!(ctx.save_changes().await.unwrap_err().is_conflict());
    let rows = Child::query().all(&db).await.unwrap();
    assert_eq!(rows[0].parent, key("q"));
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Room {
    #[entity(id)]
    floor: i64,
    #[entity(id)]
    number: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(columns(floor, number), references = Room, on_delete = Cascade))]
struct Seat {
    #[entity(id)]
    id: i64,
    floor: i64,
    number: Option<i64>,
}

/// Only one column of the reference changes.
#[tokio::test]
async fn a_part_of_a_reference_moves_a_child_to_a_replaced_parent() {
    for before in [Some(1), None] {
        let db = Mode::Inline.temporary().await;
        db.create_tables::<(Room, Seat)>().await.unwrap();
        let mut ctx = db.context();
        let [_, old] = [1, 2].map(|number| ctx.add(Room { floor: 5, number }));
        let seat = ctx.add(Seat {
            id: 0,
            floor: 5,
            number: before,
        });
        ctx.save_changes().await.unwrap();
        ctx.remove(old);
        ctx.add(Room {
            floor: 5,
            number: 2,
        });
        ctx[seat].number = Some(2);
        ctx.save_changes().await.unwrap();
        assert_eq!(Seat::query().all(&db).await.unwrap(), [ctx[seat].clone()]);
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(columns(name), unique, where = "deleted = 0"))]
struct Label {
    #[entity(id)]
    id: i64,
    name: String,
    deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(on = "lower(name)", name = "by_name", unique))]
struct Sign {
    #[entity(id)]
    id: i64,
    name: String,
}

fn label() -> Label {
    Label {
        id: 0,
        name: "top".to_owned(),
        deleted: false,
    }
}

#[tokio::test]
async fn a_partial_index_is_made_room_in_before_it_is_taken() {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Label, Sign)>().await.unwrap();
    let mut ctx = db.context();
    let first = ctx.add(label());
    ctx.save_changes().await.unwrap();
    ctx[first].deleted = true;
    let second = ctx.add(label());
    ctx.save_changes().await.unwrap();
    ctx.remove(second);
    let third = ctx.add(label());
    ctx.save_changes().await.unwrap();
    // A delete for an update, too.
    ctx.remove(third);
    ctx[first].deleted = false;
    ctx.save_changes().await.unwrap();
    assert_eq!(Label::query().all(&db).await.unwrap(), [ctx[first].clone()]);
}

#[tokio::test]
async fn an_index_on_an_expression_is_made_room_in_before_it_is_taken() {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Label, Sign)>().await.unwrap();
    let sign = |name: &str| Sign {
        id: 0,
        name: name.to_owned(),
    };
    let mut ctx = db.context();
    let first = ctx.add(sign("Exit"));
    ctx.save_changes().await.unwrap();
    ctx[first].name = "Way out".to_owned();
    let second = ctx.add(sign("EXIT"));
    ctx.save_changes().await.unwrap();
    ctx.remove(second);
    ctx.add(sign("exit"));
    ctx.save_changes().await.unwrap();
    assert_eq!(Sign::query().count(&db).await.unwrap(), 2);
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct User {
    #[entity(id, collate = "NOCASE")]
    name: String,
    #[entity(unique, collate = "RTRIM")]
    mail: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Post {
    #[entity(id)]
    id: i64,
    #[entity(references = User, on_delete = Cascade)]
    author: String,
}

fn user(name: &str, mail: &str) -> User {
    User {
        name: name.to_owned(),
        mail: mail.to_owned(),
    }
}

async fn blog() -> Database {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(User, Post)>().await.unwrap();
    db
}

#[tokio::test]
async fn unique_values_and_keys_are_replaced_as_they_collate() -> Result<()> {
    let db = blog().await;
    let mut ctx = db.context();
    let ada = ctx.add(user("Ada", "a@example.org"));
    let bob = ctx.add(user("Bob", "b@example.org"));
    ctx.save_changes().await?;
    ctx.remove(ada);
    ctx.add(user("ada", "other"));
    ctx.save_changes().await?;
    ctx.remove(bob);
    ctx.add(user("Cy", "b@example.org  "));
    ctx.save_changes().await?;
    assert_eq!(User::query().count(&db).await?, 2);
    Ok(())
}

/// A reference is compared as the key is, not by a collation of its own.
#[tokio::test]
async fn a_cascade_is_followed_as_keys_collate() -> Result<()> {
    let db = blog().await;
    let mut ctx = db.context();
    let ada = ctx.add(user("ADA", "a"));
    ctx.add(user("Bob", "b"));
    let [lost, kept] = ["ada", "BOB"].map(|author| {
        ctx.add(Post {
            id: 0,
            author: author.to_owned(),
        })
    });
    ctx.save_changes().await?;
    ctx.remove(ada);
    ctx.save_changes().await?;
    assert!(ctx.get(lost).is_none());
    assert_eq!(Post::query().all(&db).await?, [ctx[kept].clone()]);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Leaf {
    #[entity(id)]
    id: i64,
    #[entity(references = Parent, on_delete = SetNull)]
    tree: Option<String>,
    note: String,
    #[entity(generated = "tree IS NULL")]
    fallen: bool,
}

#[tokio::test]
async fn an_entity_with_computed_columns_is_read_again_when_its_reference_becomes_null() {
    let db = family().await;
    db.create_tables::<Leaf>().await.unwrap();
    let leaf = |tree: &str| Leaf {
        id: 0,
        tree: key(tree),
        note: String::new(),
        fallen: false,
    };
    let mut ctx = db.context();
    let (idle, written) = (ctx.add(leaf("a")), ctx.add(leaf("a")));
    let other = ctx.add(leaf("q"));
    ctx.save_changes().await.unwrap();
    let id = ctx[idle].id;
    // It goes before the update, which comes back with what was computed.
    replace(&mut ctx, "a").await;
    ctx[written].note.push('!');
    ctx.save_changes().await.unwrap();
    assert!(ctx.get(idle).is_none());
    assert_eq!(ctx[written].tree, None);
    assert!(ctx[written].fallen && !ctx[other].fallen);
    let idle = ctx.find::<Leaf>(id).await.unwrap().unwrap();
    assert!(ctx[idle].fallen);
    assert!(!ctx.has_changes());
}
