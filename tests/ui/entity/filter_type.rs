//! Functions of named filters that are none.

use anabranch::{entity::Entity, query::Condition};

#[derive(Entity)]
#[entity(
    filter(live = Order::live),
    filter(paid = Order::PAID),
    filter(of_tenant = of_tenant),
    filter(lost = Order::lost)
)]
struct Order {
    #[entity(id)]
    id: i64,
    paid: bool,
    tenant: i64,
}

impl Order {
    fn live() -> bool {
        true
    }
}

fn of_tenant(tenant: i64) -> Condition<Order> {
    Order::TENANT.eq(tenant)
}

fn main() {}
