//! Relations and expressions as text.

use expect_test::{Expect, expect};

use crate::{
    entity::Entity,
    query::{
        Expr, Over, Projection, Query, Selection, case, count, exists, fragment, row_number, upsert,
    },
};

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(crate = "crate", has_many(orders: Order))]
struct Customer {
    #[entity(id)]
    id: i64,
    name: String,
    country: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(crate = "crate", table = "orders", has_many(lines: Line), has_many(tags: Tag, through = OrderTag))]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(references = Customer, index)]
    customer_id: i64,
    #[entity(references = Order)]
    parent_id: Option<i64>,
    total: i64,
    #[entity(version)]
    version: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(crate = "crate")]
struct Line {
    #[entity(id)]
    id: i64,
    #[entity(references = Order, index)]
    order_id: i64,
    price: i64,
    amount: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(crate = "crate")]
struct Tag {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(crate = "crate", without_rowid)]
struct OrderTag {
    #[entity(id, references = Order)]
    order_id: i64,
    #[entity(id, references = Tag, index)]
    tag_id: i64,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Line, crate = "crate")]
struct LineRow {
    price: i64,
    #[projection(from = Line::ORDER.get(Order::CUSTOMER.get(Customer::NAME)))]
    buyer: String,
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]
fn text<E: Entity, S: Selection<E>>(query: Query<E, S>, expected: Expect) {
    let statement = query.sql().unwrap();
    expected.assert_eq(&format!("{statement} {:?}", statement.args));
}

#[test]
fn one_row_that_a_relation_leads_to_is_joined_once() {
    text(
        Order::query()
            .filter(Order::CUSTOMER.any(Customer::COUNTRY.eq("NL")))
            .order_by(Order::CUSTOMER.get(Customer::NAME).asc())
            .select((Order::ID, Order::CUSTOMER.get(Customer::NAME))),
        expect![[
            r#"SELECT t0."id", t1."name" FROM "orders" AS t0 LEFT JOIN "customer" AS t1 ON t1."id" = t0."customer_id" WHERE (t1."id" IS NOT NULL AND t1."country" = ?1) ORDER BY t1."name" ASC [Text("NL")]"#
        ]],
    );
}

#[test]
fn two_relations_to_one_table_are_two_joins() {
    text(
        Order::query().select((
            Order::PARENT.get(Order::CUSTOMER.get(Customer::NAME)),
            Order::CUSTOMER.get(Customer::NAME),
        )),
        expect![[
            r#"SELECT t2."name", t3."name" FROM "orders" AS t0 LEFT JOIN "orders" AS t1 ON t1."id" = t0."parent_id" LEFT JOIN "customer" AS t2 ON t2."id" = t1."customer_id" LEFT JOIN "customer" AS t3 ON t3."id" = t0."customer_id" []"#
        ]],
    );
}

#[test]
fn many_rows_are_asked_by_a_statement_inside() {
    text(
        Customer::query()
            .filter(Customer::ORDERS.any(Order::LINES.all(Line::PRICE.gt(10))))
            .filter(Customer::ORDERS.count().gt(2))
            .select((Customer::NAME, Customer::ORDERS.of_all(Order::TOTAL.sum()))),
        expect![[
            r#"SELECT t0."name", (SELECT sum(t1."total") FROM "orders" AS t1 WHERE t1."customer_id" = t0."id") FROM "customer" AS t0 WHERE EXISTS (SELECT 1 FROM "orders" AS t2 WHERE t2."customer_id" = t0."id" AND NOT EXISTS (SELECT 1 FROM "line" AS t3 WHERE t3."order_id" = t2."id" AND (t3."price" > ?1) IS NOT TRUE)) AND (SELECT count(*) FROM "orders" AS t4 WHERE t4."customer_id" = t0."id") > ?2 [Integer(10), Integer(2)]"#
        ]],
    );
}

#[test]
fn many_to_many_goes_through_the_join_table() {
    text(
        Order::query()
            .filter(Order::TAGS.none(Tag::NAME.eq("gift")))
            .select(Order::ID),
        expect![[
            r#"SELECT t0."id" FROM "orders" AS t0 WHERE NOT EXISTS (SELECT 1 FROM "order_tag" AS t1 JOIN "tag" AS t2 ON t2."id" = t1."tag_id" WHERE t1."order_id" = t0."id" AND t2."name" = ?1) [Text("gift")]"#
        ]],
    );
}

#[test]
fn entities_with_what_they_belong_to_are_one_statement() {
    text(
        Line::query()
            .with(Line::ORDER.then(Order::CUSTOMER))
            .limit(3),
        expect![[
            r#"SELECT t0."id", t0."order_id", t0."price", t0."amount", (t1."id" IS NOT NULL), t1."id", t1."customer_id", t1."parent_id", t1."total", t1."version", (t2."id" IS NOT NULL), t2."id", t2."name", t2."country" FROM "line" AS t0 LEFT JOIN "orders" AS t1 ON t1."id" = t0."order_id" LEFT JOIN "customer" AS t2 ON t2."id" = t1."customer_id" LIMIT 3 []"#
        ]],
    );
}

#[test]
fn a_projection_reads_what_it_has() {
    text(
        Line::query().project::<LineRow>(),
        expect![[
            r#"SELECT t0."price", t2."name" FROM "line" AS t0 LEFT JOIN "orders" AS t1 ON t1."id" = t0."order_id" LEFT JOIN "customer" AS t2 ON t2."id" = t1."customer_id" []"#
        ]],
    );
}

#[test]
fn expressions() {
    let total: Expr<Line, i64> = Line::PRICE * Line::AMOUNT + 1;
    text(
        Line::query()
            .filter(total.clone().gt(Line::PRICE))
            .filter(Line::PRICE.ne(Line::AMOUNT))
            .select((
                total,
                -Line::PRICE,
                Line::PRICE / 3,
                case::<Line, String>()
                    .when(Line::PRICE.lt(10), "cheap")
                    .otherwise("dear"),
                fragment::<Line, i64>("{0} + {0} + {1}", (Line::ID, 5_i64)),
                Line::PRICE.gt(3).as_bool(),
            )),
        expect![[
            r#"SELECT (("price" * "amount") + ?1), (0 - "price"), ("price" / ?2), CASE WHEN "price" < ?3 THEN ?4 ELSE ?5 END, ("id" + "id" + ?6), (("price" > ?7) IS TRUE) FROM "line" WHERE (("price" * "amount") + ?8) > "price" AND "price" <> "amount" [Integer(1), Integer(3), Integer(10), Text("cheap"), Text("dear"), Integer(5), Integer(3), Integer(1)]"#
        ]],
    );
}

#[test]
fn groups_and_windows() {
    text(
        Line::query()
            .group_by(Line::ORDER_ID)
            .having(count().gt(1))
            .select((
                Line::ORDER_ID,
                count(),
                Line::PRICE.sum(),
                Line::AMOUNT.count_distinct(),
                Line::PRICE.max().only(Line::AMOUNT.gt(1)),
            )),
        expect![[
            r#"SELECT "order_id", count(*), sum("price"), count(DISTINCT "amount"), max("price") FILTER (WHERE "amount" > ?1) FROM "line" GROUP BY "order_id" HAVING count(*) > ?2 [Integer(1), Integer(1)]"#
        ]],
    );
    text(
        Line::query().select((
            row_number().over(
                Over::all()
                    .partition_by(Line::ORDER_ID)
                    .order_by(Line::PRICE.desc()),
            ),
            Line::PRICE.sum().over(Over::all()),
        )),
        expect![[
            r#"SELECT row_number() OVER (PARTITION BY "order_id" ORDER BY "price" DESC), sum("price") OVER () FROM "line" []"#
        ]],
    );
}

#[test]
fn queries_inside_of_queries() {
    let dear = Line::query()
        .filter(Line::PRICE.gt(9))
        .select(Line::ORDER_ID);
    let mean = Order::query().select(Order::TOTAL.max()).as_value();
    text(
        Order::query()
            .filter(Order::ID.is_in_query(dear.clone()))
            .filter(Order::ID.not_in_query(dear.clone()))
            .filter(exists(dear))
            .filter(Order::TOTAL.nullable().eq(mean))
            .select(Order::ID),
        expect![[
            r#"SELECT "id" FROM "orders" WHERE "id" IN (SELECT "order_id" FROM "line" WHERE "price" > ?1) AND ("id" IN (SELECT "order_id" FROM "line" WHERE "price" > ?2)) IS NOT TRUE AND EXISTS (SELECT 1 FROM "line" WHERE "price" > ?3) AND "total" IS (SELECT max("total") FROM "orders") [Integer(9), Integer(9), Integer(9)]"#
        ]],
    );
}

#[test]
fn what_is_changed_may_depend_on_relations() {
    let update = Order::query()
        .filter(Order::CUSTOMER.any(Customer::NAME.eq("Ada")))
        .update()
        .set(
            Order::TOTAL,
            Order::LINES.of_all(Line::PRICE.sum()).coalesce(0),
        );
    expect![[r#"Update(UPDATE "orders" AS t0 SET "total" = anabranch_within(coalesce((SELECT sum(t1."price") FROM "line" AS t1 WHERE t1."order_id" = t0."id"), ?1), -9223372036854775808, 9223372036854775807), "version" = (t0."version" + 1) WHERE EXISTS (SELECT 1 FROM "customer" AS t2 WHERE t2."id" = t0."customer_id" AND t2."name" = ?2))"#]].assert_eq(&format!("{update:?}"));
    let delete = Line::query().order_by(Line::ID.asc()).limit(5).delete();
    expect![[r#"Delete(DELETE FROM "line" WHERE "id" IN (SELECT "id" FROM "line" ORDER BY "id" ASC LIMIT 5))"#]].assert_eq(&format!("{delete:?}"));
    let upsert = upsert(Tag {
        id: 0,
        name: "gift".into(),
    });
    expect!["Upsert { on: [1], update: None, .. }"]
        .assert_eq(&format!("{:?}", upsert.on(Tag::NAME)));
}
