//! Rows that the database deletes or changes when others are deleted: the context follows.

use std::collections::{BTreeMap, BTreeSet};

use anabranch::prelude::*;
use anabranch_tests::{Mode, execute, random::Random, try_execute};

#[derive(Debug, Clone, PartialEq, Entity)]
struct Team {
    #[entity(id)]
    id: i64,
    #[entity(references = Team, on_delete = SetNull)]
    parent_id: Option<i64>,
    #[entity(references = Person, on_delete = Cascade)]
    lead_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Person {
    #[entity(id)]
    id: i64,
    name: String,
    #[entity(references = Person, on_delete = Cascade)]
    boss_id: Option<i64>,
    #[entity(references = Person, on_delete = SetNull)]
    friend_id: Option<i64>,
    #[entity(references = Team, on_delete = Cascade)]
    team_id: Option<i64>,
    #[entity(references = City, on_delete = Cascade)]
    home: Option<String>,
    #[entity(references = City, on_delete = SetNull)]
    trip: Option<String>,
    #[entity(commit_seq)]
    seq: CommitSeq,
}

/// Its key is the application's.
#[derive(Debug, Clone, PartialEq, Entity)]
struct City {
    #[entity(id)]
    name: String,
}

fn person(name: &str) -> Person {
    Person {
        id: 0,
        name: name.to_owned(),
        boss_id: None,
        friend_id: None,
        team_id: None,
        home: None,
        trip: None,
        seq: CommitSeq::default(),
    }
}

async fn people(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<(City, Team, Person, Desk)>()
        .await
        .unwrap();
    db
}

/// The desk of nobody is number 1.
#[derive(Debug, Clone, PartialEq, Entity)]
struct Desk {
    #[entity(id)]
    id: i64,
    #[entity(references = Person, on_delete = SetDefault, default = "1")]
    person_id: i64,
}

/// All that is tracked is in the database, the same, and the other way round.
async fn assert_same(db: &Database, ctx: &Context<'_>, round: u64) {
    let people: BTreeMap<_, _> = (ctx.iter::<Person>())
        .map(|(_, person)| (person.id, person.clone()))
        .collect();
    let rows = Person::query().all(db).await.unwrap();
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    assert_eq!(people, rows, "round {round}");
    let teams: BTreeMap<_, _> = (ctx.iter::<Team>())
        .map(|(_, team)| (team.id, team.clone()))
        .collect();
    let rows = Team::query().all(db).await.unwrap();
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    assert_eq!(teams, rows, "round {round}");
    let cities: BTreeSet<_> = (ctx.iter::<City>())
        .map(|(_, city)| city.name.clone())
        .collect();
    let rows = City::query().all(db).await.unwrap();
    let rows: BTreeSet<_> = rows.into_iter().map(|row| row.name).collect();
    assert_eq!(cities, rows, "round {round}");
    assert_eq!(ctx.len(), people.len() + teams.len() + cities.len());
    assert!(!ctx.has_changes());
}

#[tokio::test]
async fn a_chain_goes_with_its_root_and_handles_become_stale() {
    for mode in Mode::ALL {
        let db = people(mode).await;
        let mut ctx = db.context();
        let root = ctx.add(person("root"));
        let mut chain = vec![root];
        for at in 0..5 {
            let boss_id = Some(ctx[chain[at]].id);
            chain.push(ctx.add(Person {
                boss_id,
                ..person("link")
            }));
        }
        let friend = ctx.add(Person {
            friend_id: Some(ctx[chain[5]].id),
            ..person("friend")
        });
        ctx.save_changes().await.unwrap();
        ctx.remove(root);
        let saved = ctx.save_changes().await.unwrap();
        assert_eq!(saved.deleted, 1, "{mode:?}");
        assert!(chain.iter().all(|link| ctx.get(*link).is_none()));
        assert_eq!(ctx[friend].friend_id, None);
        assert_eq!(Some(ctx[friend].seq), saved.commit_seq);
        assert_same(&db, &ctx, 0).await;
    }
}

#[tokio::test]
async fn what_was_changed_locally_stays_when_a_reference_becomes_null() {
    let db = people(Mode::Inline).await;
    let mut ctx = db.context();
    let (old, new) = (ctx.add(person("old")), ctx.add(person("new")));
    let mut friends = Vec::new();
    for name in ["renamed", "moved", "idle"] {
        friends.push(ctx.add(Person {
            friend_id: Some(ctx[old].id),
            ..person(name)
        }));
    }
    ctx.save_changes().await.unwrap();
    ctx.remove(old);
    let new_id = ctx[new].id;
    let mut tx = db.begin().await.unwrap();
    ctx.save_changes_in(&mut tx).await.unwrap();
    // Between the save and its settling.
    ctx[friends[0]].name.push('!');
    ctx[friends[1]].friend_id = Some(new_id);
    let late = ctx.add(Person {
        boss_id: Some(1),
        ..person("late")
    });
    tx.commit().await.unwrap();
    ctx.find::<Person>(99).await.unwrap();
    let of = |ctx: &Context<'_>, at: usize| {
        (
            ctx[friends[at]].friend_id,
            ctx.entry(friends[at]).state(),
            ctx.entry(friends[at]).is_modified(Person::FRIEND_ID),
        )
    };
    assert_eq!(of(&ctx, 0), (None, EntityState::Modified, false));
    assert_eq!(of(&ctx, 1), (Some(new_id), EntityState::Modified, true));
    assert_eq!(of(&ctx, 2), (None, EntityState::Unchanged, false));
    // What is still to be inserted is the application's: the save says what is wrong with it.
    assert_eq!(ctx.entry(late).state(), EntityState::Added);
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignKey);
    ctx[late].boss_id = None;
    ctx.save_changes().await.unwrap();
    assert_same(&db, &ctx, 0).await;
}

#[tokio::test]
async fn an_entity_whose_reference_takes_a_default_is_no_longer_tracked() {
    let db = people(Mode::Inline).await;
    let mut ctx = db.context();
    ctx.add(person("nobody"));
    let ada = ctx.add(person("ada"));
    let desk = ctx.add(Desk {
        id: 0,
        person_id: ctx[ada].id,
    });
    ctx.save_changes().await.unwrap();
    ctx.remove(ada);
    ctx.save_changes().await.unwrap();
    assert!(ctx.get(desk).is_none());
    let desk = ctx.find::<Desk>(1).await.unwrap().unwrap();
    assert_eq!(ctx[desk].person_id, 1);
}

#[tokio::test]
async fn a_refused_delete_changes_nothing_in_the_context() {
    let db = people(Mode::Inline).await;
    execute(
        &db,
        "CREATE TABLE badge (person_id INTEGER NOT NULL REFERENCES person (id))",
    )
    .await;
    let mut ctx = db.context();
    let ada = ctx.add(person("ada"));
    let bob = ctx.add(Person {
        boss_id: Some(ctx[ada].id),
        ..person("bob")
    });
    ctx.save_changes().await.unwrap();
    execute(&db, "INSERT INTO badge VALUES (1)").await;
    ctx.remove(ada);
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignKey);
    assert_eq!(ctx[bob].boss_id, Some(1));
    assert_eq!(ctx.entry(bob).state(), EntityState::Unchanged);
}

/// SQLite has a trigger's code for RESTRICT.
#[tokio::test]
async fn a_delete_that_restrict_refuses_is_a_foreign_key_error() {
    #[derive(Debug, Entity)]
    struct Seal {
        #[entity(id)]
        id: i64,
        #[entity(references = Person, on_delete = Restrict)]
        person_id: i64,
    }
    for mode in Mode::ALL {
        let db = people(mode).await;
        db.create_tables::<Seal>().await.unwrap();
        let mut ctx = db.context();
        let ada = ctx.add(person("ada"));
        let person_id = ctx[ada].id;
        ctx.add(Seal { id: 0, person_id });
        ctx.save_changes().await.unwrap();
        ctx.remove(ada);
        let of_a_save = ctx.save_changes().await.unwrap_err();
        let of_raw_sql = try_execute(&db, "DELETE FROM person").await.unwrap_err();
        for error in [of_a_save, of_raw_sql] {
            assert_eq!(error.kind(), ErrorKind::ForeignKey, "{mode:?}: {error}");
        }
    }
}

/// Two that refer to each other, and both are removed: the first delete takes the second along.
#[tokio::test]
async fn a_circle_of_cascades_is_deleted_in_one_save() {
    let db = people(Mode::Inline).await;
    let mut ctx = db.context();
    let (ada, bob) = (ctx.add(person("ada")), ctx.add(person("bob")));
    ctx.save_changes().await.unwrap();
    ctx[ada].boss_id = Some(2);
    ctx[bob].boss_id = Some(1);
    ctx.save_changes().await.unwrap();
    ctx.remove(ada);
    ctx.remove(bob);
    assert_eq!(ctx.save_changes().await.unwrap().deleted, 2);
    assert!(ctx.is_empty());
    assert_same(&db, &ctx, 0).await;
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Shelf {
    #[entity(id)]
    id: i64,
    #[entity(unique)]
    label: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Bin {
    #[entity(id)]
    id: i64,
    #[entity(references = Shelf, on_delete = Cascade)]
    shelf_id: i64,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Jar {
    #[entity(id)]
    id: i64,
    #[entity(references = Bin, on_delete = Cascade)]
    bin_id: i64,
}

/// The new parent takes the unique label of the old one, so that the old one has to go first; the children stay.
#[tokio::test]
async fn children_move_from_a_removed_parent_to_its_replacement() {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Shelf, Bin, Jar)>().await.unwrap();
    let mut ctx = db.context();
    let label = "top".to_owned();
    let old = ctx.add(Shelf { id: 0, label });
    let add_bin = |ctx: &mut Context<'_>, shelf: Tracked<Shelf>| {
        let shelf_id = ctx[shelf].id;
        ctx.add(Bin { id: 0, shelf_id })
    };
    let (moved, lost) = (add_bin(&mut ctx, old), add_bin(&mut ctx, old));
    let (jar, jar_lost) = (
        ctx.add(Jar {
            id: 0,
            bin_id: ctx[lost].id,
        }),
        ctx.add(Jar {
            id: 0,
            bin_id: ctx[lost].id,
        }),
    );
    ctx.save_changes().await.unwrap();
    ctx.remove(old);
    let label = "top".to_owned();
    let new = ctx.add(Shelf { id: 0, label });
    ctx[moved].shelf_id = ctx[new].id;
    ctx[jar].bin_id = ctx[moved].id;
    let saved = ctx.save_changes().await.unwrap();
    assert_eq!((saved.inserted, saved.updated, saved.deleted), (1, 2, 1));
    assert_eq!(ctx[moved].shelf_id, ctx[new].id);
    assert!(ctx.get(lost).is_none() && ctx.get(jar_lost).is_none());
    assert_eq!(Bin::query().all(&db).await.unwrap(), [ctx[moved].clone()]);
    assert_eq!(Jar::query().all(&db).await.unwrap(), [ctx[jar].clone()]);
}

/// Random graphs of two tables that refer to themselves and each other, with chains, diamonds and circles; and to rows
/// that are replaced under their key.
#[tokio::test]
async fn after_every_save_what_is_tracked_equals_the_rows() {
    let mut random = Random::seeded("after_every_save_what_is_tracked_equals_the_rows");
    let mut refused = 0;
    for round in 0..150 {
        let db = people(Mode::Inline).await;
        let mut ctx = db.context();
        for _ in 0..6 {
            step(&mut ctx, &mut random);
            let moved = moved(&mut ctx);
            let saved = if random.once_in(3) {
                let mut tx = db.begin().await.unwrap();
                let saved = ctx.save_changes_in(&mut tx).await.map(drop);
                tx.commit().await.unwrap();
                ctx.find::<Person>(i64::MAX).await.unwrap();
                saved
            } else {
                ctx.save_changes().await.map(drop)
            };
            if let Err(error) = saved {
                // It refers to what went early with a city, or moves from there to a city that came back.
                let kinds = [ErrorKind::ForeignKey, ErrorKind::Conflict];
                assert!(kinds.contains(&error.kind()), "round {round}: {error:?}");
                refused += 1;
                break;
            }
            assert_same(&db, &ctx, round).await;
            assert!(moved.iter().all(|handle| ctx.get(*handle).is_some()));
        }
    }
    assert!(refused < 40, "{refused}");
}

/// Those who move to a city and go with nobody else: no delete of the save may take them along.
fn moved(ctx: &mut Context<'_>) -> Vec<Tracked<Person>> {
    let mut people: Vec<_> = (ctx.iter::<Person>())
        .filter(|(_, person)| {
            person.home.is_some() && person.boss_id.is_none() && person.team_id.is_none()
        })
        .map(|(handle, _)| handle)
        .collect();
    people.retain(|handle| {
        let entry = ctx.entry(*handle);
        let follows = entry.is_modified(Person::BOSS_ID) || entry.is_modified(Person::TEAM_ID);
        entry.is_modified(Person::HOME) && !follows
    });
    people
}

/// Adds, changes and removes a few.
fn step(ctx: &mut Context<'_>, random: &mut Random) {
    for name in ["Bath", "Deal", "Rye"] {
        let known = ctx.iter::<City>().find(|(_, city)| city.name == name);
        let known = known.map(|(handle, _)| handle);
        if random.once_in(4) {
            known.map(|handle| ctx.remove(handle));
        } else if known.is_some() {
            continue;
        }
        if random.once_in(2) {
            let name = name.to_owned();
            ctx.add(City { name });
        }
    }
    let cities: Vec<_> = ctx.iter::<City>().map(|(handle, _)| handle).collect();
    let mut people: Vec<_> = ctx.iter::<Person>().map(|(handle, _)| handle).collect();
    let mut teams: Vec<_> = ctx.iter::<Team>().map(|(handle, _)| handle).collect();
    let (old_people, old_teams) = (people.len() as u64, teams.len() as u64);
    for _ in 0..random.below(5) {
        people.push(ctx.add(person("someone")));
    }
    for _ in 0..random.below(3) {
        teams.push(ctx.add(Team {
            id: 0,
            parent_id: None,
            lead_id: None,
        }));
    }
    for _ in 0..random.below(12) {
        let someone = pick(&people, random);
        let other = pick(&people, random).map(|handle| ctx[handle].id);
        let team = pick(&teams, random);
        let other_team = pick(&teams, random).map(|handle| ctx[handle].id);
        let city = pick(&cities, random).map(|handle| ctx[handle].name.clone());
        match (random.below(7), someone, team) {
            (5, Some(someone), _) => ctx[someone].home = city,
            (6, Some(someone), _) => ctx[someone].trip = city,
            (0, Some(someone), _) => ctx[someone].boss_id = other,
            (1, Some(someone), _) => ctx[someone].friend_id = other,
            (2, Some(someone), _) => ctx[someone].team_id = other_team,
            (3, _, Some(team)) => ctx[team].lead_id = other,
            (4, _, Some(team)) => ctx[team].parent_id = other_team,
            _ => {}
        }
    }
    // Only rows: the temporary key of one that is forgotten would be of nobody.
    for _ in 0..random.below(3) {
        let (at, team) = (
            random.below(old_people.max(1)),
            random.below(old_teams.max(1)),
        );
        if random.once_in(3) && team < old_teams {
            ctx.remove(teams[usize::try_from(team).unwrap()]);
        } else if at < old_people {
            ctx.remove(people[usize::try_from(at).unwrap()]);
        }
    }
}

fn pick<E>(handles: &[Tracked<E>], random: &mut Random) -> Option<Tracked<E>> {
    let at = random.below(handles.len().max(1) as u64 + 1);
    handles.get(usize::try_from(at).unwrap()).copied()
}
