//! The tables and models, shared with `../diesel-async`.

use chrono::NaiveDateTime;
use diesel::prelude::{Insertable, Queryable, QueryableByName, Selectable};
use peerkit::{Entity, NewOrder, NewWide};

diesel::table! {
    orders (id) {
        id -> BigInt,
        writer -> BigInt,
        item -> Text,
        quantity -> BigInt,
        price -> Double,
        placed_at -> Timestamp,
    }
}

diesel::table! {
    wide (id) {
        id -> BigInt,
        i1 -> BigInt,
        i2 -> BigInt,
        i3 -> BigInt,
        i4 -> BigInt,
        i5 -> BigInt,
        i6 -> BigInt,
        i7 -> BigInt,
        r1 -> Double,
        r2 -> Double,
        r3 -> Double,
        r4 -> Double,
        r5 -> Double,
        t1 -> Text,
        t2 -> Text,
        t3 -> Text,
        t4 -> Text,
        t5 -> Text,
        t6 -> Text,
        placed_at -> Timestamp,
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = orders)]
#[diesel(check_for_backend(diesel::sqlite::Sqlite))]
pub struct Order {
    pub id: i64,
    pub writer: i64,
    pub item: String,
    pub quantity: i64,
    pub price: f64,
    pub placed_at: NaiveDateTime,
}

impl Entity for Order {
    fn key(&self) -> i64 {
        self.id
    }
    fn quantity(&self) -> i64 {
        self.quantity
    }
}

// Without "None means DEFAULT" a batch of these is one multi-row statement.
#[derive(Insertable)]
#[diesel(table_name = orders)]
#[diesel(treat_none_as_default_value = false)]
pub struct InsertOrder<'a> {
    pub writer: i64,
    pub item: &'a str,
    pub quantity: i64,
    pub price: f64,
    pub placed_at: NaiveDateTime,
}

impl<'a> From<&'a NewOrder> for InsertOrder<'a> {
    fn from(o: &'a NewOrder) -> Self {
        Self {
            writer: o.writer,
            item: &o.item,
            quantity: o.quantity,
            price: o.price,
            placed_at: o.placed_at,
        }
    }
}

// Without "None means DEFAULT" a batch of these is one multi-row statement.
#[derive(Insertable)]
#[diesel(table_name = wide)]
#[diesel(treat_none_as_default_value = false)]
pub struct InsertWide<'a> {
    pub i1: i64,
    pub i2: i64,
    pub i3: i64,
    pub i4: i64,
    pub i5: i64,
    pub i6: i64,
    pub i7: i64,
    pub r1: f64,
    pub r2: f64,
    pub r3: f64,
    pub r4: f64,
    pub r5: f64,
    pub t1: &'a str,
    pub t2: &'a str,
    pub t3: &'a str,
    pub t4: &'a str,
    pub t5: &'a str,
    pub t6: &'a str,
    pub placed_at: NaiveDateTime,
}

impl<'a> From<&'a NewWide> for InsertWide<'a> {
    fn from(w: &'a NewWide) -> Self {
        let [i1, i2, i3, i4, i5, i6, i7] = w.i;
        let [r1, r2, r3, r4, r5] = w.r;
        let [t1, t2, t3, t4, t5, t6] = w.t.each_ref().map(String::as_str);
        let placed_at = w.placed_at;
        Self {
            i1,
            i2,
            i3,
            i4,
            i5,
            i6,
            i7,
            r1,
            r2,
            r3,
            r4,
            r5,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            placed_at,
        }
    }
}

#[derive(QueryableByName)]
pub struct Counted {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    pub found: i64,
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    pub total: i64,
}
