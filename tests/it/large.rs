//! Much at once: long lists, big saves, large values.

use anabranch::prelude::*;
use anabranch_tests::Mode;
use futures_util::TryStreamExt;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    text: String,
    #[entity(references = Note)]
    reply_to: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct File {
    #[entity(id)]
    id: i64,
    name: String,
    content: Vec<u8>,
}

fn note(text: String) -> Note {
    Note {
        id: 0,
        text,
        reply_to: None,
    }
}

#[tokio::test]
async fn a_save_of_five_thousand_rows_is_one_save() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let mut ctx = db.context();
        let rows: Vec<_> = (0..5000)
            .map(|row| ctx.add(note(format!("{row}"))))
            .collect();
        for pair in rows.windows(2) {
            ctx[pair[1]].reply_to = Some(ctx[pair[0]].id);
        }
        assert_eq!(ctx.save_changes().await.unwrap().inserted, 5000);
        assert_eq!(db.statistics().groups, 1, "{mode:?}");
        for pair in rows.windows(2) {
            assert_eq!(ctx[pair[1]].reply_to, Some(ctx[pair[0]].id));
        }
        for row in &rows {
            ctx[*row].text.push_str(" changed");
        }
        assert_eq!(ctx.save_changes().await.unwrap().updated, 5000);
        for row in rows {
            ctx.remove(row);
        }
        assert_eq!(ctx.save_changes().await.unwrap().deleted, 5000);
        assert_eq!(Note::query().count(&db).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn lists_of_a_hundred_thousand_values_find_what_they_name() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let mut ctx = db.context();
    for row in 0..1000 {
        ctx.add(note(format!("{row}")));
    }
    ctx.save_changes().await.unwrap();
    let found = Note::query().filter(Note::ID.is_in(501..=100_500_i64));
    assert_eq!(found.all(&db).await.unwrap().len(), 500);
    let texts = (0..100_000).map(|row| format!("{}", row * 2));
    let found = Note::query().filter(Note::TEXT.is_in(texts));
    assert_eq!(found.count(&db).await.unwrap(), 500);
    let left = Note::query().filter(Note::ID.not_in(1..=100_000_i64));
    assert!(!left.exists(&db).await.unwrap());
    let mut tx = db.begin().await.unwrap();
    let found = Note::query().filter(Note::ID.is_in(1..=100_000_i64));
    assert_eq!(found.count(&mut *tx).await.unwrap(), 1000);
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn large_values_come_back_as_they_were() {
    for mode in Mode::ALL {
        let db = mode.temporary().await;
        db.create_tables::<File>().await.unwrap();
        let mut ctx = db.context();
        let rows: Vec<_> = [0, 1, 65_535, 65_536, 65_537, 3_000_000]
            .into_iter()
            .map(|size: usize| {
                let content = (0..size).map(|byte| byte.to_le_bytes()[0]).collect();
                ctx.add(File {
                    id: 0,
                    name: "ä".repeat(size / 100),
                    content,
                })
            })
            .collect();
        ctx.save_changes().await.unwrap();
        for row in &rows {
            let found = File::find(&db, ctx[*row].id).await.unwrap();
            assert!(found.as_ref() == Some(&ctx[*row]), "{mode:?}");
        }
        let streamed: Vec<File> = File::query().stream(&db).try_collect().await.unwrap();
        assert_eq!(streamed.len(), 6);
        // One alone in a save, which is too long to run on a task.
        ctx[rows[5]].content.reverse();
        assert_eq!(ctx.save_changes().await.unwrap().updated, 1);
        let found = File::find(&db, ctx[rows[5]].id).await.unwrap().unwrap();
        assert!(found == ctx[rows[5]]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_and_small_saves_pass_through_one_queue() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<File>().await.unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|task: usize| {
            let db = db.clone();
            tokio::spawn(async move {
                for round in 0..5 {
                    let mut ctx = db.context();
                    let size = if (task + round).is_multiple_of(3) {
                        100_000
                    } else {
                        10
                    };
                    ctx.add(File {
                        id: 0,
                        name: format!("{task}/{round}"),
                        content: vec![1; size],
                    });
                    ctx.save_changes().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(File::query().count(&db).await.unwrap(), 200);
}

#[tokio::test]
async fn a_stream_of_many_rows_has_each_once() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let db = mode.temporary().await;
        db.create_tables::<Note>().await.unwrap();
        let mut ctx = db.context();
        for row in 0..3000 {
            ctx.add(note(format!("{row}")));
        }
        ctx.save_changes().await.unwrap();
        let rows: Vec<Note> = Note::query()
            .order_by([Note::ID.asc()])
            .stream(&db)
            .try_collect()
            .await
            .unwrap();
        let ids: Vec<_> = rows.iter().map(|note| note.id).collect();
        assert_eq!(ids, (1..=3000).collect::<Vec<_>>(), "{mode:?}");
    }
}

/// As `fold` makes them; nested, they took the stack.
#[tokio::test]
async fn a_chain_of_conditions_may_be_long_whichever_way_it_grew() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<Note>().await.unwrap();
    let mut forwards = Note::ID.eq(0);
    let mut backwards = Note::ID.eq(0);
    for id in 1..5000 {
        forwards = forwards.or(Note::ID.eq(id));
        backwards = Note::ID.eq(id).or(backwards);
    }
    for condition in [forwards, backwards] {
        let query = Note::query().filter(!condition);
        assert_eq!(query.count(&db).await.unwrap(), 0);
    }
}
