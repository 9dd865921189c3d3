//! Relations whose constants belong to a column or to another relation.

use anabranch::entity::Entity;

#[derive(Entity)]
#[entity(
    has_many(orders: Order),
    has_one(orders: Order),
    has_many(name: Order, by = customer_id),
    has_one(parent: Customer)
)]
struct Customer {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(references = Self)]
    parent_id: Option<i64>,
}

#[derive(Entity)]
#[entity(foreign_key(columns(place), references = Customer, relation = agent))]
struct Order {
    #[entity(id)]
    id: i64,
    customer: String,
    #[entity(references = Customer)]
    customer_id: i64,
    #[entity(references = Customer, relation = customer)]
    payer_id: i64,
    #[entity(references = Customer, relation = agent)]
    seller_id: i64,
    place: i64,
}

fn main() {}
