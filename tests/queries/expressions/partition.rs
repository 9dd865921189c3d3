//! A condition and its complement select every row once, whatever is NULL.

use anabranch::{
    prelude::*,
    query::{case, exists, fragment},
};
use serde_json::json;

use crate::expressions::{
    places::everywhere,
    thing::{Thing, things},
};

/// Conditions of all forms over columns and expressions, either of which may be NULL.
fn conditions() -> Vec<Condition<Thing>> {
    let maybe = || Thing::MAYBE;
    let null = || maybe() / 0;
    // Typed as never NULL, and NULL for some rows all the same: infinity less infinity.
    let unsure = || Thing::REAL * 1e308 * 1e308 - Thing::REAL * 1e308 * 1e308;
    let told = || fragment::<Thing, i64>("{}", (Thing::MAYBE,));
    let mut all = vec![
        Thing::REAL.eq(unsure()),
        Thing::REAL.ne(unsure()),
        Thing::REAL.is_in([unsure()]),
        Thing::REAL.not_in([unsure()]),
        Thing::REAL.lt(unsure()),
        Thing::WHOLE.eq(told()),
        Thing::WHOLE.ne(told()),
        Thing::WHOLE.is_in([told(), told() + 1]),
        Thing::WHOLE.not_in([told(), told() + 1]),
        Thing::WHOLE.between(told(), told() + 2),
        maybe().eq(Thing::WHOLE),
        maybe().ne(Thing::WHOLE),
        Thing::WHOLE.nullable().eq(maybe()),
        Thing::WHOLE.nullable().ne(maybe()),
        maybe().eq(null()),
        maybe().ne(null()),
        null().eq(null()),
        null().ne(null()),
        maybe().lt(null()),
        maybe().le(Thing::WHOLE),
        Thing::WHOLE.nullable().gt(maybe()),
        maybe().ge(None),
        maybe().eq(None),
        maybe().ne(None),
        maybe().between(-1, Thing::WHOLE),
        maybe().between(None, Some(3)),
        maybe().is_in([Some(1), None]),
        maybe().not_in([Some(1), None]),
        maybe().is_in([1, 2]),
        maybe().not_in([1, 2]),
        maybe().not_in(Vec::<i64>::new()),
        maybe().is_null(),
        null().is_not_null(),
        Thing::OTHER_NAME.contains("a"),
        Thing::OTHER_NAME.not_like("%a%"),
        Thing::OTHER_NAME.eq_folded("TEA"),
        Thing::OTHER_NAME.starts_with_folded("Ä"),
        Thing::OTHER_NAME.eq(Thing::NAME),
        Thing::OTHER_NAME.lt(Thing::NAME),
        Thing::LABEL.eq("RED"),
        Thing::LABEL.ne("RED"),
        Thing::MAYBE_FLAG.eq(true),
        Thing::MAYBE_FLAG.ne(Thing::FLAG),
        fragment::<Thing, bool>("{} > 0 OR 0", (maybe(),)).is_true(),
        Thing::EXTRA.path::<i64>("$.n").lt(10),
        Thing::EXTRA.path::<i64>("$.n").ne(5),
        Thing::EXTRA.path::<String>("$.s").gt("a"),
        Thing::EXTRA.path::<String>("$.s").eq(Thing::NAME),
        Thing::EXTRA.path::<String>("$.s").contains_folded("5"),
        Thing::EXTRA.eq(json!([])),
        Thing::DAY.year().eq(2024),
        Thing::DAY.days_since(None).gt(1.0),
        case::<Thing, Option<i64>>()
            .when(maybe().gt(0), 1)
            .or_null()
            .eq(1),
        maybe().is_in_query(Thing::query().select(Thing::MAYBE)),
        maybe().not_in_query(Thing::query().select(Thing::MAYBE)),
        Thing::WHOLE.is_in_query(Thing::query().filter(Thing::ID.gt(9)).select(Thing::MAYBE)),
        Thing::WHOLE.not_in_query(Thing::query().select(Thing::MAYBE / 0)),
        Thing::WHOLE.nullable().gt(Thing::query()
            .filter(Thing::ID.lt(0))
            .select(Thing::ID)
            .as_value()),
        Thing::WHOLE
            .nullable()
            .eq(Thing::query().select(Thing::WHOLE.max()).as_value()),
        exists(Thing::query().filter(Thing::MAYBE.is_null())),
        exists(Thing::query().filter(Thing::ID.lt(0))),
    ];
    let some: Vec<_> = all.iter().step_by(3).cloned().collect();
    for (index, condition) in some.iter().enumerate() {
        let other = some[(index * 7 + 3) % some.len()].clone();
        all.push(condition.clone().and(!other.clone()));
        all.push((!condition.clone()).or(other));
    }
    all
}

#[tokio::test]
async fn a_condition_and_its_complement_select_every_row_once() {
    let db = things().await;
    for condition in conditions() {
        let ids = |condition: Condition<Thing>| Thing::query().filter(condition).select(Thing::ID);
        let selected = everywhere(&db, &ids(condition.clone())).await.unwrap();
        let others = everywhere(&db, &ids(!condition.clone())).await.unwrap();
        let again = ids(condition.clone().not().not()).all(&db).await.unwrap();
        assert_eq!(again, selected, "{condition:?}");
        // As a value it says the same, and is never NULL.
        let told = Thing::query().select((Thing::ID, condition.clone().as_bool()));
        let told = told.all(&db).await.unwrap();
        let mut of_told: Vec<_> = told
            .into_iter()
            .filter(|(_, is)| *is)
            .map(|(id, _)| id)
            .collect();
        let mut all = [selected.clone(), others].concat();
        all.sort_unstable();
        assert_eq!(all, (1..=12).collect::<Vec<i64>>(), "{condition:?}");
        let mut selected = selected;
        selected.sort_unstable();
        of_told.sort_unstable();
        assert_eq!(of_told, selected, "{condition:?}");
    }
}

#[tokio::test]
async fn two_nulls_are_equal_and_neither_is_less() {
    let db = things().await;
    let count = async |condition| Thing::query().filter(condition).count(&db).await.unwrap();
    assert_eq!(count((Thing::MAYBE / 0).eq(Thing::MAYBE / 0)).await, 12);
    assert_eq!(count((Thing::MAYBE / 0).ne(Thing::MAYBE / 0)).await, 0);
    assert_eq!(count((Thing::MAYBE / 0).le(Thing::MAYBE / 0)).await, 0);
    let nulls = count(Thing::MAYBE.is_null()).await;
    assert_eq!(nulls, 4);
    assert_eq!(count(Thing::MAYBE.is_in([Thing::MAYBE / 0])).await, nulls);
    assert_eq!(
        count(Thing::MAYBE.not_in([Thing::MAYBE / 0])).await,
        12 - nulls
    );
}
