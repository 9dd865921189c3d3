//! Relations into a context: who is tracked, and what is related there.

use anabranch::{context::Tracked, error::Result, prelude::*};

use crate::{
    relations::places::in_contexts,
    world::{
        Account, Club, Customer, Employee, Fixture, Line, Order, Product, ProductTag, Tag, product,
    },
};

async fn nothing(_: &Database) -> Result<()> {
    Ok(())
}

fn ids<E: Entity<Key = i64>>(ctx: &Context<'_>, handles: &[Tracked<E>]) -> Vec<i64> {
    handles.iter().map(|handle| ctx[*handle].key()).collect()
}

#[tokio::test]
async fn an_entity_is_tracked_once_however_many_refer_to_it() {
    let work = async |ctx: &mut Context<'_>| {
        let found = Order::query()
            .order_by(Order::ID.asc())
            .with(Order::CUSTOMER.then(Customer::REFERRER))
            .with(Order::LINES.then(Line::PRODUCT.then(Product::TAGS)))
            .load(ctx)
            .await?;
        let customers: Vec<_> = found
            .iter()
            .map(|(_, (customer, _), _)| *customer)
            .collect();
        assert_eq!(ids(ctx, &customers), [1, 1, 2, 1, 3]);
        assert_eq!(customers[0], customers[1]);
        assert_eq!(ctx.iter::<Customer>().count(), 3);
        // The referrer is the customer of others.
        assert_eq!(found[2].1.1, Some(customers[0]));
        assert_eq!(ctx.iter::<Product>().count(), 2);
        assert_eq!(ctx.iter::<Tag>().count(), 2);
        // With the entities between.
        assert_eq!(ctx.iter::<ProductTag>().count(), 3);
        assert!(!ctx.has_changes());
        for (order, (customer, _), lines) in &found {
            assert_eq!(ctx.related(*order, Order::CUSTOMER)?, Some(*customer));
            let mut related = ctx.related(*order, Order::LINES)?;
            related.sort_by_key(|line| ctx[*line].position);
            assert_eq!(
                related,
                lines.iter().map(|(line, _)| *line).collect::<Vec<_>>()
            );
            for (_, (product, tags)) in lines {
                assert_eq!(ctx.related(*product, Product::TAGS)?.len(), tags.len());
            }
        }
        // To have loaded it again changes nothing.
        let again = Order::query().order_by(Order::ID.asc()).load(ctx).await?;
        let before: Vec<_> = found.iter().map(|(order, ..)| *order).collect();
        assert_eq!(again, before);
        Ok(())
    };
    in_contexts(work, nothing).await;
}

#[tokio::test]
async fn local_changes_stay_and_what_was_removed_is_left_out() {
    let work = async |ctx: &mut Context<'_>| {
        let bob = ctx.find::<Customer>(2).await?.unwrap();
        ctx[bob].name = "Rob".to_owned();
        let cy = ctx.find::<Customer>(3).await?.unwrap();
        let second = ctx.find::<Order>(2).await?.unwrap();
        assert!(ctx.remove(second));
        let found = Customer::query()
            .order_by(Customer::ID.asc())
            .with(Customer::ORDERS.order_by([Order::ID.asc()]))
            .load(ctx)
            .await?;
        let all: Vec<_> = found
            .iter()
            .map(|(customer, orders)| (ctx[*customer].id, ids(ctx, orders)))
            .collect();
        assert_eq!(
            all,
            [(1, vec![1, 4]), (2, vec![3]), (3, vec![5]), (4, vec![])]
        );
        assert_eq!(found[1].0, bob);
        assert_eq!(ctx[bob].name, "Rob");
        // Of one that is removed nothing is told, nor of what always refers to it.
        ctx.remove(cy);
        let orders = Order::query().order_by(Order::ID.asc());
        let with = orders.with(Order::CUSTOMER).load(ctx).await?;
        let orders: Vec<_> = with.iter().map(|(order, _)| *order).collect();
        assert_eq!(ids(ctx, &orders), [1, 3, 4]);
        let referred = Customer::query()
            .order_by(Customer::ID.asc())
            .with(Customer::REFERRER);
        let referred = referred.load(ctx).await?;
        let referrers: Vec<_> = referred
            .iter()
            .map(|(_, it)| it.map(|it| ctx[it].id))
            .collect();
        assert_eq!(referrers, [None, Some(1), None]);
        Ok(())
    };
    in_contexts(work, nothing).await;
}

#[tokio::test]
async fn what_is_related_is_as_it_is_in_the_context() {
    let work = async |ctx: &mut Context<'_>| {
        let ada = ctx.find::<Customer>(1).await?.unwrap();
        let bob = ctx.find::<Customer>(2).await?.unwrap();
        assert!(ctx.related(ada, Customer::ORDERS)?.is_empty());
        let orders = ctx.load_related(ada, Customer::ORDERS).await?;
        assert_eq!(ids(ctx, &orders), [1, 2, 4]);
        // Added, moved and removed, and not saved.
        let new = ctx.add(Order {
            id: 0,
            customer_id: 1,
            ship_to_id: None,
            total: None,
        });
        ctx[orders[0]].customer_id = 2;
        ctx.remove(orders[1]);
        assert_eq!(ctx.related(ada, Customer::ORDERS)?, [orders[2], new]);
        assert_eq!(ctx.related(bob, Customer::ORDERS)?, [orders[0]]);
        assert_eq!(ctx.related(orders[0], Order::CUSTOMER)?, Some(bob));
        assert_eq!(ctx.related(new, Order::CUSTOMER)?, Some(ada));
        // Read again, all stays as it is here.
        assert_eq!(
            ctx.load_related(ada, Customer::ORDERS).await?,
            [orders[2], new]
        );
        let of_bob = ctx.load_related(bob, Customer::ORDERS).await?;
        assert_eq!(ids(ctx, &of_bob), [1, 3]);
        // The one that is removed knows whose it was, until that is saved.
        assert_eq!(ctx.related(orders[1], Order::CUSTOMER)?, Some(ada));
        // Below what has a temporary key.
        let line = ctx.add(Line {
            order_id: ctx[new].id,
            position: 1,
            product_id: product(3),
            amount: 1,
            price: None,
        });
        assert_eq!(ctx.related(new, Order::LINES)?, [line]);
        assert_eq!(ctx.load_related(new, Order::LINES).await?, [line]);
        let pan = ctx.load_related(line, Line::PRODUCT).await?.unwrap();
        assert_eq!(ctx[pan].name, "pan");
        assert_eq!(ctx.related(pan, Product::LINES)?, [line]);
        ctx.save_changes().await?;
        assert_eq!(ctx.related(orders[1], Order::CUSTOMER)?, None);
        assert_eq!(ctx[line].order_id, ctx[new].id);
        assert_eq!(ctx.related(new, Order::LINES)?, [line]);
        Ok(())
    };
    let after = async |db: &Database| -> Result<()> {
        let query = Customer::query().order_by(Customer::ID.asc());
        let orders = Customer::ORDERS
            .order_by([Order::ID.asc()])
            .select(Order::ID);
        let found = query.select(orders).all(db).await?;
        assert_eq!(found[0][0], 4);
        assert_eq!((found[0].len(), &found[1][..]), (2, &[1, 3][..]));
        Ok(())
    };
    in_contexts(work, after).await;
}

#[tokio::test]
async fn every_kind_is_found_and_loaded_for_one_entity() {
    let work = async |ctx: &mut Context<'_>| {
        let ada = ctx.find::<Customer>(1).await?.unwrap();
        let bob = ctx.find::<Customer>(2).await?.unwrap();
        let account = ctx.load_related(ada, Customer::ACCOUNT).await?.unwrap();
        assert_eq!(ctx[account].login, "ada");
        assert_eq!(ctx.load_related(bob, Customer::ACCOUNT).await?, None);
        assert_eq!(
            ctx.load_related(account, Account::CUSTOMER).await?,
            Some(ada)
        );
        assert_eq!(ctx.load_related(bob, Customer::REFERRER).await?, Some(ada));
        assert_eq!(ctx.load_related(ada, Customer::REFERRER).await?, None);
        let referred = ctx.load_related(ada, Customer::REFERRED).await?;
        assert_eq!(ids(ctx, &referred), [2, 3]);
        // By a text of which the case is another, and through a third.
        let tea = ctx.find::<Product>(product(1)).await?.unwrap();
        let tags = ctx.load_related(tea, Product::TAGS).await?;
        let mut codes: Vec<_> = tags.iter().map(|tag| ctx[*tag].code.clone()).collect();
        codes.sort();
        assert_eq!(codes, ["Food", "drink"]);
        let food = ctx.find::<Tag>("FOOD").await?.unwrap();
        let products = ctx.load_related(food, Tag::PRODUCTS).await?;
        assert_eq!(products.len(), 2);
        let new = ctx.add(ProductTag {
            product_id: product(3),
            tag_code: "fOOD".into(),
            weight: 1,
        });
        let pan = ctx.load_related(new, ProductTag::PRODUCT).await?.unwrap();
        assert_eq!(ctx.related(food, Tag::PRODUCTS)?.len(), 3);
        assert_eq!(ctx.related(pan, Product::TAGS)?, [food]);
        ctx.remove(new);
        assert!(ctx.related(pan, Product::TAGS)?.is_empty());
        // Keys of several columns, of which two references have one in common.
        let fixture = ctx.find::<Fixture>(1).await?.unwrap();
        let home = ctx
            .load_related(fixture, Fixture::HOME_CLUB)
            .await?
            .unwrap();
        let away = ctx
            .load_related(fixture, Fixture::AWAY_CLUB)
            .await?
            .unwrap();
        assert_eq!((&ctx[home].name[..], &ctx[away].name[..]), ("a", "b"));
        assert_eq!(ctx.load_related(home, Club::AT_HOME).await?, [fixture]);
        assert!(ctx.load_related(home, Club::AWAY).await?.is_empty());
        let homeless = ctx.find::<Fixture>(4).await?.unwrap();
        assert_eq!(ctx.load_related(homeless, Fixture::HOME_CLUB).await?, None);
        let mid = ctx.find::<Employee>(2).await?.unwrap();
        let top = ctx.load_related(mid, Employee::MANAGER).await?.unwrap();
        let reports = ctx.load_related(top, Employee::REPORTS).await?;
        assert_eq!(ids(ctx, &reports), [2, 3]);
        Ok(())
    };
    in_contexts(work, nothing).await;
}
