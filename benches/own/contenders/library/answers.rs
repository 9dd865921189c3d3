//! Questions as typed queries.

use anabranch::{
    error::Result,
    prelude::*,
    query::{Cursor, count},
};

use crate::{
    contender::Seen,
    question::{MIDDLE, PAGE, PAGES, Question, REGION},
    shop::{Product, Sale, Shop},
};

/// Runs its query, and looks at each row of the answer.
pub(in crate::contenders) async fn answer(db: &Database, question: Question) -> Result<Seen> {
    match question {
        Question::Children => children(db).await,
        Question::Tracked => tracked(db).await,
        Question::Joined => joined(db).await,
        Question::Columns => columns(db).await,
        Question::Groups => groups(db).await,
        Question::Pages => pages(db).await,
    }
}

async fn children(db: &Database) -> Result<Seen> {
    let shops = Shop::query()
        .filter(Shop::REGION.eq(REGION))
        .with(Shop::SALES)
        .all(db)
        .await?;
    let sales = shops.iter().flat_map(|(_, sales)| sales);
    Ok(Seen::of(sales.map(|sale| (sale.id, sale.quantity))))
}

async fn tracked(db: &Database) -> Result<Seen> {
    let mut ctx = db.context();
    let shops = Shop::query()
        .filter(Shop::REGION.eq(REGION))
        .with(Shop::SALES)
        .load(&mut ctx)
        .await?;
    let sales = shops.iter().flat_map(|(_, sales)| sales);
    Ok(Seen::of(
        sales.map(|sale| (ctx[*sale].id, ctx[*sale].quantity)),
    ))
}

async fn joined(db: &Database) -> Result<Seen> {
    let sales = Sale::query().with(Sale::SHOP).all(db).await?;
    Ok(Seen::of(
        sales.iter().map(|(sale, shop)| (shop.id, sale.quantity)),
    ))
}

async fn columns(db: &Database) -> Result<Seen> {
    let products: Vec<(i64, String, i64)> = Product::query()
        .select((Product::ID, Product::NAME, Product::STOCK))
        .all(db)
        .await?;
    Ok(Seen::of(
        products.iter().map(|(id, _, stock)| (*id, *stock)),
    ))
}

async fn groups(db: &Database) -> Result<Seen> {
    let groups = Product::query()
        .group_by(Product::CATEGORY)
        .order_by(Product::CATEGORY.asc())
        .select((Product::CATEGORY, count(), Product::STOCK.sum()))
        .all(db)
        .await?;
    let of_each = |(category, _, stock): &(i64, i64, Option<i64>)| (*category, stock.unwrap_or(0));
    Ok(Seen::of(groups.iter().map(of_each)))
}

async fn pages(db: &Database) -> Result<Seen> {
    let mut products = Vec::new();
    let mut cursor: Option<Cursor> = None;
    for _ in 0..PAGES {
        let query = Product::query().order_by(Product::PRICE.asc());
        let query = match cursor {
            None => query.filter(Product::PRICE.ge(MIDDLE)),
            Some(_) => query,
        };
        let page = query.page(cursor, PAGE.into()).read(db).await?;
        cursor = page.next;
        products.extend(page.items);
    }
    Ok(Seen::of(
        products.iter().map(|product| (product.id, product.price)),
    ))
}
