//! Embedded structs that may be missing, set column by column: they come and go as a whole.

use anabranch::{context::Winner, prelude::*};
use anabranch_tests::{Mode, execute};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Entity)]
struct Shop {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(embed)]
    home: Address,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Address {
    city: String,
    #[entity(embed)]
    place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Place {
    x: i64,
    label: Option<String>,
}

fn place(x: i64) -> Option<Place> {
    let label = Some("here".to_owned());
    Some(Place { x, label })
}

async fn shop(place: Option<Place>) -> (Database, Context<'static>, Tracked<Shop>) {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Shop>().await.unwrap();
    let mut ctx = db.context();
    let city = "Delft".to_owned();
    let shop = ctx.add(Shop {
        id: 0,
        name: "tea".to_owned(),
        home: Address { city, place },
        version: 0,
    });
    ctx.save_changes().await.unwrap();
    (db, ctx, shop)
}

/// A struct that had become None stayed so, and the next save deleted what was there.
#[tokio::test]
async fn a_reset_brings_a_struct_back_and_takes_it_away() {
    for (before, now) in [(place(1), None), (None, place(2)), (place(1), place(2))] {
        let (_db, mut ctx, shop) = shop(before.clone()).await;
        ctx[shop].home.place = now.clone();
        assert!(ctx.reset(shop));
        assert_eq!(ctx[shop].home.place, before);
        assert!(!ctx.has_changes());
        ctx[shop].home.place = now.clone();
        assert!(ctx.reset_column(shop, Shop::HOME.then(Address::PLACE).then(Place::X)));
        assert_eq!(
            ctx[shop].home.place.as_ref().map(|it| it.x),
            before.map(|it| it.x)
        );
    }
}

/// What somebody else had put there was overwritten with NULL, unseen.
#[tokio::test]
async fn a_merge_takes_a_struct_that_came_or_went() {
    for (before, there) in [
        (None, "7, home_place_label = 'there'"),
        (place(1), "NULL, home_place_label = NULL"),
        (place(1), "7, home_place_label = NULL"),
    ] {
        let (db, mut ctx, shop) = shop(before).await;
        ctx[shop].name = "coffee".to_owned();
        let sql = format!("UPDATE shop SET home_place_x = {there}, version = 2");
        execute(&db, Box::leak(sql.into_boxed_str())).await;
        let row = Shop::find(&db, 1).await.unwrap().unwrap();
        let error = ctx.save_changes().await.unwrap_err();
        ctx.merge(&error).unwrap();
        assert_eq!(ctx[shop].home, row.home);
        assert_eq!(ctx.entry(shop).modified_columns(), ["name"]);
        ctx.save_changes().await.unwrap();
        let saved = Shop::find(&db, 1).await.unwrap().unwrap();
        assert_eq!((saved.home, saved.name.as_str()), (row.home, "coffee"));
    }
}

#[tokio::test]
async fn a_struct_of_which_a_part_was_changed_here_stays_when_it_went_there() {
    let (db, mut ctx, shop) = shop(place(1)).await;
    let label = Some("there".to_owned());
    let changed = Some(Place { x: 1, label });
    ctx[shop].home.place = changed.clone();
    let gone = "UPDATE shop SET home_place_x = NULL, home_place_label = NULL, version = 2";
    execute(&db, gone).await;
    let error = ctx.save_changes().await.unwrap_err();
    ctx.merge_with(&error, |_| Winner::Client).unwrap();
    ctx.save_changes().await.unwrap();
    assert_eq!(ctx[shop].home.place, changed);
    assert_eq!(Shop::find(&db, 1).await.unwrap().as_ref(), ctx.get(shop));
}

/// A struct that was None could not be set, and what stood before it in the object was set all the same.
#[tokio::test]
async fn values_set_a_struct_as_a_whole_or_nothing_at_all() {
    let (_db, mut ctx, shop) = shop(None).await;
    let whole = json!({ "home": { "place": { "x": 3, "label": "here" } } });
    ctx.set_values(shop, &whole).unwrap();
    assert_eq!(ctx[shop].home.place, place(3));
    ctx.set_values(shop, &json!({ "home": { "place": { "x": 4 } } }))
        .unwrap();
    assert_eq!(ctx[shop].home.place, place(4));
    ctx.set_values(shop, &json!({ "home": { "place": null } }))
        .unwrap();
    assert_eq!(ctx[shop].home.place, None);
    let part = json!({ "home": { "city": "Breda", "place": { "label": "there" } } });
    let error = ctx.set_values(shop, &part).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(ctx[shop].home.city, "Delft", "none of it");
    assert!(!ctx.has_changes());
}
