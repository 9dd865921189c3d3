//! Keys, references and unique values as reports of other libraries have them: cases G and I.

use anabranch::{error::Result, prelude::*};
use anabranch_tests::{
    Mode,
    note::{Note, note, notes},
};

#[derive(Debug, Entity)]
#[allow(clippy::duplicated_attributes, reason = "two indexes are unique")]
#[entity(index(columns(customer, colour), unique, name = "with_nulls"))]
#[entity(index(on = "customer, coalesce(shape, '')", unique, name = "coalesced"))]
struct Wish {
    #[entity(id)]
    id: i64,
    customer: i64,
    colour: Option<String>,
    shape: Option<String>,
}

/// Case 92. To SQL every NULL is another; an index on an expression has them count as one value.
#[tokio::test]
async fn nulls_are_no_duplicates_unless_an_index_on_an_expression_says_so() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Wish>().await?;
    let mut ctx = db.context();
    let wish = |shape: Option<&str>| Wish {
        id: 0,
        customer: 1,
        colour: None,
        shape: shape.map(str::to_owned),
    };
    ctx.add(wish(None));
    ctx.add(wish(Some("round")));
    assert_eq!(ctx.save_changes().await?.inserted, 2);
    ctx.add(wish(None));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    Ok(())
}

#[derive(Debug, Entity)]
struct Husband {
    #[entity(id)]
    id: i64,
    #[entity(references = Wife)]
    wife: i64,
}

#[derive(Debug, Entity)]
struct Wife {
    #[entity(id)]
    id: i64,
    #[entity(references = Husband)]
    husband: i64,
}

#[derive(Debug, Entity)]
struct Folder {
    #[entity(id)]
    id: i64,
    #[entity(references = Folder, on_delete = Cascade)]
    parent: Option<i64>,
    name: String,
}

/// Case 112.
#[tokio::test]
async fn circles_and_trees_are_saved_in_whatever_order_they_were_added() -> Result<()> {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<(Husband, Wife, Folder)>().await?;
        let mut ctx = db.context();
        let husband = ctx.add(Husband { id: 0, wife: 0 });
        let wife = ctx.add(Wife {
            id: 0,
            husband: ctx[husband].id,
        });
        ctx[husband].wife = ctx[wife].id;
        let folders = ["leaf", "middle", "root"].map(|name| {
            ctx.add(Folder {
                id: 0,
                parent: None,
                name: name.to_owned(),
            })
        });
        for pair in folders.windows(2) {
            ctx[pair[0]].parent = Some(ctx[pair[1]].id);
        }
        assert_eq!(ctx.save_changes().await?.inserted, 5);
        let stored = Husband::query().one(&db).await?;
        assert_eq!(
            (stored.id, stored.wife),
            (ctx[wife].husband, ctx[wife].id),
            "{mode:?}"
        );
        let root = Folder::query().filter(Folder::PARENT.is_null());
        assert_eq!(root.one(&db).await?.name, "root");
    }
    Ok(())
}

/// Case 109: INSERT OR REPLACE would delete the row, and with it the children.
#[tokio::test]
async fn a_saved_parent_keeps_its_children_and_its_key() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Folder>().await?;
    let mut ctx = db.context();
    let folder = |id, parent, name: &str| Folder {
        id,
        parent,
        name: name.to_owned(),
    };
    ctx.add(folder(7, None, "root"));
    ctx.add(folder(8, Some(7), "leaf"));
    ctx.save_changes().await?;

    let mut ctx = db.context();
    ctx.update(folder(7, None, "renamed"))?;
    ctx.save_changes().await?;
    let mut other = db.context();
    other.add(folder(7, None, "taken"));
    let error = other.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    let names = Folder::query().order_by(Folder::ID.asc()).all(&db).await?;
    let names: Vec<_> = names.iter().map(|folder| folder.name.as_str()).collect();
    assert_eq!(names, ["renamed", "leaf"]);
    Ok(())
}

/// Two entities of one row, if the context still had one that somebody else had deleted: what was changed or removed
/// through the old handle reached the new row.
#[tokio::test]
async fn an_entity_whose_key_is_given_again_is_gone() {
    for removes in [false, true] {
        let db = notes(Mode::Inline).await;
        let mut ctx = db.context();
        let stale = ctx.add(note("old"));
        ctx.save_changes().await.unwrap();
        let mut other = db.context();
        let same = other.find::<Note>(1).await.unwrap().unwrap();
        other.remove(same);
        other.save_changes().await.unwrap();
        // The writer reads the largest key again, as it does after another process wrote.
        db.begin().await.unwrap().rollback().await.unwrap();

        if removes {
            ctx.remove(stale);
        }
        let fresh = ctx.add(note("fresh"));
        if removes {
            // The removal of a row that is gone is a conflict, and then a stale entity like any other.
            let error = ctx.save_changes().await.unwrap_err();
            ctx.client_wins(&error).unwrap();
        }
        ctx.save_changes().await.unwrap();
        assert_eq!(ctx[fresh].id, 1, "the premise");
        assert_eq!(ctx.entry(stale).state(), EntityState::Detached);
        assert_eq!(ctx.len(), 1);
        assert_eq!(ctx.find::<Note>(1).await.unwrap(), Some(fresh));
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Remark {
    #[entity(id)]
    id: i64,
    #[entity(references = Note)]
    note_id: i64,
}

/// A temporary key that was read before the context noticed the commit was nobody's, for ever.
#[tokio::test]
async fn a_temporary_key_that_was_read_before_the_save_still_refers() {
    let db = notes(Mode::Inline).await;
    db.create_tables::<(Note, Remark)>().await.unwrap();
    let mut ctx = db.context();
    let kept = ctx.add(note("kept"));
    let temporary = ctx[kept].id;
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let remark = ctx.add(Remark {
        id: 0,
        note_id: ctx[kept].id,
    });
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[remark].note_id, 1);

    let moved = ctx.add(note("another"));
    ctx.save_changes().await.unwrap();
    ctx[remark].note_id = ctx[moved].id;
    ctx.save_changes().await.unwrap();
    ctx[remark].note_id = temporary;
    ctx.save_changes().await.unwrap();
    let read = Remark::find(&db, ctx[remark].id).await.unwrap().unwrap();
    assert_eq!((read.note_id, &read), (1, &ctx[remark]));
}
