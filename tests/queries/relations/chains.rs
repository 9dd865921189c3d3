//! Relations of several steps, against statements written by hand: whatever the number of ways to a row, it is there once.

use std::collections::{BTreeMap, HashMap};

use anabranch::{
    prelude::*,
    query::{Via, Whole, count},
    value::Value,
};
use anabranch_tests::outsider;

use crate::{
    relations::places::Counting,
    world::{
        Club, Customer, Document, DocumentLabel, Employee, Fixture, Folder, Label, Line, Match,
        Order, Product, Remark, Tag, Team, by_hand, shop, tables,
    },
};

/// What stands between customers and lines.
type ByOrders = Via<(), Vec<Order>, ()>;

const LINES: Relation<Customer, Vec<Line>, ByOrders> = Customer::ORDERS.via(Order::LINES);
const BOUGHT: Relation<Customer, Vec<Product>, Via<ByOrders, Vec<Line>, ()>> =
    LINES.via(Line::PRODUCT);
const BUYER: Relation<Line, Customer, Via<(), Order, ()>> = Line::ORDER.via(Order::CUSTOMER);
const BOSS_OF_BOSS: Relation<Employee, Option<Employee>, Via<(), Option<Employee>, ()>> =
    Employee::MANAGER.via(Employee::MANAGER);

/// A shop with many ways from anything to anything.
async fn crowded() -> Database {
    let db = tables().await;
    let fill = r#"
        CREATE TEMP TABLE n (i); WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60) INSERT INTO n SELECT i FROM c;
        INSERT INTO customer SELECT i, 'c' || i, CASE WHEN i > 3 AND i % 4 THEN i / 3 END FROM n WHERE i <= 20;
        INSERT INTO address SELECT i, i, 'city' || i FROM n WHERE i <= 9;
        INSERT INTO "order's ""list""" SELECT i, i * 7 % 19 + 1, CASE WHEN i % 3 THEN i % 9 + 1 END, i FROM n;
        INSERT INTO product SELECT CAST('000000000000000' || i AS BLOB), 'p' || i FROM n WHERE i <= 7;
        INSERT INTO line SELECT i * 11 % 50 + 1, i, CAST('000000000000000' || (i * i % 6 + 1) AS BLOB), i, i % 5 FROM n;
        INSERT INTO line SELECT i * 13 % 50 + 1, i + 100, CAST('000000000000000' || (i % 4 + 1) AS BLOB), i, NULL FROM n;
        INSERT INTO remark SELECT i, i * 11 % 50 + 1, i, 'r' || i FROM n WHERE i % 2;
        INSERT INTO remark SELECT i + 100, i * 11 % 50 + 1, i, 's' || i FROM n WHERE i % 3 = 0;
        INSERT INTO remark SELECT i + 200, NULL, i, 'lost' FROM n WHERE i < 5;
        INSERT INTO tag SELECT 'Tag' || i, NULL FROM n WHERE i <= 6;
        INSERT INTO product_tag SELECT DISTINCT CAST('000000000000000' || (i % 7 + 1) AS BLOB), CASE WHEN i % 2 THEN 'TAG' ELSE 'tag' END || (i % 5 + 1), i FROM n WHERE i <= 20;
        INSERT INTO employee SELECT i, 'e' || i, i, CASE WHEN i > 2 THEN i / 2 END FROM n WHERE i <= 25;
        INSERT INTO team SELECT i, 't' || i FROM n WHERE i <= 6;
        INSERT INTO matches SELECT i, i % 5 + 1, i * i % 4 + 1, i FROM n WHERE i <= 40;
        INSERT INTO club SELECT i % 2, i, 'k' || i FROM n WHERE i <= 8;
        INSERT INTO fixture SELECT i, i % 2, i % 8 + (i % 8 + i) % 2 , NULL FROM n WHERE i % 8 AND i <= 40;
        UPDATE fixture SET home = CASE WHEN home % 2 = league AND home BETWEEN 1 AND 8 THEN home END;
        UPDATE fixture SET away = (SELECT max(number) FROM club WHERE club.league = fixture.league AND number <= fixture.id % 7 + 1);
        INSERT INTO folder SELECT i, 1 + (i % 5 = 0), i % 6 = 0 FROM n WHERE i <= 12;
        INSERT INTO document SELECT i, 1 + (i % 4 = 0), i % 7 = 0, i % 12 + 1, CASE WHEN i % 3 THEN i * 5 % 12 + 1 END FROM n;
        INSERT INTO label SELECT i, 'l' || i, i % 3 = 0 FROM n WHERE i <= 8;
        INSERT OR IGNORE INTO document_label SELECT i, i * i % 8 + 1, i % 5 = 0 FROM n;
        INSERT OR IGNORE INTO document_label SELECT i, i * 3 % 8 + 1, i % 4 = 0 FROM n;
    "#;
    let connection = outsider(db.path());
    connection.execute_batch(fill).unwrap();
    let mut broken = connection.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(!broken.exists([]).unwrap());
    db
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => panic!("{other:?} is no text"),
    }
}

/// What a relation leads to is what the statement by hand gives, as pairs of names, in every question.
macro_rules! ways {
    ($db:expr, $relation:expr, $from:ty as $start:expr, $to:ty as $end:expr, $is:expr, $order:expr, $sql:expr) => {{
        let db: &Database = &$db;
        let start: fn(&$from) -> String = $start;
        let end: fn(&$to) -> String = $end;
        let is: fn(&$to) -> Condition<$to> = $is;
        let relation = || $relation;
        let starts = <$from>::query().without_filters();
        let all = <$to>::query()
            .without_filters()
            .order_by($order)
            .all(db)
            .await
            .unwrap();
        let ranks: HashMap<_, _> = all.iter().map(end).zip(0..).collect();
        let mut expected = BTreeMap::new();
        for entity in starts.clone().all(db).await.unwrap() {
            expected.insert(start(&entity), Vec::new());
        }
        for row in by_hand(db, $sql) {
            expected
                .get_mut(&text(&row[0]))
                .unwrap()
                .push(text(&row[1]));
        }
        for of_one in expected.values_mut() {
            of_one.sort_by_key(|name| ranks[name]);
        }
        assert!(
            expected.values().any(|of_one| of_one.len() > 1),
            "too little to see anything"
        );

        let counting = Counting::new(db);
        let names = |found: &Vec<$to>| found.iter().map(end).collect::<Vec<_>>();
        let map = |found: Vec<($from, Vec<$to>)>| {
            found
                .iter()
                .map(|(from, to)| (start(from), names(to)))
                .collect::<BTreeMap<_, _>>()
        };
        // Read along, and afterwards.
        let read = starts
            .clone()
            .with(relation().order_by($order))
            .all(&counting)
            .await
            .unwrap();
        assert_eq!(counting.take(), 2);
        let entities: Vec<$from> = read.iter().map(|(entity, _)| entity.clone()).collect();
        let along: Vec<_> = read.iter().map(|(_, of_one)| of_one.clone()).collect();
        assert_eq!(map(read), expected);
        let later = relation()
            .order_by($order)
            .of_each(&entities)
            .all(&counting)
            .await
            .unwrap();
        assert_eq!((counting.take(), &later), (1, &along));
        let mut unsorted = relation().of_each(&entities).all(db).await.unwrap();
        for of_one in &mut unsorted {
            of_one.sort_by_key(|found| ranks[&end(found)]);
        }
        assert_eq!(unsorted, along);
        // Part of them for each.
        for (offset, limit) in [(0, 1), (1, 1), (1, 2), (0, 0)] {
            let part = relation().order_by($order).offset(offset).limit(limit);
            let found = map(starts.clone().with(part).all(db).await.unwrap());
            let (offset, limit) = (
                usize::try_from(offset).unwrap(),
                usize::try_from(limit).unwrap(),
            );
            for (name, of_one) in &found {
                let part = expected[name].iter().skip(offset).take(limit);
                assert!(
                    part.eq(of_one),
                    "{name}: {of_one:?} of {:?}",
                    expected[name]
                );
            }
        }
        // Computed.
        let computed = (
            Whole,
            relation().count(),
            relation().of_all(count()),
            relation().exists().as_bool(),
        );
        for (entity, counted, aggregated, exists) in
            starts.clone().select(computed).all(db).await.unwrap()
        {
            let of_one = i64::try_from(expected[&start(&entity)].len()).unwrap();
            assert_eq!((counted, aggregated, exists), (of_one, of_one, of_one > 0));
        }
        // Asked about each.
        for other in &all {
            let name = end(other);
            let asks = async |asked| {
                let found = starts.clone().filter(asked).all(db).await.unwrap();
                found
                    .iter()
                    .map(start)
                    .collect::<std::collections::BTreeSet<_>>()
            };
            let which = |fulfils: &dyn Fn(&Vec<String>) -> bool| {
                expected
                    .iter()
                    .filter(|(_, of_one)| fulfils(of_one))
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            assert_eq!(
                asks(relation().any(is(other))).await,
                which(&|of_one| of_one.contains(&name))
            );
            assert_eq!(
                asks(relation().none(is(other))).await,
                which(&|of_one| !of_one.contains(&name))
            );
            assert_eq!(
                asks(relation().all(is(other))).await,
                which(&|of_one| of_one.iter().all(|it| *it == name))
            );
            let filtered = relation().filter(is(other)).count().eq(1);
            assert_eq!(
                asks(filtered).await,
                which(&|of_one| of_one.contains(&name))
            );
        }
        // Tracked.
        let mut ctx = db.context();
        let tracked = starts
            .clone()
            .with(relation().order_by($order))
            .load(&mut ctx)
            .await
            .unwrap();
        for (handle, of_one) in tracked {
            let found: Vec<_> = of_one.iter().map(|it| end(&ctx[*it])).collect();
            assert_eq!(found, expected[&start(&ctx[handle])]);
        }
    }};
}

/// And the query from one entity.
macro_rules! from_each {
    ($db:expr, $relation:expr, $from:ty, $order:expr) => {{
        let read = <$from>::query()
            .with($relation.order_by($order))
            .all(&$db)
            .await
            .unwrap();
        for (entity, expected) in read {
            let query = $relation.of(&entity);
            assert_eq!(
                query.clone().order_by($order).all(&$db).await.unwrap(),
                expected
            );
            assert_eq!(query.count(&$db).await.unwrap(), expected.len() as u64);
        }
    }};
}

const ORDERS: &str = r#""order's ""list""""#;

#[tokio::test]
async fn several_steps_lead_to_what_joins_lead_to() {
    for db in [shop().await, crowded().await] {
        let lines = format!(
            r#"SELECT o."customer's ""id""", l.order_id || '/' || l.position FROM {ORDERS} AS o JOIN line AS l ON l.order_id = o.id"#
        );
        ways!(
            db, LINES, Customer as |it| it.id.to_string(), Line as |it| format!("{}/{}", it.order_id, it.position),
            |it| Line::ORDER_ID.eq(it.order_id).and(Line::POSITION.eq(it.position)),
            [Line::AMOUNT.desc(), Line::POSITION.asc()], &lines
        );
        from_each!(
            db,
            LINES,
            Customer,
            [Line::AMOUNT.desc(), Line::POSITION.asc()]
        );
        let bought = format!(
            r#"SELECT DISTINCT o."customer's ""id""", p.name FROM {ORDERS} AS o JOIN line AS l ON l.order_id = o.id JOIN product AS p ON p.id = l.product_id"#
        );
        ways!(
            db, BOUGHT, Customer as |it| it.id.to_string(), Product as |it| it.name.clone(), |it| Product::ID.eq(it.id),
            [Product::NAME.desc()], &bought
        );
        from_each!(db, BOUGHT, Customer, [Product::NAME.desc()]);
        let remarks = "SELECT r.id, s.id FROM remark AS r JOIN remark AS s ON s.order_id = r.order_id AND s.position = r.position";
        ways!(
            db, Remark::LINE.via(Line::REMARKS), Remark as |it| it.id.to_string(), Remark as |it| it.id.to_string(),
            |it| Remark::ID.eq(it.id), [Remark::TEXT.asc()], remarks
        );
        from_each!(
            db,
            Remark::LINE.via(Line::REMARKS),
            Remark,
            [Remark::TEXT.asc()]
        );
    }
}

#[tokio::test]
async fn join_entities_are_steps_as_well() {
    let db = crowded().await;
    let tagged = format!(
        r#"SELECT DISTINCT o."customer's ""id""", t.code FROM {ORDERS} AS o JOIN line AS l ON l.order_id = o.id
           JOIN product_tag AS p ON p.product_id = l.product_id JOIN tag AS t ON t.code = p.tag_code"#
    );
    let name = |it: &Customer| it.id.to_string();
    // Whichever are put together first.
    ways!(
        db, BOUGHT.via(Product::TAGS), Customer as name, Tag as |it| it.code.clone(), |it| Tag::CODE.eq(it.code.clone()),
        [Tag::CODE.desc()], &tagged
    );
    ways!(
        db, Customer::ORDERS.via(Order::LINES.via(Line::PRODUCT.via(Product::TAGS))), Customer as name,
        Tag as |it| it.code.clone(), |it| Tag::CODE.eq(it.code.clone()), [Tag::CODE.desc()], &tagged
    );
    from_each!(db, BOUGHT.via(Product::TAGS), Customer, [Tag::CODE.desc()]);
    // From a text key of which the case does not matter, and back to it.
    let together = "SELECT DISTINCT t.code, u.code FROM tag AS t JOIN product_tag AS p ON p.tag_code = t.code
                    JOIN product_tag AS q ON q.product_id = p.product_id JOIN tag AS u ON u.code = q.tag_code";
    ways!(
        db, Tag::PRODUCTS.via(Product::TAGS), Tag as |it| it.code.clone(), Tag as |it| it.code.clone(),
        |it| Tag::CODE.eq(it.code.clone()), [Tag::CODE.asc()], together
    );
    from_each!(db, Tag::PRODUCTS.via(Product::TAGS), Tag, [Tag::CODE.asc()]);
}

#[tokio::test]
async fn entities_that_refer_to_their_own_kind_lead_on_as_often_as_asked() {
    let db = crowded().await;
    let name = |it: &Employee| it.id.to_string();
    let below = "SELECT b.id, e.id FROM employee AS b JOIN employee AS m ON m.manager_id = b.id JOIN employee AS e ON e.manager_id = m.id";
    ways!(
        db,
        Employee::REPORTS.via(Employee::REPORTS),
        Employee as name,
        Employee as name,
        |it| Employee::ID.eq(it.id),
        [Employee::ID.desc()],
        below
    );
    let equals =
        "SELECT e.id, o.id FROM employee AS e JOIN employee AS o ON o.manager_id = e.manager_id";
    ways!(
        db,
        Employee::MANAGER.via(Employee::REPORTS),
        Employee as name,
        Employee as name,
        |it| Employee::ID.eq(it.id),
        [Employee::PAY.desc()],
        equals
    );
    let hosts = "SELECT DISTINCT home_id, away_id FROM matches";
    ways!(
        db, Team::AT_HOME.via(Match::AWAY), Team as |it| it.id.to_string(), Team as |it| it.id.to_string(),
        |it| Team::ID.eq(it.id), [Team::ID.desc()], hosts
    );
    let met = "SELECT DISTINCT h.league || '/' || h.home, h.league || '/' || h.away FROM fixture AS h WHERE home > 0 AND away > 0";
    let club = |it: &Club| format!("{}/{}", it.league, it.number);
    ways!(
        db,
        Club::AT_HOME.via(Fixture::AWAY_CLUB),
        Club as club,
        Club as club,
        |it| Club::LEAGUE.eq(it.league).and(Club::NUMBER.eq(it.number)),
        [Club::NAME.desc()],
        met
    );
    from_each!(
        db,
        Club::AT_HOME.via(Fixture::AWAY_CLUB),
        Club,
        [Club::NAME.desc()]
    );
}

#[tokio::test]
async fn filters_of_the_entities_between_hold_until_they_are_lifted() {
    let db = crowded().await;
    let labels = || Folder::DOCUMENTS.via(Document::LABELS);
    let sql = |conditions: &str| {
        format!(
            "SELECT DISTINCT d.folder_id, l.id FROM document AS d JOIN document_label AS j ON j.document_id = d.id
             JOIN label AS l ON l.id = j.label_id WHERE {conditions}"
        )
    };
    macro_rules! labels {
        ($relation:expr, $conditions:expr) => {
            ways!(
                db, $relation, Folder as |it| it.id.to_string(), Label as |it| it.id.to_string(), |it| Label::ID.eq(it.id),
                [Label::ID.desc()], &sql($conditions)
            );
        };
    }
    labels!(
        labels(),
        "NOT d.deleted AND d.tenant = 1 AND NOT j.detached AND NOT l.deleted"
    );
    labels!(
        labels().without_filter("live"),
        "d.tenant = 1 AND NOT j.detached"
    );
    labels!(
        labels().without_filter("tenant"),
        "NOT d.deleted AND NOT j.detached AND NOT l.deleted"
    );
    labels!(
        labels().without_filter("attached"),
        "NOT d.deleted AND d.tenant = 1 AND NOT l.deleted"
    );
    labels!(labels().without_filters(), "TRUE");
    from_each!(db, labels(), Folder, [Label::ID.desc()]);
    fails!(
        db,
        Folder::query().with(labels().without_filter("hidden")),
        Model,
        "hidden"
    );
    let whole = labels()
        .then(Label::ID.eq(1).as_bool())
        .order_by([Label::ID.asc()]);
    let read = Folder::query().with(whole).all(&db).await.unwrap();
    assert!(
        read.iter()
            .flat_map(|(_, of_one)| of_one)
            .all(|(label, is)| *is == (label.id == 1))
    );
    // What is always there is there whatever its filters say; else they hold, at the end as well.
    let originals = DocumentLabel::query().without_filters();
    let through_copy = Document::COPY_OF.via(Folder::DOCUMENTS);
    let asked = Document::query()
        .without_filters()
        .filter(through_copy.exists());
    let expected = "SELECT count(*) FROM document AS d WHERE EXISTS (SELECT 1 FROM folder AS f JOIN document AS e ON e.folder_id = f.id
        WHERE f.id = d.copied_from AND NOT f.deleted AND f.tenant = 1 AND NOT e.deleted AND e.tenant = 1)";
    let counted = asked.count(&db).await.unwrap();
    assert_eq!(text(&by_hand(&db, expected)[0][0]), counted.to_string());
    let beside = Document::FOLDER.via(Folder::DOCUMENTS);
    let asked = Document::query().without_filters().filter(beside.exists());
    let expected = "SELECT count(*) FROM document AS d WHERE EXISTS (SELECT 1 FROM document AS e
        WHERE e.folder_id = d.folder_id AND NOT e.deleted AND e.tenant = 1)";
    assert_eq!(
        text(&by_hand(&db, expected)[0][0]),
        asked.count(&db).await.unwrap().to_string()
    );
    assert!(originals.count(&db).await.unwrap() > 0);
}

#[tokio::test]
async fn steps_to_one_lead_to_one() {
    for db in [shop().await, crowded().await] {
        let names = "SELECT l.order_id, l.position, c.name FROM line AS l JOIN \"order's \"\"list\"\"\" AS o ON o.id = l.order_id
                     JOIN customer AS c ON c.id = o.\"customer's \"\"id\"\"\" ORDER BY 1, 2";
        let expected: Vec<_> = by_hand(&db, names)
            .iter()
            .map(|row| text(&row[2]))
            .collect();
        let query = Line::query().order_by([Line::ORDER_ID.asc(), Line::POSITION.asc()]);
        let counting = Counting::new(&db);
        let read = query.clone().with(BUYER).all(&counting).await.unwrap();
        assert_eq!(counting.take(), 1);
        let (lines, buyers): (Vec<Line>, Vec<Customer>) = read.into_iter().unzip();
        assert!(buyers.iter().map(|it| &it.name).eq(&expected));
        assert_eq!(BUYER.of_each(&lines).all(&counting).await.unwrap(), buyers);
        assert_eq!(counting.take(), 1);
        gives!(
            db,
            query.clone().select(BUYER.get(Customer::NAME)),
            expected
        );
        assert_eq!(BUYER.of(&lines[0]).one(&db).await.unwrap(), buyers[0]);

        let bosses =
            "SELECT e.id, b.id FROM employee AS e LEFT JOIN employee AS m ON m.id = e.manager_id
                      LEFT JOIN employee AS b ON b.id = m.manager_id ORDER BY 1";
        let expected: Vec<_> = by_hand(&db, bosses)
            .into_iter()
            .map(|row| {
                if let Value::Integer(id) = row[1] {
                    Some(id)
                } else {
                    None
                }
            })
            .collect();
        let query = Employee::query().order_by([Employee::ID.asc()]);
        gives!(
            db,
            query.clone().select(BOSS_OF_BOSS.get(Employee::ID)),
            expected
        );
        let read = query
            .clone()
            .with(BOSS_OF_BOSS)
            .all(&counting)
            .await
            .unwrap();
        assert_eq!(counting.take(), 1);
        assert!(
            read.iter()
                .map(|(_, boss)| boss.as_ref().map(|boss| boss.id))
                .eq(expected.iter().copied())
        );
        let employees: Vec<_> = read.iter().map(|(employee, _)| employee.clone()).collect();
        let later = BOSS_OF_BOSS.of_each(&employees).all(&db).await.unwrap();
        assert!(later.iter().eq(read.iter().map(|(_, boss)| boss)));
        let rich = BOSS_OF_BOSS
            .filter(Employee::PAY.gt(50))
            .select(Employee::ID);
        let rich: Vec<_> = query.clone().with(rich).all(&db).await.unwrap();
        let pays: HashMap<_, _> = employees.iter().map(|it| (it.id, it.pay)).collect();
        let filtered = expected
            .iter()
            .map(|boss| boss.filter(|boss| pays[boss] > 50));
        assert!(rich.iter().map(|(_, boss)| *boss).eq(filtered));
        let counted = query
            .filter(BOSS_OF_BOSS.any(Employee::ID.eq(1)))
            .count(&db)
            .await
            .unwrap();
        assert_eq!(
            counted,
            expected.iter().filter(|boss| **boss == Some(1)).count() as u64
        );
        // Sorted by it, and with a step to an `Option` first.
        let city: Vec<Option<i64>> = Line::query()
            .select(
                Line::ORDER
                    .via(Order::SHIP_TO)
                    .via(crate::world::Address::CUSTOMER)
                    .get(Customer::ID),
            )
            .order_by([BUYER.get(Customer::NAME).asc()])
            .all(&db)
            .await
            .unwrap();
        assert!(city.contains(&None) && city.iter().any(Option::is_some));
    }
}

#[tokio::test]
async fn sums_take_each_entity_once() {
    let db = crowded().await;
    let sums = Team::AT_HOME.via(Match::AWAY).of_all(Team::ID.sum());
    let found = Team::query()
        .order_by([Team::ID.asc()])
        .select(sums)
        .all(&db)
        .await
        .unwrap();
    let by_hand = by_hand(
        &db,
        "SELECT (SELECT sum(away_id) FROM (SELECT DISTINCT away_id FROM matches WHERE home_id = team.id)) FROM team ORDER BY id",
    );
    let expected = by_hand.iter().map(|row| {
        if let Value::Integer(sum) = row[0] {
            Some(sum)
        } else {
            None
        }
    });
    assert!(found.into_iter().eq(expected));
    // Of those that fulfil something, beside others, and where it is not the first table that is asked.
    let dear = BOUGHT
        .filter(Product::NAME.ne("p1").and(Product::TAGS.exists()))
        .of_all(Product::NAME.max());
    let found = Order::query()
        .order_by([Order::ID.asc()])
        .select((Order::ID, Order::CUSTOMER.get(dear)))
        .all(&db)
        .await
        .unwrap();
    let expected = crate::world::by_hand(
        &db,
        r#"SELECT o.id, (SELECT max(p.name) FROM "order's ""list""" AS q JOIN line AS l ON l.order_id = q.id JOIN product AS p ON p.id = l.product_id
           WHERE q."customer's ""id""" = o."customer's ""id""" AND p.name <> 'p1' AND EXISTS (SELECT 1 FROM product_tag AS t WHERE t.product_id = p.id))
           FROM "order's ""list""" AS o ORDER BY 1"#,
    );
    assert!(
        found
            .iter()
            .map(|(_, name)| name.clone())
            .eq(expected.iter().map(|row| match &row[1] {
                Value::Null => None,
                name => Some(text(name)),
            }))
    );
}

#[tokio::test]
async fn what_is_below_a_relation_of_several_steps_is_read_with_it() {
    let db = crowded().await;
    let counting = Counting::new(&db);
    let below = BOUGHT
        .order_by([Product::NAME.asc()])
        .then(Product::TAGS.order_by([Tag::CODE.asc()]));
    let read = Customer::query()
        .with(Customer::REFERRED.then(below.clone()))
        .with(below)
        .all(&counting)
        .await
        .unwrap();
    assert_eq!(counting.take(), 6);
    let of_each: BTreeMap<_, _> = read
        .iter()
        .map(|(customer, _, bought)| (customer.id, bought))
        .collect();
    for (customer, referred, _) in &read {
        for (other, bought) in referred {
            assert_eq!(
                (other.referrer_id, bought),
                (Some(customer.id), of_each[&other.id])
            );
        }
    }
    assert!(
        of_each
            .values()
            .any(|bought| bought.iter().any(|(_, tags)| tags.len() > 1))
    );
    // A value of another row in it, and in the order.
    let last = LINES.order_by([Line::PRODUCT.get(Product::NAME).desc(), Line::AMOUNT.asc()]);
    let last = last
        .limit(1)
        .select((Line::PRODUCT.get(Product::NAME), BUYER.get(Customer::ID)));
    for (customer, last) in Customer::query().with(last).all(&db).await.unwrap() {
        let greatest = of_each[&customer.id]
            .last()
            .map(|(product, _)| (product.name.clone(), customer.id));
        assert_eq!(last.into_iter().next(), greatest);
    }
}

#[tokio::test]
async fn rows_are_changed_where_several_steps_lead_to_others() {
    let db = crowded().await;
    let count = "SELECT count(*) FROM employee AS e JOIN employee AS m ON m.id = e.manager_id JOIN employee AS b ON b.id = m.manager_id WHERE b.pay > 2";
    let expected = text(&by_hand(&db, count)[0][0]);
    let above = Employee::query().filter(BOSS_OF_BOSS.any(Employee::PAY.gt(2)));
    let changed = above
        .update()
        .set(Employee::NAME, "far below")
        .execute(&db)
        .await
        .unwrap();
    assert_eq!(changed.to_string(), expected);
    let count = "SELECT count(DISTINCT home_id) FROM matches WHERE away_id = 3";
    let expected = text(&by_hand(&db, count)[0][0]);
    let played = Team::query().filter(Team::AT_HOME.via(Match::AWAY).any(Team::ID.eq(3)));
    let changed = played
        .update()
        .set(Team::NAME, "seen")
        .execute(&db)
        .await
        .unwrap();
    assert_eq!(changed.to_string(), expected);
}

#[tokio::test]
async fn eight_relations_may_follow_one_another() {
    let db = tables().await;
    outsider(db.path())
        .execute_batch("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12) INSERT INTO employee SELECT i, 'e', i, nullif(i - 1, 0) FROM n")
        .unwrap();
    let four = BOSS_OF_BOSS.via(BOSS_OF_BOSS);
    let eight = four.via(four);
    let read = Employee::query()
        .order_by([Employee::ID.asc()])
        .select((Employee::ID, eight.get(Employee::ID)));
    for (id, far_above) in read.all(&db).await.unwrap() {
        assert_eq!(far_above, (id > 8).then_some(id - 8));
    }
    let nine = eight.via(Employee::MANAGER);
    fails!(
        db,
        Employee::query().filter(nine.exists()),
        Refused,
        "eight"
    );
    fails!(
        db,
        Employee::query().with(nine.via(eight)),
        Refused,
        "eight"
    );
}

#[tokio::test]
async fn a_required_row_beyond_one_that_is_not_there_is_an_error() {
    let db = shop().await;
    let lines = Line::query().all(&db).await.unwrap();
    let connection = outsider(db.path());
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM customer WHERE id = 3; DELETE FROM product WHERE name = 'jam'")
        .unwrap();
    fails!(db, Line::query().with(BUYER), NotFound, "Customer");
    let error = BUYER.of_each(&lines).all(&db).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    // What refers to nothing leads nowhere.
    let tags = Order::query()
        .with(Order::LINES.via(Line::PRODUCT))
        .all(&db)
        .await
        .unwrap();
    assert!(
        tags.iter()
            .all(|(_, products)| products.iter().all(|it| it.name == "tea"))
    );
    let counted = Order::query().select((
        Order::LINES.count(),
        Order::LINES.via(Line::PRODUCT).count(),
    ));
    assert_eq!(
        counted.order_by([Order::ID.asc()]).all(&db).await.unwrap()[0],
        (2, 1)
    );
}
