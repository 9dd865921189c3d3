//! Random rows, and what the queries find beside what plain Rust does.

use std::collections::{BTreeMap, BTreeSet};

use anabranch::{
    prelude::*,
    query::{Query, count, exists, outer},
};
use anabranch_tests::random::Random;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(has_many(children: Node, by = parent_id))]
struct Node {
    #[entity(id)]
    id: i64,
    #[entity(references = Node, index)]
    parent_id: Option<i64>,
    size: Option<i64>,
    #[entity(index)]
    name: String,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Span {
    #[entity(id)]
    id: i64,
    first: Option<i64>,
    last: i64,
}

#[derive(Debug, Clone, PartialEq, Entity, Projection)]
#[projection(entity = Node)]
struct Named {
    #[entity(id)]
    name: String,
    #[projection(from = count())]
    nodes: i64,
    #[projection(from = Node::SIZE.sum())]
    total: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Copied {
    #[entity(id)]
    id: i64,
    size: Option<i64>,
    name: String,
}

/// Letters at the edges of UTF-8, and those of patterns.
const LETTERS: [char; 8] = [
    'a',
    'A',
    '%',
    '_',
    '\u{7f}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{10ffff}',
];

fn text(random: &mut Random) -> String {
    let length = random.below(4);
    (0..length)
        .map(|_| LETTERS[usize::try_from(random.below(8)).unwrap()])
        .collect()
}

fn number(random: &mut Random, end: u64) -> i64 {
    i64::try_from(random.below(end)).unwrap()
}

struct World {
    db: Database,
    nodes: Vec<Node>,
    spans: Vec<Span>,
}

/// Parents are any node, itself and those below it too.
async fn world(random: &mut Random) -> World {
    let db = Database::temporary().await.unwrap();
    db.create_tables::<(Node, Span, Copied)>().await.unwrap();
    let all = 1 + random.below(130);
    let nodes: Vec<_> = (1..=i64::try_from(all).unwrap())
        .map(|id| Node {
            id,
            parent_id: (!random.once_in(4)).then(|| 1 + number(random, all)),
            size: (!random.once_in(5)).then(|| number(random, 10) - 3),
            name: text(random),
        })
        .collect();
    let spans: Vec<_> = (1..=number(random, 9))
        .map(|id| Span {
            id,
            first: (!random.once_in(5)).then(|| number(random, 10) - 4),
            last: number(random, 10) - 4,
        })
        .collect();
    let roots = nodes.iter().cloned().map(|node| Node {
        parent_id: None,
        ..node
    });
    db.bulk_insert_optimized(roots).await.unwrap();
    db.bulk_update().run(nodes.clone()).await.unwrap();
    db.bulk_insert_optimized(spans.clone()).await.unwrap();
    World { db, nodes, spans }
}

impl World {
    /// What is reached from there in so many steps.
    fn reached(&self, from: &BTreeSet<i64>, steps: usize, downwards: bool) -> Vec<i64> {
        let mut reached = from.clone();
        for _ in 0..steps {
            let next: Vec<_> = (self.nodes.iter())
                .filter_map(|node| match downwards {
                    true => reached.contains(&node.parent_id?).then_some(node.id),
                    false => reached.contains(&node.id).then_some(node.parent_id)?,
                })
                .collect();
            let before = reached.len();
            reached.extend(next);
            if reached.len() == before {
                break;
            }
        }
        reached.into_iter().collect()
    }

    fn ids(&self, is: impl Fn(&Node) -> bool) -> Vec<i64> {
        let found = self.nodes.iter().filter(|node| is(node));
        found.map(|node| node.id).collect()
    }

    async fn found(&self, query: Query<Node>) -> Vec<i64> {
        let query = query.order_by(Node::ID.asc()).select(Node::ID);
        query.all(&self.db).await.unwrap()
    }

    async fn recursion_holds(&self, random: &mut Random) {
        let size = number(random, 10) - 3;
        let from = self
            .ids(|node| node.size == Some(size))
            .into_iter()
            .collect();
        let steps = u32::try_from(random.below(5)).unwrap();
        let start = || Node::query().filter(Node::SIZE.eq(size));
        let few = usize::try_from(steps).unwrap();
        for (downwards, most) in [(true, few), (true, 999), (false, few), (false, 999)] {
            let query = match (downwards, most) {
                (true, 999) => start().recursive(Node::CHILDREN),
                (true, _) => start().recursive_up_to(steps, Node::CHILDREN),
                (false, 999) => start().recursive(Node::PARENT),
                (false, _) => start().recursive_up_to(steps, Node::PARENT),
            };
            let expected = self.reached(&from, most, downwards);
            assert_eq!(
                self.found(query).await,
                expected,
                "{size} {most} {downwards}"
            );
        }
        // What begins is limited before the steps are taken.
        let first: BTreeSet<_> = from.iter().copied().take(1).collect();
        let query = start()
            .order_by(Node::ID.asc())
            .limit(1)
            .recursive(Node::CHILDREN);
        assert_eq!(self.found(query).await, self.reached(&first, 999, true));
    }

    async fn outer_rows_hold(&self) {
        let within = || Node::SIZE.between(outer(Span::FIRST), outer(Span::LAST));
        let is_within = |span: &Span, node: &Node| match (span.first, node.size) {
            (Some(first), Some(size)) => first <= size && size <= span.last,
            _ => false,
        };
        let nodes = Relation::<Span, Vec<Node>>::when(within());
        let read = Span::query()
            .order_by(Span::ID.asc())
            .with(nodes.clone().order_by(Node::ID.desc()).limit(3))
            .all(&self.db)
            .await
            .unwrap();
        for (span, (found, rows)) in self.spans.iter().zip(&read) {
            assert_eq!(span, found);
            let mut expected = self.ids(|node| is_within(span, node));
            expected.reverse();
            expected.truncate(3);
            let found: Vec<_> = rows.iter().map(|node| node.id).collect();
            assert_eq!(found, expected, "{span:?}");
        }
        assert_eq!(read.len(), self.spans.len());
        let sums = Span::query()
            .order_by(Span::ID.asc())
            .select((
                nodes.clone().count(),
                Node::query()
                    .filter(within())
                    .select(Node::SIZE.sum())
                    .as_value(),
            ))
            .all(&self.db)
            .await
            .unwrap();
        for (span, (rows, total)) in self.spans.iter().zip(sums) {
            let within: Vec<_> = self
                .nodes
                .iter()
                .filter(|node| is_within(span, node))
                .collect();
            assert_eq!(usize::try_from(rows).unwrap(), within.len(), "{span:?}");
            let expected = within
                .iter()
                .map(|node| node.size.unwrap())
                .reduce(|a, b| a + b);
            assert_eq!(total, expected, "{span:?}");
        }
        // A node inside of a query of nodes: those that are larger than the one around.
        let larger = Node::query().filter(Node::SIZE.gt(outer(Node::SIZE)));
        let query = Node::query().filter(!exists(larger));
        let most = self.nodes.iter().filter_map(|node| node.size).max();
        let expected = self.ids(|node| node.size.is_none() || node.size == most);
        assert_eq!(self.found(query).await, expected);
    }

    async fn texts_are_found_exactly(&self, random: &mut Random) {
        for _ in 0..6 {
            let text = text(random);
            let found = self.found(Node::query().filter(Node::NAME.starts_with_exact(&text)));
            let expected = self.ids(|node| node.name.starts_with(&text));
            assert_eq!(found.await, expected, "starts with {text:?}");
            let found = self.found(Node::query().filter(Node::NAME.ends_with_exact(&text)));
            let expected = self.ids(|node| node.name.ends_with(&text));
            assert_eq!(found.await, expected, "ends with {text:?}");
            let found = self.found(Node::query().filter(Node::NAME.contains_exact(&text)));
            let expected = self.ids(|node| node.name.contains(&text));
            assert_eq!(found.await, expected, "contains {text:?}");
        }
    }

    async fn groups_are_a_table(&self, random: &mut Random) {
        let least = number(random, 6);
        let (limit, skipped) = (random.below(5), random.below(4));
        let groups = Node::query()
            .group_by(Node::NAME)
            .project::<Named>()
            .as_table();
        let found = groups
            .filter(Named::NODES.ge(least).or(Named::TOTAL.is_null()))
            .order_by(Named::NAME.desc())
            .limit(limit)
            .offset(skipped)
            .all(&self.db)
            .await
            .unwrap();
        let mut groups = BTreeMap::<_, (i64, Option<i64>)>::new();
        for node in &self.nodes {
            let (nodes, total) = groups.entry(&node.name).or_default();
            *nodes += 1;
            if let Some(size) = node.size {
                *total = Some(total.unwrap_or(0) + size);
            }
        }
        let (limit, skipped) = (
            usize::try_from(limit).unwrap(),
            usize::try_from(skipped).unwrap(),
        );
        let expected: Vec<_> = (groups.into_iter().rev())
            .filter(|(_, (nodes, total))| *nodes >= least || total.is_none())
            .map(|(name, (nodes, total))| Named {
                name: name.clone(),
                nodes,
                total,
            })
            .skip(skipped)
            .take(limit)
            .collect();
        assert_eq!(found, expected);
    }

    async fn rows_are_copied(&self, random: &mut Random) {
        let limit = random.below(150);
        let report = Node::query()
            .filter(Node::SIZE.ge(0))
            .order_by(Node::ID.desc())
            .limit(limit)
            .select((Node::SIZE, Node::NAME))
            .insert_into((Copied::SIZE, Copied::NAME))
            .execute(&self.db)
            .await
            .unwrap();
        let found = Copied::query()
            .order_by(Copied::ID.asc())
            .all(&self.db)
            .await
            .unwrap();
        let expected: Vec<_> = (self.nodes.iter().rev())
            .filter(|node| node.size >= Some(0))
            .take(usize::try_from(limit).unwrap())
            .zip(1..)
            .map(|(node, id)| Copied {
                id,
                size: node.size,
                name: node.name.clone(),
            })
            .collect();
        assert_eq!(report, expected.len() as u64);
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn random_rows_are_found_as_plain_rust_finds_them() {
    let mut random = Random::seeded("attacked");
    for _ in 0..25 {
        let world = world(&mut random).await;
        for _ in 0..3 {
            world.recursion_holds(&mut random).await;
        }
        world.outer_rows_hold().await;
        world.texts_are_found_exactly(&mut random).await;
        world.groups_are_a_table(&mut random).await;
        world.rows_are_copied(&mut random).await;
    }
}
