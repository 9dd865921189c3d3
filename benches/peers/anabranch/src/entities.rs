//! The two tables as entities.

use anabranch::prelude::*;
use chrono::NaiveDateTime;
use peerkit::{NewOrder, NewWide};

/// A row of most workloads. It has one column more than with the other peers: the version, with which a change that
/// was made without a transaction cannot be lost.
#[derive(Debug, Entity)]
#[entity(table = "orders")]
pub struct Order {
    #[entity(id)]
    pub id: i64,
    pub writer: i64,
    pub item: String,
    pub quantity: i64,
    pub price: f64,
    pub placed_at: NaiveDateTime,
    #[entity(version)]
    pub version: i64,
}

impl peerkit::Entity for Order {
    fn key(&self) -> i64 {
        self.id
    }

    fn quantity(&self) -> i64 {
        self.quantity
    }
}

impl From<NewOrder> for Order {
    fn from(order: NewOrder) -> Self {
        Self {
            id: 0,
            writer: order.writer,
            item: order.item,
            quantity: order.quantity,
            price: order.price,
            placed_at: order.placed_at,
            version: 0,
        }
    }
}

/// A row of `bulkwide`.
#[derive(Debug, Entity)]
#[entity(table = "wide")]
pub struct Wide {
    #[entity(id)]
    pub id: i64,
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
    pub t1: String,
    pub t2: String,
    pub t3: String,
    pub t4: String,
    pub t5: String,
    pub t6: String,
    pub placed_at: NaiveDateTime,
}

impl From<NewWide> for Wide {
    fn from(wide: NewWide) -> Self {
        let [i1, i2, i3, i4, i5, i6, i7] = wide.i;
        let [r1, r2, r3, r4, r5] = wide.r;
        let [t1, t2, t3, t4, t5, t6] = wide.t;
        Self {
            id: 0,
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
            placed_at: wide.placed_at,
        }
    }
}
