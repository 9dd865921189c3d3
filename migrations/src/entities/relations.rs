//! The names of relations, on both of their sides.

use crate::entities::{
    model::{Entity, Field},
    names::{plural, snake_case, written},
    references::Reference,
};

/// Names every relation; those of the other side only if they are `wanted`.
pub(crate) fn name_all(entities: &mut [Entity], wanted: bool) {
    let names: Vec<_> = entities
        .iter()
        .map(|entity| snake_case(&entity.name))
        .collect();
    for (at, entity) in entities.iter_mut().enumerate() {
        name_belongs_to(entity, at, &names, wanted);
    }
    if wanted {
        for child in 0..entities.len() {
            add_children(entities, child, &names);
        }
        for link in 0..entities.len() {
            add_links(entities, link, &names);
        }
    }
}

/// `customer_id` is the relation `customer` by itself; every other has to be named.
fn name_belongs_to(entity: &mut Entity, at: usize, names: &[String], wanted: bool) {
    for index in 0..entity.references.len() {
        let named = &entity.references[index];
        let target = named.reference.target;
        let first = || entity.field(named.reference.columns[0]);
        let Some(field) = distinct_field(entity, &named.reference).or_else(first) else {
            continue;
        };
        let implied = (field.name.strip_suffix("_id"))
            .filter(|base| !named.on_struct && !base.is_empty())
            .map(str::to_owned);
        let base = (implied.clone()).unwrap_or_else(|| called(entity, &named.reference, field));
        let is_shared = named.reference.columns.len() > 1 && base != field.name;
        if let Some(base) = &implied
            && entity.taken.take(base)
        {
            continue;
        }
        // The derive refuses a field whose relation would have the name of another column.
        if !wanted && implied.is_none() {
            continue;
        }
        let same = (entity.references.iter())
            .filter(|named| named.reference.target == target)
            .count();
        let other = &names[target];
        let says_other = base == *other || base.ends_with(&format!("_{other}"));
        let mut candidates = vec![if says_other {
            format!("{base}_row")
        } else {
            format!("{base}_{other}")
        }];
        if same == 1 && target != at {
            candidates.insert(0, other.clone());
        } else if is_shared {
            candidates.insert(0, base);
        }
        let name = first_free(entity, &candidates);
        entity.references[index].relation = Some(name);
    }
}

/// The side of the parent: `has_many`, or `has_one` where no two children have the same.
fn add_children(entities: &mut [Entity], child: usize, names: &[String]) {
    for arrow in arrows(&entities[child]) {
        let parent = arrow.target;
        let is_one = entities[child].draft.is_unique(&arrow.columns);
        let children = if is_one {
            names[child].clone()
        } else {
            plural(&names[child])
        };
        let by_base = format!("{}_{children}", arrow.base);
        let candidates = if parent == child && arrow.base == "parent" && !is_one {
            vec!["children".to_owned()]
        } else if parent == child || !arrow.is_only {
            vec![by_base]
        } else {
            vec![children, by_base]
        };
        let kind = if is_one { "has_one" } else { "has_many" };
        let by = arrow.named("by");
        let entity = entities[child].name.clone();
        let relation = first_free(&mut entities[parent], &candidates);
        let relation = format!("{kind}({}: {entity}{by})", written(&relation));
        entities[parent].relations.push(relation);
    }
}

/// Both sides of many to many: a link is an entity whose key is two references, or which is unique by two.
fn add_links(entities: &mut [Entity], link: usize, names: &[String]) {
    let arrows = arrows(&entities[link]);
    let sides = (entities[link].draft.unique_keys()).find_map(|key| sides(&key, &arrows));
    let Some((one, other)) = sides else {
        return;
    };
    for (from, to) in [(one, other), (other, one)] {
        let (here, there) = (from.target, to.target);
        let many = plural(&names[there]);
        let by_base = plural(&to.base);
        let through = format!("{many}_through_{}", names[link]);
        let candidates = if here == there {
            vec![by_base, through]
        } else {
            vec![many, by_base, through]
        };
        let (by, to) = (from.named("by"), to.named("to"));
        let through = entities[link].name.clone();
        let there = entities[there].name.clone();
        let relation = first_free(&mut entities[here], &candidates);
        let relation = format!(
            "has_many({}: {there}, through = {through}{by}{to})",
            written(&relation)
        );
        entities[here].relations.push(relation);
    }
}

/// The two references of which a unique key consists, if it is two and there is no doubt about which.
fn sides<'a>(key: &[usize], arrows: &'a [Arrow]) -> Option<(&'a Arrow, &'a Arrow)> {
    let mut pairs = (arrows.iter().enumerate()).flat_map(|(at, one)| {
        let others = arrows[at + 1..].iter();
        others.map(move |other| (one, other))
    });
    let is_key = |(one, other): &(&Arrow, &Arrow)| {
        one.columns.len() + other.columns.len() == key.len()
            && (key.iter())
                .all(|column| one.columns.contains(column) != other.columns.contains(column))
    };
    let pair = pairs.find(is_key);
    pair.filter(|_| !pairs.any(|pair| is_key(&pair)))
}

/// A reference, as the other side sees it.
struct Arrow {
    target: usize,
    columns: Vec<usize>,
    /// What its field is called, without `_id`.
    base: String,
    /// Whether there is no other to the same entity.
    is_only: bool,
    /// A field, as it is written, that is in no other to the same entity.
    field: String,
}

impl Arrow {
    /// `, by = field`, if there is more than one to choose from.
    fn named(&self, by: &str) -> String {
        if self.is_only {
            String::new()
        } else {
            format!(", {by} = {}", self.field)
        }
    }
}

/// The references that can be told from others to the same entity.
fn arrows(entity: &Entity) -> Vec<Arrow> {
    let references = || entity.references.iter().map(|named| &named.reference);
    let arrows = references().filter_map(|reference| {
        let field = distinct_field(entity, reference)?;
        let mut same = references().filter(|other| other.target == reference.target);
        Some(Arrow {
            target: reference.target,
            columns: reference.columns.clone(),
            base: called(entity, reference, field),
            is_only: same.nth(1).is_none(),
            field: written(&field.name),
        })
    });
    arrows.collect()
}

/// What a reference is called after: the words with which all of its fields begin, or the one field without `_id`.
fn called(entity: &Entity, reference: &Reference, field: &Field) -> String {
    let name = &field.name[..];
    let others = (reference.columns.iter()).filter_map(|column| entity.field(*column));
    let common = others.fold(name, |common, other| {
        let same = (common.bytes().zip(other.name.bytes())).take_while(|(one, other)| one == other);
        let length = same.count();
        common.get(..length).unwrap_or_default()
    });
    let words = common.rfind('_').map_or("", |at| &common[..at]);
    if reference.columns.len() > 1 && !words.is_empty() {
        return words.to_owned();
    }
    name.strip_suffix("_id").unwrap_or(name).to_owned()
}

/// Of the fields that refer the first that is in no other reference to the same entity.
fn distinct_field<'a>(entity: &'a Entity, reference: &Reference) -> Option<&'a Field> {
    let is_distinct = |column: &&usize| {
        let references = entity.references.iter().map(|named| &named.reference);
        let mut same = references
            .filter(|other| other.target == reference.target && other.columns.contains(column));
        same.nth(1).is_none()
    };
    let mut columns = reference.columns.iter();
    entity.field(*columns.find(is_distinct)?)
}

/// The first of the names that is free, or the last with a number.
fn first_free(entity: &mut Entity, candidates: &[String]) -> String {
    for name in candidates {
        if entity.taken.take(name) {
            return name.clone();
        }
    }
    let last = candidates.last().map_or("relation", String::as_str);
    entity.taken.field(last)
}
