//! What was found by attacking: each went wrong once.

use anabranch::{
    prelude::*,
    query::{count, exists, row_number},
};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(tags: Tag, through = Link))]
struct Post {
    #[entity(id)]
    id: i64,
    x: i64,
    #[entity(references = Coupon)]
    coupon_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Tag {
    #[entity(id)]
    id: i64,
    small: i8,
    large: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(on = Link::on))]
struct Link {
    #[entity(id, references = Post)]
    post_id: i64,
    #[entity(id, references = Tag, index)]
    tag_id: i64,
    off: bool,
}

impl Link {
    fn on() -> Condition<Self> {
        Self::OFF.eq(false)
    }
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(filter(open = Coupon::open))]
struct Coupon {
    #[entity(id)]
    id: i64,
    uses: i64,
}

impl Coupon {
    fn open() -> Condition<Self> {
        Self::USES.gt(0)
    }
}

async fn blog() -> Database {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Coupon, Post, Tag, Link)>()
        .await
        .unwrap();
    let mut ctx = db.context();
    ctx.add(Coupon { id: 1, uses: 3 });
    for (id, coupon_id) in [(1, None), (2, Some(1)), (3, None)] {
        ctx.add(Post {
            id,
            x: id,
            coupon_id,
        });
    }
    for id in 1..=2 {
        ctx.add(Tag {
            id,
            small: 100,
            large: i64::MAX - 5,
        });
        ctx.add(Link {
            post_id: 1,
            tag_id: id,
            off: id == 2,
        });
    }
    ctx.save_changes().await.unwrap();
    db
}

#[tokio::test]
async fn those_of_an_entity_are_those_that_are_read_with_it() {
    let db = blog().await;
    let post = Post::find(&db, 1).await.unwrap().unwrap();
    let of: Vec<_> = (Post::TAGS.of(&post).select(Tag::ID))
        .all(&db)
        .await
        .unwrap();
    assert_eq!(of, [1]);
    let with = Post::query().with(Post::TAGS).all(&db).await.unwrap();
    assert_eq!(with[0].1.len(), 1);
}

#[tokio::test]
async fn what_is_computed_of_no_row_is_null_in_reads_and_in_writes() {
    let db = blog().await;
    let uses = || Post::COUPON.get(Coupon::USES.coalesce(0));
    let read = Post::query().order_by(Post::ID.asc()).select(uses());
    assert_eq!(read.all(&db).await.unwrap(), [None, Some(3), None]);
    let none = || Post::query().filter(uses().is_null());
    assert_eq!(none().count(&db).await.unwrap(), 2);
    let changed = none().update().set(Post::X, 9).execute(&db).await.unwrap();
    assert_eq!(changed, 2);
}

#[tokio::test]
async fn distinct_rows_are_left_out_before_it_is_asked_whether_there_are_any() {
    let db = blog().await;
    let beyond = || Post::query().select(Post::X).distinct().offset(3);
    assert!(beyond().all(&db).await.unwrap().is_empty());
    assert!(!beyond().exists(&db).await.unwrap());
    let any = Tag::query().filter(exists(beyond()));
    assert_eq!(any.count(&db).await.unwrap(), 0);
}

#[tokio::test]
async fn a_window_does_not_begin_anew_with_each_page() {
    let db = blog().await;
    let numbered = Post::query().select((
        Post::ID,
        row_number().over(anabranch::query::Over::all().order_by(Post::ID.asc())),
    ));
    let refused = numbered.page(None, 2).read(&db).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn what_is_nested_too_deep_by_relations_is_an_error() {
    let db = blog().await;
    let mut any = Post::ID.eq(1);
    let mut filtered = Post::ID.eq(1);
    for _ in 0..60_000 {
        any = Post::TAGS.any(Tag::ID.is_in_query(Post::query().filter(any).select(Post::ID)));
        filtered = BACK.filter(filtered).exists();
    }
    for deep in [any, filtered] {
        let refused = Post::query().filter(deep).all(&db).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooBig);
    }
}

const BACK: Relation<Post, Vec<Post>> = Relation::on(Post::X, Post::ID);

#[tokio::test]
async fn what_does_not_fit_the_field_is_not_written() {
    let db = blog().await;
    let small = Tag::query().update().set(Tag::SMALL, Tag::SMALL + 100);
    let large = Tag::query()
        .update()
        .set(Tag::LARGE, Tag::LARGE + 1_000 - 1_001);
    for update in [small, large] {
        let refused = update.execute(&db).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Statement, "{refused}");
    }
    let tags = Tag::query().all(&db).await.unwrap();
    assert!(
        tags.iter()
            .all(|tag| (tag.small, tag.large) == (100, i64::MAX - 5))
    );
    let fits = Tag::query().update().set(Tag::SMALL, Tag::SMALL - 1);
    assert_eq!(fits.execute(&db).await.unwrap(), 2);
}

#[tokio::test]
async fn a_temporary_key_is_written_nowhere() {
    let db = blog().await;
    let mut ctx = db.context();
    let post = ctx.add(Post {
        id: 0,
        x: 0,
        coupon_id: None,
    });
    let moved = Link::query().update().set(Link::POST_ID, ctx[post].id);
    let refused = moved.execute(&db).await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.table(), refused.column()),
        (ErrorKind::Value, Some("link"), Some("post_id"))
    );
}

#[tokio::test]
async fn an_error_of_what_is_returned_says_that_the_rows_were_written() {
    let db = blog().await;
    let update = Tag::query()
        .filter(Tag::ID.eq(1))
        .update()
        .set(Tag::SMALL, 7)
        .returning(Tag::LARGE + 100);
    let error = update.all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("were written"), "{error}");
}

#[tokio::test]
async fn an_aggregate_is_refused_where_single_rows_are_asked() {
    let db = blog().await;
    let grouped = Post::query().group_by(Post::X.sum()).select(count());
    let read = Post::query().with(Post::TAGS.filter(Tag::ID.sum().gt(1)));
    assert_eq!(
        grouped.all(&db).await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    assert_eq!(read.all(&db).await.unwrap_err().kind(), ErrorKind::Refused);
}
