//! What is asked of the shops, their sales and the products, and what has to come of it.

use crate::{contender::Seen, shop};

/// A query, and what is made of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// The shops of a region, 1,000 of them, each with its ten sales.
    Children,
    /// The same, tracked by whoever can; the others read them.
    Tracked,
    /// All sales, each with its shop.
    Joined,
    /// Three of ten columns of all products.
    Columns,
    /// How many products each category has, and how much there is of them.
    Groups,
    /// Pages of fifty products by price, one after the other, from the middle on.
    Pages,
}

/// The region that is asked for.
pub(crate) const REGION: i64 = 0;
/// From which price on there are pages: half of the products cost less.
pub(crate) const MIDDLE: i64 = shop::PRICES as i64 / 2;
/// How many pages are read.
pub(crate) const PAGES: u32 = 20;
/// How many products each of them has.
pub(crate) const PAGE: u32 = 50;

pub(crate) const SHOPS: &str =
    "SELECT id, region, name, city, opened_at FROM shops WHERE region = ?1";
pub(crate) const SALES: &str = "SELECT id, shop_id, item, quantity, price, sold_at FROM sales \
     WHERE shop_id IN (SELECT id FROM shops WHERE region = ?1)";
pub(crate) const JOINED: &str = "SELECT sales.id, shop_id, item, quantity, price, sold_at, \
     shops.id, region, name, city, opened_at FROM sales JOIN shops ON shops.id = shop_id";
pub(crate) const COLUMNS: &str = "SELECT id, name, stock FROM products";
pub(crate) const GROUPS: &str =
    "SELECT category, count(*), sum(stock) FROM products GROUP BY category ORDER BY category";
pub(crate) const FIRST_PAGE: &str = "SELECT id, sku, name, category, maker, price, stock, weight, rating, added_at \
     FROM products WHERE price >= ?1 ORDER BY price, id LIMIT ?2";
pub(crate) const NEXT_PAGE: &str = "SELECT id, sku, name, category, maker, price, stock, weight, rating, added_at \
     FROM products WHERE (price, id) > (?1, ?2) ORDER BY price, id LIMIT ?3";

impl Question {
    /// How many of what its table counts one answer has.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Self::Children | Self::Tracked => f64::from(shop::SALES / shop::REGIONS),
            Self::Joined => shop::SALES.into(),
            Self::Columns => shop::PRODUCTS.into(),
            Self::Groups => 1.0,
            Self::Pages => PAGES.into(),
        }
    }

    /// Whether an answer has the rows that it should have, and in each of them what it should hold: the sum says that.
    pub(crate) fn is_answered_by(self, seen: Seen) -> bool {
        let sum = |numbers: &mut dyn Iterator<Item = u32>| numbers.map(i64::from).sum::<i64>();
        let (rows, quantity) = match self {
            Self::Children | Self::Tracked => (
                shop::SALES / shop::REGIONS,
                sum(&mut (0..shop::SALES)
                    .filter(|n| shop::region(n % shop::SHOPS) == REGION)
                    .map(shop::quantity)),
            ),
            Self::Joined => (shop::SALES, sum(&mut (0..shop::SALES).map(shop::quantity))),
            Self::Columns => (
                shop::PRODUCTS,
                sum(&mut (0..shop::PRODUCTS).map(shop::quantity)),
            ),
            Self::Groups => (
                shop::CATEGORIES,
                sum(&mut (0..shop::PRODUCTS).map(shop::quantity)),
            ),
            // Of each price there are as many products as of any other.
            Self::Pages => (
                PAGES * PAGE,
                sum(&mut (0..PAGES * PAGE).map(|n| n / (shop::PRODUCTS / shop::PRICES)))
                    + i64::from(PAGES * PAGE) * MIDDLE,
            ),
        };
        i64::try_from(seen.rows) == Ok(rows.into()) && seen.quantity == quantity
    }
}
