//! Entities of the tables `customers`, `select`, `Mixed`, `damaged`, `mixed_keys`, `orders`,
//! `tags`, `order_tags`, `strict_one`, `no_key`, `unique_key`, `null_key`, `wide_key`, `lost`,
//! `hens`, `eggs`, `profiles`, `options` and `Option`.
//!
//! Made by `anabranch entities --from nasty.db --rowid-keys`.
#![allow(clippy::duplicated_attributes, reason = "a column of two indexes")]

use anabranch::{prelude::*, value::Value};
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

/// What `status` can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
#[entity(check, rename_all = "snake_case")]
pub enum CustomerStatus {
    New,
    InTransit,
    Done,
}

/// What `level` can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
#[entity(check, integer)]
pub enum CustomerLevel {
    Minus1 = -1,
    N0 = 0,
    N10 = 10,
}

/// What `grade` can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
#[entity(check)]
pub enum CustomerGrade {
    A,
    B,
    #[entity(rename = "")]
    Empty,
}

/// A row of `customers`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "customers", strict = false)]
#[entity(check = "email LIKE '%@%' OR email IS 'none'")]
#[entity(has_many(customer_orders: Order, by = customer_id))]
#[entity(has_many(seller_orders: Order, by = seller))]
#[entity(has_one(profile: Profile))]
#[entity(has_one(option_row: OptionRow))]
pub struct Customer {
    #[entity(id, autoincrement)]
    pub id: i64,
    #[entity(collate = "NOCASE")]
    pub name: String,
    #[entity(unique)]
    pub email: Option<String>,
    #[entity(default = "'new'")]
    pub status: CustomerStatus,
    pub level: Option<CustomerLevel>,
    pub grade: Option<CustomerGrade>,
    #[entity(default = "1")]
    pub active: bool,
    #[entity(check = "flag IN (0, 1)")]
    pub flag: Option<bool>,
    #[entity(check = "(rating >= 0) AND (rating <= 5)", default = "0.5")]
    pub rating: Option<f64>,
    #[entity(default = "0")]
    pub balance: Option<f64>,
    pub birthday: Option<NaiveDate>,
    #[entity(default = "CURRENT_TIMESTAMP")]
    pub created: Option<String>,
    pub stamped: Option<DateTime<Utc>>,
    pub token: Option<Uuid>,
    pub picture: Option<Vec<u8>>,
}

/// A row of `select`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false, without_rowid)]
pub struct Select {
    pub r#type: Option<String>,
    #[entity(column = "a b")]
    pub a_b: Option<i64>,
    #[entity(column = "c\"d")]
    pub c_d: Option<String>,
    #[entity(column = "2nd")]
    pub col_2nd: Option<i64>,
    #[entity(column = "größe")]
    pub größe: Option<f64>,
    #[entity(column = "placedAt")]
    pub placed_at_2: Option<String>,
    pub placed_at: Option<String>,
    #[entity(column = "self")]
    pub self_: Option<String>,
    #[entity(column = "%")]
    pub column: Option<String>,
    pub r#match: Option<String>,
    #[entity(column = "ÄRGER")]
    pub ärger: Option<String>,
    #[entity(column = "名前")]
    pub 名前: Option<String>,
    #[entity(column = "é")]
    pub é: Option<String>,
    pub r#fn: i64,
    #[entity(column = "x'y", default = "'it''s'")]
    pub x_y: Option<String>,
    #[entity(column = "back\\slash")]
    pub back_slash: Option<String>,
    #[entity(id)]
    pub select: String,
}

/// A row of `Mixed`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "Mixed", strict = false)]
pub struct Mixed {
    #[entity(id)]
    pub id: i64,
    pub declared_integer: Option<Value>,
    pub declared_text: Option<Value>,
    pub anything: Option<Value>,
    pub numbers: Option<f64>,
    pub moment: Option<Value>,
    pub truth: Option<i64>,
    pub price: Option<f64>,
    pub huge: Option<Value>,
    pub whole: Option<i64>,
    pub string: Option<String>,
    pub no_bytes: Option<Vec<u8>>,
    pub unknown: Option<Value>,
    pub real_as_text: Option<Value>,
}

/// A row of `damaged`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Damaged {
    #[entity(id)]
    pub id: i64,
    pub cut: Option<String>,
}

/// A row of `mixed_keys`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "mixed_keys", strict = false)]
#[entity(has_many(children: MixedKey))]
pub struct MixedKey {
    #[entity(id)]
    pub code: Value,
    #[entity(references = MixedKey, relation = parent_mixed_key)]
    pub parent: Option<Value>,
}

/// A row of `orders`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "orders", strict = false)]
#[entity(index(columns(customer_id, note), unique))]
#[entity(index(columns(customer_id, total), name = "by_day", where = "total > 0"))]
#[entity(index(on = "lower(note), total DESC", name = "lowered"))]
#[entity(index(on = "note COLLATE NOCASE", name = "nocase"))]
#[entity(index(columns(seller), name = "second_of_seller"))]
#[entity(foreign_key(
    columns(previous_shop, previous_number),
    references = Order,
    relation = previous
))]
#[entity(check = "total >= 0 OR note IN ('refund', 'it''s')")]
#[entity(has_many(previous_orders: Order))]
#[entity(has_many(order_tags: OrderTag))]
#[entity(has_many(tags: Tag, through = OrderTag))]
pub struct Order {
    #[entity(id)]
    pub shop: String,
    #[entity(id)]
    pub number: i64,
    #[entity(references = Customer, on_delete = SetNull, on_update = Cascade)]
    pub customer_id: Option<i64>,
    #[entity(index, references = Customer, relation = seller_customer)]
    pub seller: i64,
    pub previous_number: Option<i64>,
    pub previous_shop: Option<String>,
    #[entity(default = "0")]
    pub total: f64,
    #[entity(generated = "round(total * 0.2, 2)", stored)]
    pub tax: Option<f64>,
    #[entity(generated = "shop || '-' || number")]
    pub label: Option<String>,
    #[entity(index(name = "the note", unique, where = "note <> 'x'"))]
    pub note: Option<String>,
}

/// A row of `tags`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "tags", strict = false)]
#[entity(has_many(order_tags: OrderTag))]
#[entity(has_many(orders: Order, through = OrderTag))]
pub struct Tag {
    #[entity(id)]
    pub name: String,
}

/// A row of `order_tags`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "order_tags", strict = false, without_rowid)]
#[entity(foreign_key(
    columns(shop, number),
    references = Order,
    relation = order,
    on_delete = Cascade
))]
pub struct OrderTag {
    #[entity(id)]
    pub shop: String,
    #[entity(id)]
    pub number: i64,
    #[entity(id, references = Tag, relation = tag_row)]
    pub tag: String,
}

/// A row of `strict_one`.
#[derive(Debug, Clone, PartialEq, Entity)]
pub struct StrictOne {
    #[entity(id)]
    pub id: i64,
    pub x: Option<Value>,
    pub y: Vec<u8>,
    pub z: Option<i64>,
}

/// A row of `no_key`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct NoKey {
    pub a: Option<String>,
    pub b: Option<i64>,
    #[entity(id)]
    pub rowid: i64,
}

/// A row of `unique_key`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct UniqueKey {
    #[entity(id)]
    pub a: String,
    #[entity(id)]
    pub b: i64,
    #[entity(unique)]
    pub c: Option<String>,
}

/// A row of `null_key`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct NullKey {
    #[entity(unique)]
    pub id: Option<String>,
    pub v: Option<i64>,
    #[entity(id)]
    pub rowid: i64,
}

/// A row of `wide_key`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
#[entity(index(columns(a, b, c, d, e, f, g, h, i, j, k, l, m), unique))]
pub struct WideKey {
    pub a: Option<Value>,
    pub b: Option<Value>,
    pub c: Option<Value>,
    pub d: Option<Value>,
    pub e: Option<Value>,
    pub f: Option<Value>,
    pub g: Option<Value>,
    pub h: Option<Value>,
    pub i: Option<Value>,
    pub j: Option<Value>,
    pub k: Option<Value>,
    pub l: Option<Value>,
    pub m: Option<Value>,
    #[entity(id)]
    pub rowid: i64,
}

/// A row of `lost`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(strict = false)]
pub struct Lost {
    #[entity(id)]
    pub id: i64,
    pub gone_id: Option<i64>,
    pub email: Option<String>,
    pub key_id: Option<i64>,
    pub word: Option<String>,
}

/// A row of `hens`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "hens", strict = false)]
#[entity(has_many(eggs: Egg))]
pub struct Hen {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Egg)]
    pub egg_id: Option<i64>,
}

/// A row of `eggs`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "eggs", strict = false)]
#[entity(has_many(hens: Hen))]
pub struct Egg {
    #[entity(id)]
    pub id: i64,
    #[entity(references = Hen, on_delete = Cascade)]
    pub hen_id: i64,
}

/// A row of `profiles`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "profiles", strict = false)]
pub struct Profile {
    #[entity(
        id,
        references = Customer,
        relation = customer_row,
        on_delete = Cascade
    )]
    pub customer: i64,
    pub bio: Option<String>,
}

/// A row of `options`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "options", strict = false)]
pub struct OptionRow {
    #[entity(id)]
    pub id: i64,
    #[entity(
        unique,
        default = "1",
        references = Customer,
        relation = customer,
        on_delete = SetDefault
    )]
    pub fallback: Option<i64>,
}

/// A row of `Option`.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(table = "Option", strict = false)]
pub struct OptionRow2 {
    #[entity(id)]
    pub id: i64,
}
