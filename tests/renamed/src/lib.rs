//! An application that has the library under another name, and documents everything: each derive works there.
#![deny(missing_docs, warnings, clippy::pedantic)]

/// An order.
#[derive(Debug, Clone, PartialEq, ab::entity::Entity)]
#[entity(
    crate = "::ab",
    index(columns(home.city), name = "by_city"),
    has_many(lines: Line),
    has_one(next: Order),
    filter(open = Order::open)
)]
pub struct Order {
    /// Its key.
    #[entity(id, autoincrement)]
    pub id: OrderId,
    /// Where it goes.
    #[entity(embed)]
    pub home: Address,
    /// How it is paid.
    #[entity(embed)]
    pub payment: Option<Payment>,
    /// How far it is.
    #[entity(default = Status::New)]
    pub status: Status,
    /// The one before it.
    #[entity(references = Order, on_delete = SetNull, relation = before, unique)]
    pub previous: Option<OrderId>,
    /// Anything.
    #[entity(json)]
    pub tags: Vec<String>,
    /// How it sorts.
    #[entity(padded)]
    pub rank: u64,
    /// The version.
    #[entity(version)]
    pub version: i64,
    /// The position in commit order.
    #[entity(commit_seq)]
    pub seq: ab::entity::CommitSeq,
}

impl Order {
    fn open() -> ab::query::Condition<Self> {
        Self::STATUS.ne(Status::Done)
    }
}

/// A line of an order.
#[derive(Debug, ab::entity::Entity)]
#[entity(crate = "ab")]
pub struct Line {
    /// Its key.
    #[entity(id)]
    pub id: i64,
    /// What it is a line of.
    #[entity(references = Order, index)]
    pub order_id: OrderId,
}

/// What is shown of an order.
#[derive(Debug, PartialEq, Eq, ab::query::Projection)]
#[projection(entity = Order, crate = "ab")]
pub struct OrderRow {
    /// Its tags.
    #[projection(json)]
    pub tags: Vec<String>,
    /// Its rank.
    #[projection(padded)]
    pub rank: u64,
    /// Where it goes.
    #[projection(from = Order::HOME.then(Address::CITY))]
    pub city: String,
    /// Its lines.
    #[projection(nested = Order::LINES)]
    pub lines: Vec<LineRow>,
}

/// What is shown of a line.
#[derive(Debug, PartialEq, Eq, ab::query::Projection)]
#[projection(entity = Line, crate = "::ab")]
pub struct LineRow {
    /// Its key.
    pub id: i64,
    /// What is shown of its order.
    #[projection(from = Line::ORDER.get(Order::ID))]
    pub order: OrderId,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ab::entity::EntityNewtype)]
#[entity(key, crate = "ab")]
pub struct OrderId(pub i64);

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, ab::entity::EntityEmbed)]
#[entity(crate = "ab")]
pub struct Address {
    /// The city.
    pub city: String,
    /// The street.
    pub street: Option<String>,
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq, ab::entity::EntityEmbed)]
#[entity(crate = "ab")]
pub enum Payment {
    /// In coins.
    Cash,
    /// By card.
    Card {
        /// Its number.
        number: String,
    },
    /// On an invoice.
    Invoice(#[entity(embed)] Address),
}

/// What is told of orders.
#[derive(Debug, PartialEq, Eq, ab::query::FromRow)]
#[row(crate = "ab")]
pub struct Report {
    /// How many there are.
    pub count: i64,
    /// Where they go.
    #[row(embed)]
    pub home: Option<Address>,
    /// How they sort.
    #[row(padded)]
    pub rank: u64,
}

/// What is known beside.
#[derive(Debug, serde::Serialize, serde::Deserialize, ab::query::JsonFields)]
#[entity(crate = "ab")]
pub struct Extra {
    /// The colour.
    pub colour: String,
    /// The size.
    #[serde(default)]
    pub size: i64,
}

/// A status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ab::entity::EntityEnum)]
#[entity(check, crate = "ab")]
pub enum Status {
    /// Just made.
    New,
    /// Done.
    Done,
}

#[cfg(test)]
mod tests {
    use ab::prelude::Database;

    use crate::{Address, Line, Order, OrderId, OrderRow, Payment, Status};

    #[tokio::test]
    async fn the_derives_work_under_another_name_of_the_crate() -> ab::error::Result<()> {
        let db = Database::temporary().await?;
        db.create_tables::<(Order, Line)>().await?;
        let mut ctx = db.context();
        let address = Address {
            city: "Delft".to_owned(),
            street: None,
        };
        let payments = [
            None,
            Some(Payment::Cash),
            Some(Payment::Card {
                number: "1".to_owned(),
            }),
            Some(Payment::Invoice(address.clone())),
        ];
        let orders = payments.map(|payment| {
            ctx.add(Order {
                id: OrderId(0),
                home: address.clone(),
                payment,
                status: Status::New,
                previous: None,
                tags: vec!["x".to_owned()],
                rank: u64::MAX,
                version: 0,
                seq: ab::entity::CommitSeq(0),
            })
        });
        ctx.save_changes().await?;
        for order in orders {
            assert_eq!(
                Order::find(&db, ctx[order].id).await?.as_ref(),
                Some(&ctx[order])
            );
        }
        ctx.add(Line {
            id: 0,
            order_id: ctx[orders[0]].id,
        });
        ctx.save_changes().await?;
        let all = Order::query().without_filter("open");
        let row = all.project::<OrderRow>().first(&db).await?.unwrap();
        assert_eq!((row.lines[0].order, row.rank), (OrderId(1), u64::MAX));
        ctx[orders[0]].status = Status::Done;
        ctx.save_changes().await?;
        assert_eq!(Order::query().count(&db).await?, 3);
        assert_eq!(Order::find(&db, OrderId(1)).await?, None);
        let query = Order::query()
            .without_filters()
            .filter(Order::PAYMENT.then(Payment::CARD_NUMBER).eq("1".to_owned()));
        assert_eq!(query.count(&db).await?, 1);
        Ok(())
    }
}
