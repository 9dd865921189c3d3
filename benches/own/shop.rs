//! Shops with their sales, and products of ten columns: what the questions of `read` are about.

use anabranch::prelude::*;
use chrono::NaiveDateTime;
use rusqlite::{Connection, params};
use sqlx::FromRow;
use workload::{NewOrder, Result};

pub(crate) const SHOPS: u32 = 2_000;
pub(crate) const REGIONS: u32 = 2;
/// Ten of each shop, not beside each other.
pub(crate) const SALES: u32 = 20_000;
pub(crate) const PRODUCTS: u32 = 100_000;
pub(crate) const CATEGORIES: u32 = 50;
/// How many different prices products have.
pub(crate) const PRICES: u32 = 10_000;

/// How many rows there are in all three tables.
pub(crate) const ROWS: u32 = SHOPS + SALES + PRODUCTS;

#[derive(Debug, Clone, Entity, FromRow)]
#[entity(table = "shops", has_many(sales: Sale))]
pub(crate) struct Shop {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) region: i64,
    pub(crate) name: String,
    pub(crate) city: String,
    pub(crate) opened_at: NaiveDateTime,
}

#[derive(Debug, Clone, Entity, FromRow)]
#[entity(table = "sales")]
pub(crate) struct Sale {
    #[entity(id)]
    pub(crate) id: i64,
    #[entity(references = Shop, index)]
    pub(crate) shop_id: i64,
    pub(crate) item: String,
    pub(crate) quantity: i64,
    pub(crate) price: f64,
    pub(crate) sold_at: NaiveDateTime,
}

#[derive(Debug, Clone, Entity, FromRow)]
#[entity(table = "products")]
pub(crate) struct Product {
    #[entity(id)]
    pub(crate) id: i64,
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) category: i64,
    pub(crate) maker: i64,
    #[entity(index)]
    pub(crate) price: i64,
    pub(crate) stock: i64,
    pub(crate) weight: f64,
    pub(crate) rating: Option<i64>,
    pub(crate) added_at: NaiveDateTime,
}

/// The region of the `n`th shop.
pub(crate) fn region(n: u32) -> i64 {
    (n % REGIONS).into()
}

/// How much the `n`th sale is of, and how many there are of the `n`th product.
pub(crate) const fn quantity(n: u32) -> u32 {
    n % 100
}

/// Writes all rows.
pub(crate) fn fill(connection: &Connection) -> Result<()> {
    let mut shops = connection.prepare(
        "INSERT INTO shops (id, region, name, city, opened_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for n in 0..SHOPS {
        let order = NewOrder::nth(1, n);
        let city = format!("city {}", n % 100);
        shops.execute(params![n + 1, region(n), order.item, city, order.placed_at])?;
    }
    let mut sales = connection.prepare(
        "INSERT INTO sales (shop_id, item, quantity, price, sold_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for n in 0..SALES {
        let order = NewOrder::nth(2, n);
        sales.execute(params![
            n % SHOPS + 1,
            order.item,
            quantity(n),
            order.price,
            order.placed_at
        ])?;
    }
    let mut products = connection.prepare(
        "INSERT INTO products (sku, name, category, maker, price, stock, weight, rating, added_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for n in 0..PRODUCTS {
        let order = NewOrder::nth(3, n);
        products.execute(params![
            format!("sku-{n}"),
            order.item,
            n % CATEGORIES,
            n % 7,
            // Scattered: 7,919 has no divisor in common with the number of prices.
            n * 7_919 % PRICES,
            quantity(n),
            order.price,
            (n % 3 > 0).then_some(n % 5),
            order.placed_at
        ])?;
    }
    Ok(())
}
