//! What the derives make of the attributes of relations, named filters and projections: the types of the constants, and
//! that each leads where it says.

use anabranch::{
    entity::{Entity, EntityEmbed, References},
    error::Result,
    prelude::Database,
    query::{Condition, Projection, Relation},
    value::Json,
};
use anabranch_tests::Mode;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    has_many(members: Member),
    has_one(badge: Badge),
    has_many(at_home: Match, by = home_id),
    has_many(away: Match, by = visitor),
    has_many(rivals: Team, through = Match, by = home_id, to = visitor),
    has_many(sponsors: Sponsor, through = Contract),
    filter(named = Team::named),
    filter(first = first)
)]
struct Team {
    #[entity(id)]
    id: i64,
    name: String,
}

impl Team {
    fn named() -> Condition<Self> {
        Self::NAME.ne("")
    }
}

fn first() -> Condition<Team> {
    Team::ID.lt(100)
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Person {
    name: String,
    /// Makes no relation.
    #[entity(references = Badge)]
    badge_id: Option<i64>,
}

/// The columns of an embedded struct stand before those that refer.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(pupils: Self), has_many(tutored: Member, by = tutor_id), has_many(notes: Note, by = author))]
struct Member {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    person: Person,
    #[entity(references = Team)]
    team_id: i64,
    #[entity(references = Member, relation = mentor)]
    tutor_id: Option<i64>,
    #[entity(scale = 1)]
    height: rust_decimal::Decimal,
    #[entity(json)]
    tags: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Badge {
    #[entity(id, references = Team)]
    team_id: i64,
    colour: String,
}

/// Two references to one entity.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Match {
    #[entity(id, references = Team)]
    home_id: i64,
    #[entity(id, references = Team)]
    visitor: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Sponsor {
    #[entity(id)]
    id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(clauses: Clause))]
struct Contract {
    #[entity(id, references = Team)]
    team_id: i64,
    #[entity(id, references = Sponsor)]
    sponsor_id: i64,
}

/// Of two foreign keys one column is the same.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(
    foreign_key(columns(team, sponsor), references = Contract, relation = contract),
    foreign_key(columns(team, visitor), references = Match, relation = game),
    foreign_key(columns(team), references = Team)
)]
struct Clause {
    #[entity(id)]
    id: i64,
    team: i64,
    sponsor: i64,
    visitor: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Note {
    #[entity(id)]
    id: i64,
    #[entity(references = Member)]
    author: i64,
}

#[test]
fn relations_are_typed_as_their_ends() {
    let _: Relation<Member, Team> = Member::TEAM;
    let _: Relation<Member, Option<Member>> = Member::MENTOR;
    let _: Relation<Member, Vec<Member>> = Member::TUTORED;
    let _: Relation<Team, Vec<Member>> = Team::MEMBERS;
    let _: Relation<Team, Option<Badge>> = Team::BADGE;
    let _: Relation<Badge, Team> = Badge::TEAM;
    let _: Relation<Team, Vec<Sponsor>, Contract> = Team::SPONSORS;
    let _: Relation<Team, Vec<Team>, Match> = Team::RIVALS;
    let _: Relation<Clause, Contract> = Clause::CONTRACT;
    let _: Relation<Clause, Option<Match>> = Clause::GAME;
}

#[test]
fn a_reference_is_known_by_the_column_that_tells_it_from_others() {
    assert_eq!(<Member as References<Team>>::BY, Member::TEAM_ID.index());
    assert_eq!(<Member as References<Team>>::BY, 3);
    assert_eq!(<Member as References<Member>>::BY, Member::TUTOR_ID.index());
    assert_eq!(
        <Clause as References<Contract>>::BY,
        Clause::SPONSOR.index()
    );
    assert_eq!(<Clause as References<Match>>::BY, Clause::VISITOR.index());
    assert_eq!(<Clause as References<Team>>::BY, Clause::TEAM.index());
}

#[test]
fn filters_are_in_the_definition() {
    let names: Vec<_> = Team::TABLE
        .filters
        .iter()
        .map(|filter| filter.name)
        .collect();
    assert_eq!(names, ["named", "first"]);
    for filter in Team::TABLE.filters {
        assert!((filter.condition)().is::<Condition<Team>>());
    }
    assert!(Member::TABLE.filters.is_empty());
}

/// Two teams that played each other, their members, a sponsor, and a team that the filters leave out.
async fn league() -> Result<Database> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Team, Member, Badge, Match, Sponsor, Contract, Clause, Note)>()
        .await?;
    let mut ctx = db.context();
    for (id, name) in [(1, "reds"), (2, "blues"), (3, "")] {
        ctx.add(Team {
            id,
            name: name.to_owned(),
        });
    }
    ctx.add(Badge {
        team_id: 1,
        colour: "red".to_owned(),
    });
    ctx.add(Match {
        home_id: 1,
        visitor: 2,
    });
    ctx.add(Match {
        home_id: 2,
        visitor: 3,
    });
    ctx.add(Sponsor { id: 7 });
    ctx.add(Contract {
        team_id: 2,
        sponsor_id: 7,
    });
    ctx.add(Clause {
        id: 1,
        team: 2,
        sponsor: 7,
        visitor: None,
    });
    ctx.add(Clause {
        id: 2,
        team: 2,
        sponsor: 7,
        visitor: Some(3),
    });
    for (id, team_id, tutor_id) in [(1, 1, None), (2, 1, Some(1)), (3, 2, Some(1))] {
        ctx.add(Member {
            id,
            person: Person {
                name: format!("m{id}"),
                badge_id: None,
            },
            team_id,
            tutor_id,
            height: rust_decimal::Decimal::new(18 + id, 1),
            tags: (id == 2).then(|| vec!["new".to_owned()]),
        });
    }
    ctx.add(Note { id: 1, author: 3 });
    ctx.save_changes().await?;
    Ok(db)
}

#[tokio::test]
async fn every_relation_leads_where_its_attribute_says() -> Result<()> {
    let db = league().await?;
    let reds = Team::query().filter(Team::ID.eq(1));
    let (_, members) = reds.clone().with(Team::MEMBERS).one(&db).await?;
    assert_eq!(members.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 2]);
    let (_, badge, rivals) = reds
        .clone()
        .with(Team::BADGE)
        .with(Team::RIVALS)
        .one(&db)
        .await?;
    assert_eq!(badge.unwrap().colour, "red");
    assert_eq!(rivals[0].name, "blues");
    let (_, at_home, away) = reds.with(Team::AT_HOME).with(Team::AWAY).one(&db).await?;
    assert_eq!((at_home.len(), away.len()), (1, 0));

    let blues = Team::query().filter(Team::ID.eq(2));
    let (_, badge, sponsors) = blues
        .clone()
        .with(Team::BADGE)
        .with(Team::SPONSORS)
        .one(&db)
        .await?;
    assert_eq!((badge, sponsors), (None, vec![Sponsor { id: 7 }]));

    let second = Member::query().filter(Member::ID.eq(2));
    let (_, team, mentor) = second
        .clone()
        .with(Member::TEAM)
        .with(Member::MENTOR)
        .one(&db)
        .await?;
    assert_eq!((team.id, mentor.unwrap().id), (1, 1));
    let first = Member::query().filter(Member::ID.eq(1));
    let (_, pupils, tutored) = first
        .with(Member::PUPILS)
        .with(Member::TUTORED)
        .one(&db)
        .await?;
    assert_eq!(pupils, tutored);
    assert_eq!(pupils.iter().map(|it| it.id).collect::<Vec<_>>(), [2, 3]);
    let wrote = Member::query().filter(Member::NOTES.exists());
    assert_eq!(wrote.one(&db).await?.id, 3);

    let clauses = Clause::query().with(Clause::CONTRACT).with(Clause::GAME);
    let clauses = clauses.order_by(Clause::ID.asc()).all(&db).await?;
    assert_eq!((clauses[0].1.sponsor_id, &clauses[0].2), (7, &None));
    assert_eq!(
        clauses[1].2,
        Some(Match {
            home_id: 2,
            visitor: 3
        })
    );
    let (_, clauses) = Contract::query().with(Contract::CLAUSES).one(&db).await?;
    assert_eq!(clauses.len(), 2);
    Ok(())
}

#[tokio::test]
async fn declared_filters_are_applied_and_lifted() -> Result<()> {
    let db = league().await?;
    assert_eq!(Team::query().count(&db).await?, 2);
    let all = Team::query().without_filter("named");
    assert_eq!(all.count(&db).await?, 3);
    Ok(())
}

/// More fields than one tuple holds.
#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Member)]
struct MemberRow {
    id: i64,
    #[projection(from = Member::PERSON.then(Person::NAME))]
    name: String,
    #[projection(scale = 1)]
    height: rust_decimal::Decimal,
    #[projection(json)]
    tags: Option<Vec<String>>,
    #[projection(from = Member::TAGS)]
    wrapped: Option<Json<Vec<String>>>,
    #[projection(from = Member::ID * 2)]
    twice: i64,
    #[projection(from = Member::TEAM.get(Team::NAME))]
    of: String,
    team_id: i64,
    #[projection(nested = Member::TEAM)]
    team: TeamRow,
    #[projection(nested = Member::MENTOR)]
    mentor: Option<Mentor>,
    #[projection(nested = Member::PUPILS.filter(Member::ID.gt(1)).order_by(Member::ID.desc()))]
    pupils: Vec<Mentor>,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Team)]
struct TeamRow {
    name: String,
    #[projection(nested = Team::BADGE)]
    badge: Option<BadgeRow>,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Badge)]
struct BadgeRow {
    colour: String,
}

#[derive(Debug, PartialEq, Projection)]
#[projection(entity = Member)]
struct Mentor {
    id: i64,
}

#[tokio::test]
async fn a_projection_reads_each_field_from_its_place() -> Result<()> {
    let db = league().await?;
    let rows = Member::query()
        .order_by(Member::ID.asc())
        .project::<MemberRow>()
        .all(&db)
        .await?;
    assert_eq!(rows.len(), 3);
    let pupils: Vec<_> = rows[0].pupils.iter().map(|it| it.id).collect();
    assert_eq!((pupils, &rows[0].mentor), (vec![3, 2], &None));
    let second = MemberRow {
        id: 2,
        name: "m2".to_owned(),
        height: rust_decimal::Decimal::new(20, 1),
        tags: Some(vec!["new".to_owned()]),
        wrapped: Some(Json(vec!["new".to_owned()])),
        twice: 4,
        of: "reds".to_owned(),
        team_id: 1,
        team: TeamRow {
            name: "reds".to_owned(),
            badge: Some(BadgeRow {
                colour: "red".to_owned(),
            }),
        },
        mentor: Some(Mentor { id: 1 }),
        pupils: Vec::new(),
    };
    assert_eq!(rows[1], second);
    assert_eq!(rows[2].team.badge, None);
    Ok(())
}
