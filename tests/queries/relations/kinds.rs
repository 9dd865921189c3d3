//! Every kind of relation, and what of it is read.

use anabranch::prelude::*;

use crate::world::{
    Account, Address, Club, Customer, Employee, Fixture, Line, Match, Order, Product, ProductTag,
    Remark, Shelf, Tag, Team, product, shop,
};

type Named = (String, Vec<String>);

fn named(rows: &[(&str, &[&str])]) -> Vec<Named> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    rows.iter()
        .map(|(name, of)| ((*name).to_owned(), owned(of)))
        .collect()
}

#[tokio::test]
async fn a_required_reference_leads_to_one() {
    let db = shop().await;
    let names = Order::query()
        .order_by(Order::ID.asc())
        .select((Order::ID, Order::CUSTOMER.select(Customer::NAME)));
    let bob = "O'Brien \"Bob\"".to_owned();
    let ada = "Ada".to_owned();
    gives!(
        db,
        names,
        [
            (1, ada.clone()),
            (2, ada.clone()),
            (3, bob.clone()),
            (4, ada.clone()),
            (5, "Cy".to_owned())
        ]
    );
    let whole = Order::query()
        .filter(Order::ID.eq(3))
        .with(Order::CUSTOMER)
        .with(Order::SHIP_TO);
    everywhere!(db, whole, |found| {
        let [(order, customer, Some(address))] = &found.unwrap()[..] else {
            panic!("one order")
        };
        assert_eq!((order.customer_id, customer.id, address.id), (2, 2, 3));
        assert_eq!(customer.name, "O'Brien \"Bob\"");
    });
}

#[tokio::test]
async fn an_optional_reference_leads_to_one_or_none() {
    let db = shop().await;
    let cities = Order::query()
        .order_by(Order::ID.asc())
        .select(Order::SHIP_TO.select(Address::CITY));
    let city = |text: &str| Some(text.to_owned());
    gives!(
        db,
        cities,
        [city("Ulm"), None, city("Kiel"), city("Bonn"), city("Ulm")]
    );
    let in_ulm = Order::query().order_by(Order::ID.asc()).select(
        Order::SHIP_TO
            .filter(Address::CITY.eq("Ulm"))
            .select(Address::ID),
    );
    gives!(db, in_ulm, [Some(1), None, None, None, Some(1)]);
}

#[tokio::test]
async fn has_one_leads_to_one_or_none() {
    let db = shop().await;
    let logins = Customer::query()
        .order_by(Customer::ID.asc())
        .select(Customer::ACCOUNT.select(Account::LOGIN));
    gives!(
        db,
        logins,
        [Some("ada".to_owned()), None, Some("cy".to_owned()), None]
    );
}

#[tokio::test]
async fn has_many_leads_to_all_also_by_keys_of_several_columns() {
    let db = shop().await;
    let orders = Customer::query().order_by(Customer::ID.asc()).select((
        Customer::ID,
        Customer::ORDERS
            .order_by([Order::ID.asc()])
            .select(Order::ID),
    ));
    gives!(
        db,
        orders,
        [(1, vec![1, 2, 4]), (2, vec![3]), (3, vec![5]), (4, vec![])]
    );
    let remarks = Line::query()
        .order_by([Line::ORDER_ID.asc(), Line::POSITION.asc()])
        .select((
            (Line::ORDER_ID, Line::POSITION),
            Line::REMARKS
                .order_by([Remark::ID.desc()])
                .select(Remark::ID),
        ));
    gives!(
        db,
        remarks,
        [
            ((1, 1), vec![2, 1]),
            ((1, 2), vec![]),
            ((2, 1), vec![]),
            ((4, 1), vec![]),
            ((5, 7), vec![3])
        ]
    );
    let lines = Remark::query()
        .order_by(Remark::ID.asc())
        .select(Remark::LINE.select(Line::AMOUNT));
    gives!(db, lines, [Some(2), Some(2), Some(9), None, None]);
}

#[tokio::test]
async fn many_to_many_leads_through_a_third_with_payload_and_without() {
    let db = shop().await;
    let tags = Product::query().order_by(Product::ID.asc()).select((
        Product::NAME,
        Product::TAGS.order_by([Tag::CODE.asc()]).select(Tag::CODE),
    ));
    gives!(
        db,
        tags,
        named(&[
            ("tea", &["drink", "Food"]),
            ("jam", &["Food"]),
            ("pan", &[])
        ])
    );
    let products = Tag::query().order_by(Tag::CODE.asc()).select((
        Tag::CODE,
        Tag::PRODUCTS
            .order_by([Product::ID.desc()])
            .select(Product::NAME),
    ));
    gives!(
        db,
        products,
        named(&[
            ("drink", &["tea"]),
            ("Food", &["jam", "tea"]),
            ("none", &[])
        ])
    );
    // The payload is read by the relation to the entity between them.
    let weights = Product::query().order_by(Product::ID.asc()).select(
        Product::TAGGED
            .order_by([ProductTag::WEIGHT.asc()])
            .select((ProductTag::WEIGHT, ProductTag::TAG.select(Tag::LABEL))),
    );
    let to_eat = Some("to eat".to_owned());
    gives!(
        db,
        weights,
        [
            vec![(1, to_eat.clone()), (5, None)],
            vec![(9, to_eat.clone())],
            vec![]
        ]
    );
    let shelves = Shelf::query().order_by(Shelf::ID.asc()).select((
        Shelf::ROOM,
        Shelf::PRODUCTS
            .order_by([Product::NAME.asc()])
            .select(Product::NAME),
    ));
    gives!(
        db,
        shelves,
        named(&[
            ("cellar", &["tea"]),
            ("shop", &["jam", "tea"]),
            ("empty", &[])
        ])
    );
}

#[tokio::test]
async fn a_reference_to_its_own_kind_leads_both_ways() {
    let db = shop().await;
    let family = Employee::query().order_by(Employee::ID.asc()).select((
        Employee::MANAGER.select(Employee::NAME),
        Employee::REPORTS
            .order_by([Employee::NAME.asc()])
            .select((Employee::NAME, Employee::MANAGER.select(Employee::ID))),
    ));
    let name = |name: &str| name.to_owned();
    gives!(
        db,
        family,
        [
            (None, vec![(name("mad"), Some(1)), (name("mid"), Some(1))]),
            (Some(name("top")), vec![(name("low"), Some(2))]),
            (Some(name("top")), vec![]),
            (Some(name("mid")), vec![])
        ]
    );
}

#[tokio::test]
async fn two_relations_to_one_entity_are_told_apart() {
    let db = shop().await;
    let played = Team::query().order_by(Team::ID.asc()).select((
        Team::AT_HOME.order_by([Match::ID.asc()]).select(Match::ID),
        Team::AWAY.order_by([Match::ID.asc()]).select(Match::ID),
    ));
    gives!(
        db,
        played,
        [
            (vec![1, 3], vec![2, 3]),
            (vec![2], vec![1]),
            (vec![], vec![])
        ]
    );
    let names = Match::query().order_by(Match::ID.asc()).select((
        Match::HOME.select(Team::NAME),
        Match::AWAY.select(Team::NAME),
    ));
    let pair = |home: &str, away: &str| (home.to_owned(), away.to_owned());
    gives!(
        db,
        names,
        [pair("red", "blue"), pair("blue", "red"), pair("red", "red")]
    );
    // Both have a column in common.
    let clubs = Fixture::query().order_by(Fixture::ID.asc()).select((
        Fixture::HOME_CLUB.select(Club::NAME),
        Fixture::AWAY_CLUB.select(Club::NAME),
    ));
    let club = |name: &str| Some(name.to_owned());
    gives!(
        db,
        clubs,
        [
            (club("a"), club("b")),
            (club("b"), None),
            (club("c"), club("c")),
            (None, None)
        ]
    );
    let fixtures = Club::query()
        .order_by([Club::LEAGUE.asc(), Club::NUMBER.asc()])
        .select((
            Club::AT_HOME.select(Fixture::ID),
            Club::AWAY.select(Fixture::ID),
        ));
    gives!(
        db,
        fixtures,
        [(vec![1], vec![]), (vec![2], vec![1]), (vec![3], vec![3])]
    );
}

#[tokio::test]
async fn pairs_and_tuples_nest_three_levels_deep() {
    let db = shop().await;
    let query = Customer::query()
        .order_by(Customer::ID.asc())
        .with(Customer::ACCOUNT)
        .with(
            Customer::ORDERS
                .order_by([Order::ID.asc()])
                .then(
                    Order::LINES
                        .order_by([Line::POSITION.asc()])
                        .then(Line::PRODUCT.then(Product::TAGS.order_by([Tag::CODE.asc()])))
                        .then(Line::REMARKS),
                )
                .then(Order::SHIP_TO.then(Address::CUSTOMER.then(Customer::ACCOUNT))),
        )
        .with(Customer::REFERRER.then(Customer::REFERRER.then(Customer::ADDRESSES)));
    everywhere!(db, query, |found| {
        let found = found.unwrap();
        assert_eq!(found.len(), 4);
        let (ada, account, orders, referrer) = &found[0];
        assert_eq!((ada.id, account.as_ref().unwrap().id), (1, 1));
        assert!(referrer.is_none());
        let [
            (first, lines, ship_to),
            (second, of_second, nowhere),
            (third, ..),
        ] = &orders[..]
        else {
            panic!("three orders")
        };
        assert_eq!((first.id, second.id, third.id), (1, 2, 4));
        let [(tea, (_, tags), remarks), (jam, (_, of_jam), none)] = &lines[..] else {
            panic!("two lines")
        };
        assert_eq!((tea.product_id, jam.product_id), (product(1), product(2)));
        let codes: Vec<_> = tags.iter().chain(of_jam).map(|tag| &tag.code[..]).collect();
        assert_eq!(codes, ["drink", "Food", "Food"]);
        assert_eq!((remarks.len(), none.len()), (2, 0));
        let (address, (owner, account)) = ship_to.as_ref().unwrap();
        assert_eq!((address.id, owner.id, account.is_some()), (1, 1, true));
        assert_eq!((of_second.len(), nowhere.is_none()), (1, true));
        // Di was brought by Cy, who was by Ada.
        let (_, account, orders, referrer) = &found[3];
        assert!(account.is_none() && orders.is_empty());
        let (cy, above) = referrer.as_ref().unwrap();
        let (ada, addresses) = above.as_ref().unwrap();
        assert_eq!((cy.id, ada.id, addresses.len()), (3, 1, 2));
        // Ada was brought by nobody.
        let (_, above) = found[2]
            .3
            .as_ref()
            .map(|(ada, above)| (ada.id, above))
            .unwrap();
        assert!(above.is_none());
    });
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Order)]
struct OrderView {
    id: i64,
    #[projection(from = Order::CUSTOMER.get(Customer::NAME))]
    buyer: String,
    #[projection(nested = Order::SHIP_TO)]
    ship_to: Option<Place>,
    #[projection(nested = Order::LINES.filter(Line::AMOUNT.gt(1)).order_by([Line::POSITION.desc()]).limit(1))]
    lines: Vec<LineView>,
    #[projection(from = Order::LINES.count())]
    count: i64,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Address)]
struct Place {
    city: String,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Line)]
struct LineView {
    amount: i64,
    #[projection(nested = Line::PRODUCT)]
    product: ProductView,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Product)]
struct ProductView {
    name: String,
    #[projection(nested = Product::TAGS.order_by([Tag::CODE.asc()]))]
    tags: Vec<TagView>,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Tag)]
struct TagView {
    code: String,
}

#[tokio::test]
async fn projections_nest() {
    let db = shop().await;
    let line = |amount, name: &str, codes: &[&str]| LineView {
        amount,
        product: ProductView {
            name: name.to_owned(),
            tags: (codes.iter())
                .map(|code| TagView {
                    code: (*code).to_owned(),
                })
                .collect(),
        },
    };
    let view = |id, buyer: &str, city: Option<&str>, lines, count| OrderView {
        id,
        buyer: buyer.to_owned(),
        ship_to: city.map(|city| Place {
            city: city.to_owned(),
        }),
        lines,
        count,
    };
    let expected = [
        view(
            1,
            "Ada",
            Some("Ulm"),
            vec![line(2, "tea", &["drink", "Food"])],
            2,
        ),
        view(2, "Ada", None, vec![line(5, "tea", &["drink", "Food"])], 1),
        view(3, "O'Brien \"Bob\"", Some("Kiel"), vec![], 0),
        view(4, "Ada", Some("Bonn"), vec![], 1),
        view(5, "Cy", Some("Ulm"), vec![line(9, "jam", &["Food"])], 1),
    ];
    let query = Order::query()
        .order_by(Order::ID.asc())
        .project::<OrderView>();
    gives!(db, query, expected);
    // The same below a relation.
    let below = Customer::query().order_by(Customer::ID.asc()).select(
        Customer::ORDERS
            .order_by([Order::TOTAL.desc(), Order::ID.asc()])
            .limit(1)
            .project::<OrderView>(),
    );
    everywhere!(db, below, |found| {
        let found = found.unwrap();
        let ids: Vec<_> = found
            .iter()
            .map(|orders| orders.first().map(|it| it.id))
            .collect();
        assert_eq!(ids, [Some(2), Some(3), Some(5), None]);
        assert_eq!(found[0][0], expected[1]);
    });
}
