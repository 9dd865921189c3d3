//! References whose column has another collating sequence than the key that they refer to: they are compared as the key
//! is, as foreign keys do, by every way that follows them.

use anabranch::prelude::*;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(cities: City))]
struct Country {
    #[entity(id, collate = "NOCASE")]
    code: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct City {
    #[entity(id)]
    id: i64,
    #[entity(references = Country, index, relation = country)]
    country_code: String,
}

const NAMESAKES: Relation<City, Vec<Country>> = Relation::on(City::COUNTRY_CODE, Country::CODE);

#[tokio::test]
async fn a_reference_is_compared_as_its_key_is_by_every_way() {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Country, City)>().await.unwrap();
    let mut ctx = db.context();
    for code in ["nl", "de"] {
        ctx.add(Country { code: code.into() });
    }
    for (id, code) in [(1, "NL"), (2, "nl"), (3, "De")] {
        ctx.add(City {
            id,
            country_code: code.into(),
        });
    }
    ctx.save_changes().await.unwrap();

    let countries = || Country::query().order_by(Country::CODE.asc());
    gives!(
        db,
        countries().select((Country::CODE, Country::CITIES.count())),
        [("de".to_owned(), 1), ("nl".to_owned(), 2)]
    );
    gives!(
        db,
        countries().select(Country::CITIES.order_by(City::ID.asc()).select(City::ID)),
        [vec![3], vec![1, 2]]
    );
    gives!(
        db,
        City::query()
            .order_by(City::ID.asc())
            .select((City::COUNTRY.get(Country::CODE), NAMESAKES.count())),
        [
            ("nl".to_owned(), 1),
            ("nl".to_owned(), 1),
            ("de".to_owned(), 1)
        ]
    );
    let named = City::query()
        .order_by(City::ID.asc())
        .select(NAMESAKES.select(Country::CODE));
    gives!(
        db,
        named,
        [
            vec!["nl".to_owned()],
            vec!["nl".to_owned()],
            vec!["de".to_owned()]
        ]
    );
    let nl = Country::find(&db, "NL").await.unwrap().unwrap();
    assert_eq!(Country::CITIES.of(&nl).count(&db).await.unwrap(), 2);

    let mut ctx = db.context();
    let nl = ctx.find::<Country>("nl").await.unwrap().unwrap();
    assert_eq!(
        ctx.load_related(nl, Country::CITIES).await.unwrap().len(),
        2
    );
    assert_eq!(ctx.related(nl, Country::CITIES).unwrap().len(), 2);
}
