//! Graphs by relations, children taken from their parents, and cascades.

use anabranch::{context::Graph, error::Result, prelude::*};

use crate::{
    relations::places::in_contexts,
    world::{
        Address, Club, Customer, Employee, Fixture, Line, Order, ProductTag, Remark, Tag,
        ids_by_hand, product,
    },
};

fn line(position: i64) -> Line {
    Line {
        order_id: 0,
        position,
        product_id: product(1),
        amount: position,
        price: None,
    }
}

fn remark(text: &str) -> Remark {
    Remark {
        id: 0,
        order_id: None,
        position: None,
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn a_graph_hangs_by_relations_from_either_side() {
    let work = async |ctx: &mut Context<'_>| {
        let order = |total| Order {
            id: 0,
            customer_id: 0,
            ship_to_id: None,
            total: Some(total),
        };
        let with_remarks = |position| {
            let remarks = [remark("a"), remark("b")];
            Graph::attach(line(position)).with(Line::REMARKS, remarks)
        };
        let orders = [7, 8].map(|total| {
            Graph::attach(order(total)).with(Order::LINES, [with_remarks(1), with_remarks(2)])
        });
        let customer = Customer {
            id: 0,
            name: "Eve".into(),
            referrer_id: Some(1),
        };
        let address = Address {
            id: 0,
            customer_id: 0,
            city: "Rom".into(),
        };
        let graph = Graph::attach(customer)
            .with(Customer::ORDERS, orders)
            .with(Address::CUSTOMER, [address]);
        let eve = ctx.attach_graph(graph)?;
        let orders = ctx.related(eve, Customer::ORDERS)?;
        assert_eq!(orders.len(), 2);
        assert_eq!(ctx.related(orders[0], Order::LINES)?.len(), 2);
        assert_eq!(ctx.save_changes().await?.inserted, 16);
        assert_eq!(ctx.related(eve, Customer::ADDRESSES)?.len(), 1);
        Ok(())
    };
    let after = async |db: &Database| -> Result<()> {
        let found = Customer::query()
            .filter(Customer::NAME.eq("Eve"))
            .with(Customer::ORDERS.then(Order::LINES.then(Line::REMARKS)))
            .one(db)
            .await?;
        let remarks = found
            .1
            .iter()
            .flat_map(|(_, lines)| lines)
            .map(|(_, it)| it.len());
        assert_eq!(remarks.collect::<Vec<_>>(), [2; 4]);
        Ok(())
    };
    in_contexts(work, after).await;
}

#[tokio::test]
async fn a_graph_of_its_own_kind_and_one_whose_references_share_a_column() {
    let work = async |ctx: &mut Context<'_>| {
        let employee = |name: &str| Employee {
            id: 0,
            name: name.into(),
            pay: 1,
            manager_id: None,
        };
        let below = Graph::attach(employee("b")).with(Employee::REPORTS, [employee("c")]);
        let top = Graph::attach(employee("a")).with(Employee::REPORTS, [below]);
        let top = ctx.attach_graph(top)?;
        let club = Graph::add(Club {
            league: 7,
            number: 3,
            name: "z".into(),
        });
        let fixture = || Fixture {
            id: 0,
            league: 0,
            home: None,
            away: None,
        };
        let club = club
            .with(Club::AWAY, [fixture()])
            .with(Fixture::HOME_CLUB, [fixture()]);
        let club = ctx.attach_graph(club)?;
        let away = ctx.related(club, Club::AWAY)?;
        let home = ctx.related(club, Club::AT_HOME)?;
        assert_eq!((away.len(), home.len()), (1, 1));
        assert_ne!(away, home);
        assert_eq!(
            (ctx[away[0]].league, ctx[away[0]].home, ctx[away[0]].away),
            (7, None, Some(3))
        );
        ctx.save_changes().await?;
        let middle = ctx.related(top, Employee::REPORTS)?;
        assert_eq!(ctx[middle[0]].manager_id, Some(ctx[top].id));
        assert_eq!(ctx.related(middle[0], Employee::REPORTS)?.len(), 1);
        Ok(())
    };
    let after = async |db: &Database| -> Result<()> {
        let away = Club::query().filter(Club::AWAY.any(Fixture::LEAGUE.eq(7)));
        assert_eq!(away.one(db).await?.name, "z");
        Ok(())
    };
    in_contexts(work, after).await;
}

/// By a relation of several columns the first was looked at: the league is never NULL, so the fixture was removed.
#[tokio::test]
async fn a_child_is_taken_from_its_parent_by_the_relation() {
    let work = async |ctx: &mut Context<'_>| {
        // Optional: it stays.
        let order = ctx.find::<Order>(1).await?.unwrap();
        assert!(ctx.sever(order, Order::SHIP_TO)?);
        assert_eq!(ctx[order].ship_to_id, None);
        let report = ctx.find::<Employee>(4).await?.unwrap();
        assert!(ctx.sever(report, Employee::REPORTS)?);
        assert_eq!(ctx[report].manager_id, None);
        let fixture = ctx.find::<Fixture>(1).await?.unwrap();
        assert!(ctx.sever(fixture, Fixture::HOME_CLUB)?);
        assert_eq!(
            (ctx[fixture].league, ctx[fixture].home, ctx[fixture].away),
            (1, None, Some(2))
        );
        assert!(ctx.sever(fixture, Club::AWAY)?);
        assert_eq!(ctx[fixture].away, None);
        let remark = ctx.find::<Remark>(3).await?.unwrap();
        assert!(ctx.sever(remark, Remark::LINE)?);
        assert_eq!(ctx.related(remark, Remark::LINE)?, None);
        // Required: it goes, also by the relation of the parent.
        let lines = ctx.load_related(order, Order::LINES).await?;
        assert!(ctx.sever(lines[0], Line::ORDER)?);
        assert!(ctx.sever(lines[1], Order::LINES)?);
        assert!(ctx.related(order, Order::LINES)?.is_empty());
        // One that is not the child's own reference.
        let customer = ctx.find::<Customer>(1).await?.unwrap();
        let refused = ctx.sever(customer, Customer::ACCOUNT).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        let saved = ctx.save_changes().await?;
        assert_eq!((saved.updated, saved.deleted), (4, 2));
        Ok(())
    };
    let after = async |db: &Database| -> Result<()> {
        assert_eq!(
            ids_by_hand(db, "SELECT order_id FROM line ORDER BY 1"),
            [2, 4, 5]
        );
        assert_eq!(
            ids_by_hand(db, "SELECT id FROM employee WHERE manager_id IS NULL"),
            [1, 4]
        );
        assert_eq!(
            ids_by_hand(db, "SELECT count(*) FROM fixture WHERE home IS NULL"),
            [2]
        );
        Ok(())
    };
    in_contexts(work, after).await;
}

#[tokio::test]
async fn cascades_are_the_same_in_the_database_and_in_the_context() {
    let work = async |ctx: &mut Context<'_>| {
        let orders = Order::query()
            .with(Order::LINES.then(Line::REMARKS))
            .load(ctx)
            .await?;
        let addresses = Address::query().load(ctx).await?;
        let tags = Tag::query().load(ctx).await?;
        ctx.load_related(tags[0], Tag::PRODUCTS).await?;
        let first = ctx.find::<Order>(1).await?.unwrap();
        ctx.remove(first);
        ctx.remove(tags[0]);
        // To these orders refer by `SetNull`.
        ctx.remove(addresses[2]);
        ctx.save_changes().await?;
        assert_eq!(ctx.iter::<Line>().count(), 3);
        assert_eq!(ctx.iter::<Remark>().count(), 1);
        assert_eq!(ctx.iter::<ProductTag>().count(), 0);
        let third = ctx.find::<Order>(3).await?.unwrap();
        assert_eq!(ctx[third].ship_to_id, None);
        assert_eq!(orders.len(), 5);
        assert!(!ctx.has_changes());
        Ok(())
    };
    let after = async |db: &Database| -> Result<()> {
        assert_eq!(ids_by_hand(db, "SELECT count(*) FROM line"), [3]);
        assert_eq!(
            ids_by_hand(db, "SELECT id FROM remark ORDER BY 1"),
            [3, 4, 5]
        );
        assert_eq!(ids_by_hand(db, "SELECT count(*) FROM product_tag"), [1]);
        let nowhere = r#"SELECT id FROM "order's ""list""" WHERE ship_to_id IS NULL"#;
        assert_eq!(ids_by_hand(db, nowhere), [2, 3]);
        Ok(())
    };
    in_contexts(work, after).await;
}
