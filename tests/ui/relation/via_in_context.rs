//! A relation of several steps where a context follows one.

use anabranch::{context::Tracked, error::Result, prelude::*};

#[derive(Entity)]
#[entity(has_many(orders: Order))]
struct Customer {
    #[entity(id)]
    id: i64,
}

#[derive(Entity)]
#[entity(table = "orders", has_many(lines: Line))]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer, index)]
    customer_id: i64,
}

#[derive(Entity)]
struct Line {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, index)]
    order_id: i64,
}

async fn follow(ctx: &mut Context<'_>, customer: Tracked<Customer>) -> Result<()> {
    let lines = ctx.related(customer, Customer::ORDERS.via(Order::LINES))?;
    ctx.load_related(customer, Customer::ORDERS.via(Order::LINES)).await?;
    ctx.replace_related(customer, Customer::ORDERS.via(Order::LINES), vec![]).await?;
    Ok(())
}

fn main() {}
