//! Saves that share a commit: what one of them does wrong is its own affair.

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute, save_together, start, until};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Parent {
    #[entity(id)]
    id: i64,
    #[entity(version)]
    version: i64,
    #[entity(unique)]
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Child {
    #[entity(id)]
    id: i64,
    parent_id: i64,
}

/// The reference is deferred, and a name that is taken ends the whole transaction.
const TABLES: &str = "
    CREATE TABLE parent (
        id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        name TEXT NOT NULL UNIQUE ON CONFLICT ROLLBACK
    ) STRICT;
    CREATE TABLE child (
        id INTEGER PRIMARY KEY,
        parent_id INTEGER NOT NULL REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED
    ) STRICT;
    CREATE TRIGGER no_poison BEFORE INSERT ON parent WHEN NEW.name = 'poison'
    BEGIN SELECT RAISE(ROLLBACK, 'no poison here'); END;
    CREATE TRIGGER no_sugar BEFORE INSERT ON parent WHEN NEW.name = 'sugar'
    BEGIN SELECT RAISE(FAIL, 'no sugar here'); END;
    INSERT INTO parent VALUES (1, 1, 'taken')";

async fn family(mode: Mode) -> Database {
    let db = mode.temporary().await;
    execute(&db, TABLES).await;
    db
}

fn parent(name: &str) -> Parent {
    Parent {
        id: 0,
        version: 0,
        name: name.to_owned(),
    }
}

/// Twenty saves of a parent each; those at `wrong` get this name instead of their own.
async fn group_with(db: &Database, wrong: &[usize], name: &str) -> Vec<Result<Saved, Error>> {
    let mut contexts: Vec<_> = (0..20)
        .map(|save| {
            let mut ctx = db.context();
            let own = format!("{name} {save}");
            ctx.add(parent(if wrong.contains(&save) { name } else { &own }));
            ctx
        })
        .collect();
    let answers = save_together(db, &mut contexts).await;
    // Whoever was refused can save again, once it is right.
    for (save, ctx) in contexts.iter_mut().enumerate() {
        assert_eq!(ctx.has_changes(), wrong.contains(&save));
        let handles: Vec<_> = ctx.iter::<Parent>().map(|(handle, _)| handle).collect();
        if ctx.has_changes() {
            ctx[handles[0]].name = format!("{name} mended {save}");
            ctx.save_changes().await.unwrap();
        }
        assert!(ctx[handles[0]].id > 1, "{:?}", ctx[handles[0]]);
    }
    answers
}

fn assert_only_the_wrong_fail(answers: &[Result<Saved, Error>], wrong: &[usize], kind: ErrorKind) {
    for (save, answer) in answers.iter().enumerate() {
        match answer {
            Ok(saved) => assert!(!wrong.contains(&save) && saved.inserted == 1),
            Err(error) => {
                assert!(wrong.contains(&save), "{save}: {error:?}");
                assert_eq!(error.kind(), kind, "{save}: {error:?}");
            }
        }
    }
}

#[tokio::test]
async fn saves_that_wait_together_share_one_commit() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let before = db.statistics();
        let answers = group_with(&db, &[], "together").await;
        assert!(answers.iter().all(Result::is_ok));
        let after = db.statistics();
        assert_eq!(after.groups - before.groups, 1, "{mode:?}");
        assert_eq!(after.largest_group, 20);
    }
}

#[tokio::test]
async fn on_conflict_rollback_of_one_save_undoes_no_other() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        for wrong in [&[0][..], &[19], &[7, 8, 13]] {
            let answers = group_with(&db, wrong, "taken").await;
            assert_only_the_wrong_fail(&answers, wrong, ErrorKind::Unique);
            execute(&db, "DELETE FROM parent WHERE id > 1").await;
        }
        let answers = group_with(&db, &[], "last").await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(Parent::query().count(&db).await.unwrap(), 21, "{mode:?}");
    }
}

#[tokio::test]
async fn a_trigger_that_rolls_back_undoes_no_other_save() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let answers = group_with(&db, &[3, 12], "poison").await;
        assert_only_the_wrong_fail(&answers, &[3, 12], ErrorKind::Constraint);
        let error = answers[3].as_ref().unwrap_err();
        assert!(error.to_string().contains("no poison here"), "{error}");
        assert_eq!(Parent::query().count(&db).await.unwrap(), 21, "{mode:?}");
    }
}

#[tokio::test]
async fn a_trigger_that_fails_undoes_its_own_save_alone() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let answers = group_with(&db, &[0, 19], "sugar").await;
        assert_only_the_wrong_fail(&answers, &[0, 19], ErrorKind::Constraint);
        assert_eq!(Parent::query().count(&db).await.unwrap(), 21, "{mode:?}");
    }
}

#[tokio::test]
async fn a_deferred_reference_that_one_save_breaks_fails_no_neighbour() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let wrong = [2, 9, 19];
        let mut contexts: Vec<_> = (0..20)
            .map(|save| {
                let mut ctx = db.context();
                let parent_id = if wrong.contains(&save) { 4711 } else { 1 };
                ctx.add(Child { id: 0, parent_id });
                ctx
            })
            .collect();
        let answers = save_together(&db, &mut contexts).await;
        assert_only_the_wrong_fail(&answers, &wrong, ErrorKind::ForeignKey);
        assert_eq!(db.statistics().largest_group, 17, "{mode:?}: in one commit");
        assert_eq!(Child::query().count(&db).await.unwrap(), 17);
    }
}

#[tokio::test]
async fn a_conflict_in_a_group_is_its_own() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let mut contexts = Vec::new();
        for save in 0..20 {
            let mut ctx = db.context();
            // All of them want the same row.
            let row = ctx.find::<Parent>(1).await.unwrap().unwrap();
            ctx[row].name = format!("renamed by {save}");
            contexts.push(ctx);
        }
        let answers = save_together(&db, &mut contexts).await;
        let won: Vec<_> = answers.iter().filter(|answer| answer.is_ok()).collect();
        assert_eq!(won.len(), 1, "{mode:?}");
        for lost in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert!(lost.is_conflict());
            let database = lost.conflicts()[0].database.as_ref();
            assert!(database.is_some(), "the winner of the same group is seen");
        }
        let row = Parent::find(&db, 1).await.unwrap().unwrap();
        assert_eq!(row.version, 2);
    }
}

#[tokio::test]
async fn every_kind_of_mistake_at_once_is_sorted_out() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let mut contexts: Vec<_> = (0..60)
            .map(|save| {
                let mut ctx = db.context();
                match save % 6 {
                    0 => drop(ctx.add(parent("taken"))),
                    1 => drop(ctx.add(parent("poison"))),
                    2 => drop(ctx.add(parent("sugar"))),
                    3 => drop(ctx.add(Child {
                        id: 0,
                        parent_id: 4711,
                    })),
                    _ => drop(ctx.add(parent(&format!("right {save}")))),
                }
                ctx
            })
            .collect();
        let answers = save_together(&db, &mut contexts).await;
        for (save, answer) in answers.iter().enumerate() {
            let kind = answer.as_ref().map_err(Error::kind).err();
            let expected = match save % 6 {
                0 => Some(ErrorKind::Unique),
                1 | 2 => Some(ErrorKind::Constraint),
                3 => Some(ErrorKind::ForeignKey),
                _ => None,
            };
            assert_eq!(kind, expected, "{mode:?}: {save}");
        }
        assert_eq!(Parent::query().count(&db).await.unwrap(), 21);
        assert_eq!(Child::query().count(&db).await.unwrap(), 0);
        // Nothing of it is left on the writer's connection.
        let mut ctx = db.context();
        ctx.add(parent("afterwards"));
        ctx.save_changes().await.unwrap();
    }
}

#[tokio::test]
async fn a_save_that_is_dropped_in_the_queue_is_not_in_the_group() {
    for mode in Mode::ALL {
        let db = family(mode).await;
        let held = db.begin().await.unwrap();
        let mut kept = db.context();
        kept.add(parent("kept"));
        let mut dropped = db.context();
        let row = dropped.add(parent("dropped"));
        {
            let mut save = std::pin::pin!(dropped.save_changes());
            start(save.as_mut());
        }
        let mut save = std::pin::pin!(kept.save_changes());
        start(save.as_mut());
        held.rollback().await.unwrap();
        save.await.unwrap();
        until("only the other is there", async || {
            Parent::query().count(&db).await.unwrap() == 2
        })
        .await;
        assert_eq!(dropped[row].name, "dropped");
        dropped.save_changes().await.unwrap();
        assert_eq!(Parent::query().count(&db).await.unwrap(), 3, "{mode:?}");
    }
}
