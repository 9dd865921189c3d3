//! What is computed of one row.

use anabranch::{prelude::*, query::case};

use crate::expressions::{
    places::{everywhere, same},
    thing::{Thing, thing, things},
};

type Result<T = ()> = anabranch::error::Result<T>;

macro_rules! each {
    ($db:expr, $($expression:expr => $sql:literal;)*) => {$(
        let query = Thing::query().order_by(Thing::ID.asc()).select(($expression,));
        same($db, query, concat!("SELECT ", $sql, " FROM thing ORDER BY id")).await;
    )*};
}

#[tokio::test]
async fn numbers_are_computed_as_sql_does() {
    let db = things().await;
    each! { &db,
        Thing::WHOLE + Thing::ID => "whole + id";
        Thing::WHOLE - 3 => "whole - 3";
        (Thing::WHOLE + 1) * Thing::ID - 2 => "(whole + 1) * id - 2";
        Thing::WHOLE * (Thing::ID + 1) => "whole * (id + 1)";
        -(Thing::WHOLE - Thing::ID) => "-(whole - id)";
        Thing::ID / Thing::WHOLE => "id / whole";
        Thing::ID % Thing::WHOLE => "id % whole";
        Thing::MAYBE + Thing::WHOLE => "maybe + whole";
        Thing::WHOLE.nullable() * Thing::MAYBE => "whole * maybe";
        Thing::MAYBE - Thing::MAYBE => "maybe - maybe";
        Thing::MAYBE + Some(2) => "maybe + 2";
        Thing::MAYBE / 0 => "maybe / 0";
        Thing::REAL / 0.0 => "real / 0.0";
        Thing::REAL * 1e308 * 10.0 => "real * 1e308 * 10.0";
        Thing::REAL + Thing::REAL => "real + real";
        Thing::REAL % 2.0 => "real % 2.0";
        Thing::MAYBE_REAL / Thing::REAL => "maybe_real / real";
        Thing::WHOLE.abs() => "abs(whole)";
        Thing::MAYBE.abs() => "abs(maybe)";
        Thing::REAL.round(0) => "round(real)";
        (Thing::REAL / 3.0).round(2) => "round(real / 3.0, 2)";
        Thing::MAYBE.as_real() / Thing::MAYBE_REAL => "cast(maybe AS REAL) / maybe_real";
        Thing::REAL.as_integer() => "cast(real AS INTEGER)";
        Thing::MAYBE_REAL.as_integer() => "cast(maybe_real AS INTEGER)";
        Thing::SMALL + Thing::SMALL => "small + small";
        Thing::SMALL.as_integer() * 1000 => "small * 1000";
    }
}

#[tokio::test]
async fn what_is_null_is_replaced_and_conditions_are_values() {
    let db = things().await;
    let class = || {
        case::<Thing, String>()
            .when(Thing::MAYBE.lt(0), "less")
            .when(Thing::MAYBE.eq(None), Thing::NAME)
            .otherwise("more")
    };
    each! { &db,
        Thing::MAYBE.coalesce(9) => "coalesce(maybe, 9)";
        Thing::MAYBE.coalesce(Thing::WHOLE) + 1 => "coalesce(maybe, whole) + 1";
        Thing::MAYBE.or_else(Thing::MAYBE / 0) => "coalesce(maybe, maybe / 0)";
        Thing::MAYBE.or_else(Thing::WHOLE) => "coalesce(maybe, whole)";
        Thing::WHOLE.coalesce(9) => "whole";
        Thing::OTHER_NAME.coalesce("none") => "coalesce(other_name, 'none')";
        Thing::WHOLE.expr() => "whole";
        class() => "CASE WHEN maybe < 0 THEN 'less' WHEN maybe IS NULL THEN name ELSE 'more' END";
        case::<Thing, Option<i64>>().when(Thing::FLAG.is_true(), Thing::WHOLE).or_null()
            => "CASE WHEN flag THEN whole END";
        case::<Thing, i64>().otherwise(3) => "3";
        case::<Thing, Option<i64>>().or_null() => "NULL";
        Thing::MAYBE.lt(1).as_bool() => "coalesce(maybe < 1, 0)";
        Thing::MAYBE.lt(1).not().as_bool() => "NOT coalesce(maybe < 1, 0)";
        Thing::MAYBE.gt(0).or(Thing::FLAG.is_true()).as_bool() => "coalesce(maybe > 0, 0) OR flag";
        Thing::MAYBE_FLAG.eq(true).as_bool() => "coalesce(maybe_flag, 0)";
        Thing::EXTRA.path::<f64>("$.n") + 1.0 => "json_extract(extra, '$.n') + 1.0";
    }
    let chosen = Thing::query()
        .filter(class().eq("less"))
        .filter(Thing::MAYBE.lt(1).as_bool().is_true())
        .order_by([class().desc(), Thing::ID.asc()])
        .select((Thing::ID,));
    let sql = "SELECT id FROM thing WHERE maybe < 0 ORDER BY id";
    same(&db, chosen, sql).await;
}

#[tokio::test]
async fn text_is_computed_as_sql_does() {
    let db = things().await;
    each! { &db,
        Thing::NAME.lower() => "lower(name)";
        Thing::NAME.upper() => "upper(name)";
        Thing::OTHER_NAME.upper() => "upper(other_name)";
        Thing::NAME.trim() => "trim(name)";
        Thing::NAME.char_length() => "length(name)";
        Thing::OTHER_NAME.char_length() => "length(other_name)";
        Thing::NAME.substring(1, 2) => "substr(name, 2, 2)";
        Thing::NAME.substring(0, 0) => "''";
        Thing::NAME.substring(u32::MAX, u32::MAX) => "''";
        Thing::NAME.replace("a", "'; DROP TABLE thing; --") => "replace(name, 'a', '''; DROP TABLE thing; --')";
        Thing::NAME.replace("", "x") => "name";
        Thing::NAME.position_of("a") => "nullif(instr(name, 'a'), 0) - 1";
        Thing::NAME.position_of("") => "0";
        Thing::OTHER_NAME.position_of(Thing::NAME) => "nullif(instr(other_name, name), 0) - 1";
        Thing::OTHER_NAME.concat(Thing::NAME) => "other_name || name";
        Thing::NAME.concat(" and ").concat(Thing::NAME) => "name || ' and ' || name";
        Thing::NAME.concat("x").char_length() * 2 => "length(name || 'x') * 2";
    }
}

#[tokio::test]
async fn text_is_found_whatever_the_case_of_its_letters() {
    let db = things().await;
    let found = async |condition: Condition<Thing>| {
        let query = Thing::query().filter(condition).order_by(Thing::ID.asc());
        let found = everywhere(&db, &query.select(Thing::NAME)).await.unwrap();
        let mut names: Vec<_> = found;
        names.dedup();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(found(Thing::NAME.eq_folded("STRASSE")).await, ["straße"]);
    assert_eq!(found(Thing::NAME.contains_folded("ÄP")).await, ["Äpfel"]);
    assert_eq!(
        found(Thing::NAME.starts_with_folded("äPF")).await,
        ["Äpfel"]
    );
    assert_eq!(found(Thing::NAME.ends_with_folded("SSE")).await, ["straße"]);
    assert_eq!(
        found(Thing::NAME.contains_folded("%_\\")).await,
        ["100%_\\"]
    );
    assert_eq!(found(Thing::NAME.eq_folded("")).await, [""]);
    assert_eq!(found(Thing::NAME.contains_folded("")).await.len(), 6);
    assert_eq!(found(Thing::NAME.contains("")).await.len(), 6);
    assert_eq!(found(Thing::NAME.contains("100%_\\")).await, ["100%_\\"]);
    assert_eq!(
        found(Thing::NAME.is_in(Vec::<String>::new())).await.len(),
        0
    );
    assert_eq!(
        found(Thing::NAME.not_in(Vec::<String>::new())).await.len(),
        6
    );
    // At a path only texts are texts.
    assert_eq!(
        found(Thing::EXTRA.path::<String>("$.s").eq_folded("5"))
            .await
            .len(),
        0
    );
    let five = Thing::EXTRA.path::<String>("$.s").eq_folded("FIVE");
    let query = Thing::query()
        .filter(five)
        .order_by(Thing::ID.asc())
        .select((Thing::ID,));
    same(
        &db,
        query,
        "SELECT id FROM thing WHERE lower(extra ->> '$.s') = 'five' ORDER BY id",
    )
    .await;
}

#[tokio::test]
async fn what_does_not_fit_its_type_is_an_error_and_not_another_value() {
    let db = things().await;
    let kind = async |expression: Expr<Thing, i64>| {
        everywhere(&db, &Thing::query().select(expression)).await
    };
    assert_eq!(kind(Thing::WHOLE + i64::MAX).await, Err(ErrorKind::Decode));
    assert_eq!(kind(Thing::ID * i64::MAX).await, Err(ErrorKind::Decode));
    let small = Thing::query().select(Thing::SMALL + 120);
    assert_eq!(everywhere(&db, &small).await, Err(ErrorKind::Decode));
    let sum = Thing::query().select((Thing::ID * 0 + i64::MAX).sum());
    let told = everywhere(&db, &sum).await;
    assert!(told.is_err(), "{told:?}");
    let nul = Thing::query().select(Thing::NAME.concat("a\0b"));
    assert_eq!(everywhere(&db, &nul).await, Err(ErrorKind::Value));
    let nan = Thing::query().filter((Thing::REAL + f64::NAN).gt(1.0));
    assert_eq!(everywhere(&db, &nan).await, Err(ErrorKind::Value));
    let error = nan_error(&db).await;
    assert_eq!(
        (error.table(), error.column()),
        (Some("thing"), Some("real"))
    );
    // Reals of 32 bits are added with 64, and rounded to 32 again.
    let float = Thing::query().select(Thing::FLOAT + Thing::FLOAT + 0.3);
    assert_eq!(
        everywhere(&db, &float).await.unwrap()[0],
        0.1_f32 + 0.1 + 0.3
    );
}

async fn nan_error(db: &Database) -> Error {
    let nan = Thing::query().filter((Thing::REAL + f64::NAN).gt(1.0));
    nan.all(db).await.unwrap_err()
}

#[tokio::test]
async fn decimals_and_spans_are_added_exactly() -> Result {
    let db = things().await;
    let rows = Thing::query()
        .order_by(Thing::ID.asc())
        .select((
            Thing::PRICE + Thing::PRICE,
            Thing::DISCOUNT - Thing::PRICE,
            Thing::SPAN + Thing::SPAN,
        ))
        .all(&db)
        .await?;
    for (number, (double, less, span)) in (1..).zip(rows) {
        let thing = thing(number);
        assert_eq!(double.0, thing.price + thing.price);
        assert_eq!(
            less.map(|less| less.0),
            thing.discount.map(|it| it - thing.price)
        );
        assert_eq!(span, thing.span + thing.span);
    }
    let half = Thing::query().filter(
        (Thing::PRICE + rust_decimal::Decimal::new(5, 1)).gt(rust_decimal::Decimal::new(15, 1)),
    );
    let sql = "SELECT id FROM thing WHERE price > 100 ORDER BY id";
    same(
        &db,
        half.order_by(Thing::ID.asc()).select((Thing::ID,)),
        sql,
    )
    .await;
    let sum = Thing::query().sum(Thing::PRICE, &db).await?.unwrap();
    assert_eq!(sum.0, (1..=12).map(|number| thing(number).price).sum());
    let spans = Thing::query().sum(Thing::SPAN, &db).await?;
    assert_eq!(spans, Some((1..=12).map(|number| thing(number).span).sum()));
    Ok(())
}
