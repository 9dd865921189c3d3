//! Questions as SQL for rusqlite.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};
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
pub(in crate::contenders) fn answer(connection: &Connection, question: Question) -> Result<Seen> {
    match question {
        Question::Children | Question::Tracked => children(connection),
        Question::Joined => joined(connection),
        Question::Columns => columns(connection),
        Question::Groups => groups(connection),
        Question::Pages => pages(connection),
    }
}

fn shop(row: &Row<'_>, at: usize) -> rusqlite::Result<Shop> {
    Ok(Shop {
        id: row.get(at)?,
        region: row.get(at + 1)?,
        name: row.get(at + 2)?,
        city: row.get(at + 3)?,
        opened_at: row.get(at + 4)?,
    })
}

fn sale(row: &Row<'_>) -> rusqlite::Result<Sale> {
    Ok(Sale {
        id: row.get(0)?,
        shop_id: row.get(1)?,
        item: row.get(2)?,
        quantity: row.get(3)?,
        price: row.get(4)?,
        sold_at: row.get(5)?,
    })
}

pub(crate) fn product(row: &Row<'_>) -> rusqlite::Result<Product> {
    Ok(Product {
        id: row.get(0)?,
        sku: row.get(1)?,
        name: row.get(2)?,
        category: row.get(3)?,
        maker: row.get(4)?,
        price: row.get(5)?,
        stock: row.get(6)?,
        weight: row.get(7)?,
        rating: row.get(8)?,
        added_at: row.get(9)?,
    })
}

/// All rows of a statement.
fn all<T>(
    connection: &Connection,
    sql: &str,
    arguments: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(arguments, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Two queries, put together by key.
fn children(connection: &Connection) -> Result<Seen> {
    let shops = all(connection, SHOPS, [REGION], |row| shop(row, 0))?;
    let sales = all(connection, SALES, [REGION], sale)?;
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

fn joined(connection: &Connection) -> Result<Seen> {
    let sales = all(connection, JOINED, [], |row| {
        Ok((sale(row)?, shop(row, 6)?))
    })?;
    Ok(Seen::of(
        sales.iter().map(|(sale, shop)| (shop.id, sale.quantity)),
    ))
}

fn columns(connection: &Connection) -> Result<Seen> {
    let products = all(connection, COLUMNS, [], |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?))
    })?;
    Ok(Seen::of(
        products.iter().map(|(id, _, stock)| (*id, *stock)),
    ))
}

fn groups(connection: &Connection) -> Result<Seen> {
    let groups = all(connection, GROUPS, [], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?))
    })?;
    Ok(Seen::of(
        groups
            .iter()
            .map(|(category, _, stock)| (*category, *stock)),
    ))
}

fn pages(connection: &Connection) -> Result<Seen> {
    let mut products: Vec<Product> = Vec::new();
    for _ in 0..PAGES {
        let page = match products.last() {
            None => all(connection, FIRST_PAGE, params![MIDDLE, PAGE], product)?,
            Some(last) => all(
                connection,
                NEXT_PAGE,
                params![last.price, last.id, PAGE],
                product,
            )?,
        };
        products.extend(page);
    }
    Ok(Seen::of(
        products.iter().map(|product| (product.id, product.price)),
    ))
}
