//! Questions as SQL for sqlx.

use std::collections::HashMap;

use sqlx::{Row, SqlitePool, sqlite::SqliteRow};
use workload::Result;

use crate::{
    contender::Seen,
    question::{
        COLUMNS, FIRST_PAGE, GROUPS, JOINED, MIDDLE, NEXT_PAGE, PAGE, PAGES, Question, REGION,
        SALES, SHOPS,
    },
    shop::{Product, Sale, Shop},
};

/// Runs its statements, and looks at each row of the answer.
pub(in crate::contenders) async fn answer(pool: &SqlitePool, question: Question) -> Result<Seen> {
    match question {
        Question::Children | Question::Tracked => children(pool).await,
        Question::Joined => joined(pool).await,
        Question::Columns => columns(pool).await,
        Question::Groups => groups(pool).await,
        Question::Pages => pages(pool).await,
    }
}

/// Two queries, put together by key.
async fn children(pool: &SqlitePool) -> Result<Seen> {
    let shops: Vec<Shop> = sqlx::query_as(SHOPS).bind(REGION).fetch_all(pool).await?;
    let sales: Vec<Sale> = sqlx::query_as(SALES).bind(REGION).fetch_all(pool).await?;
    let mut by_shop: HashMap<i64, Vec<Sale>> = HashMap::with_capacity(shops.len());
    for sale in sales {
        by_shop.entry(sale.shop_id).or_default().push(sale);
    }
    let with_sales = |shop: Shop| {
        let sales = by_shop.remove(&shop.id).unwrap_or_default();
        (shop, sales)
    };
    let shops: Vec<(Shop, Vec<Sale>)> = shops.into_iter().map(with_sales).collect();
    let sales = shops.iter().flat_map(|(_, sales)| sales);
    Ok(Seen::of(sales.map(|sale| (sale.id, sale.quantity))))
}

async fn joined(pool: &SqlitePool) -> Result<Seen> {
    let read = |row: SqliteRow| {
        let sale = Sale {
            id: row.try_get(0)?,
            shop_id: row.try_get(1)?,
            item: row.try_get(2)?,
            quantity: row.try_get(3)?,
            price: row.try_get(4)?,
            sold_at: row.try_get(5)?,
        };
        let shop = Shop {
            id: row.try_get(6)?,
            region: row.try_get(7)?,
            name: row.try_get(8)?,
            city: row.try_get(9)?,
            opened_at: row.try_get(10)?,
        };
        Ok((sale, shop))
    };
    let sales: Vec<(Sale, Shop)> = sqlx::query(JOINED).try_map(read).fetch_all(pool).await?;
    Ok(Seen::of(
        sales.iter().map(|(sale, shop)| (shop.id, sale.quantity)),
    ))
}

async fn columns(pool: &SqlitePool) -> Result<Seen> {
    let products: Vec<(i64, String, i64)> = sqlx::query_as(COLUMNS).fetch_all(pool).await?;
    Ok(Seen::of(
        products.iter().map(|(id, _, stock)| (*id, *stock)),
    ))
}

async fn groups(pool: &SqlitePool) -> Result<Seen> {
    let groups: Vec<(i64, i64, i64)> = sqlx::query_as(GROUPS).fetch_all(pool).await?;
    Ok(Seen::of(
        groups
            .iter()
            .map(|(category, _, stock)| (*category, *stock)),
    ))
}

async fn pages(pool: &SqlitePool) -> Result<Seen> {
    let mut products: Vec<Product> = Vec::new();
    for _ in 0..PAGES {
        let page: Vec<Product> = match products.last() {
            None => sqlx::query_as(FIRST_PAGE).bind(MIDDLE),
            Some(last) => sqlx::query_as(NEXT_PAGE).bind(last.price).bind(last.id),
        }
        .bind(PAGE)
        .fetch_all(pool)
        .await?;
        products.extend(page);
    }
    Ok(Seen::of(
        products.iter().map(|product| (product.id, product.price)),
    ))
}
