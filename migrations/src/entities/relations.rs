//! The names of relations, on both of their sides.

use crate::entities::{
    model::Entity,
    names::{plural, snake_case, written},
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
        let Some(field) = entity.field(named.reference.columns[0]) else {
            continue;
        };
        let field = field.name.clone();
        let implied =
            (field.strip_suffix("_id")).filter(|base| !named.on_struct && !base.is_empty());
        if let Some(base) = implied
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
        let base = implied.unwrap_or(&field);
        let mut candidates = vec![if base == other {
            format!("{other}_row")
        } else {
            format!("{base}_{other}")
        }];
        if same == 1 && target != at {
            candidates.insert(0, other.clone());
        }
        let name = first_free(entity, &candidates);
        entity.references[index].relation = Some(name);
    }
}

/// The side of the parent: `has_many`, or `has_one` where no two children have the same.
fn add_children(entities: &mut [Entity], child: usize, names: &[String]) {
    let found = bases(&entities[child]);
    for (column, parent, base) in &found {
        let is_one = entities[child].draft.is_unique(*column);
        let same = found.iter().filter(|(_, other, _)| other == parent).count();
        let children = if is_one {
            names[child].clone()
        } else {
            plural(&names[child])
        };
        let by_base = format!("{base}_{children}");
        let candidates = if *parent == child && base == "parent" && !is_one {
            vec!["children".to_owned()]
        } else if *parent == child || same > 1 {
            vec![by_base]
        } else {
            vec![children, by_base]
        };
        let by = if same > 1 {
            format!(", by = {}", entities[child].written_fields(&[*column]))
        } else {
            String::new()
        };
        let kind = if is_one { "has_one" } else { "has_many" };
        let entity = entities[child].name.clone();
        let relation = first_free(&mut entities[*parent], &candidates);
        let relation = format!("{kind}({}: {entity}{by})", written(&relation));
        entities[*parent].relations.push(relation);
    }
}

/// Both sides of many to many: a link is an entity whose key is two references.
fn add_links(entities: &mut [Entity], link: usize, names: &[String]) {
    let references = bases(&entities[link]);
    let sides: Vec<_> = (entities[link].draft.key.iter())
        .filter_map(|key| references.iter().find(|(column, ..)| column == key))
        .collect();
    let ([one, other], 2) = (&sides[..], entities[link].draft.key.len()) else {
        return;
    };
    let count = |target: usize| {
        (references.iter())
            .filter(|(_, to, _)| *to == target)
            .count()
    };
    for ((from, here, _), (to, there, base)) in [(one, other), (other, one)] {
        let many = plural(&names[*there]);
        let by_base = plural(base);
        let through = format!("{many}_through_{}", names[link]);
        let candidates = if here == there {
            vec![by_base, through]
        } else {
            vec![many, by_base, through]
        };
        let mut more = String::new();
        if count(*here) > 1 {
            more += &format!(", by = {}", entities[link].written_fields(&[*from]));
        }
        if count(*there) > 1 {
            more += &format!(", to = {}", entities[link].written_fields(&[*to]));
        }
        let through = entities[link].name.clone();
        let there = entities[*there].name.clone();
        let relation = first_free(&mut entities[*here], &candidates);
        let relation = format!(
            "has_many({}: {there}, through = {through}{more})",
            written(&relation)
        );
        entities[*here].relations.push(relation);
    }
}

/// The references that stand on fields: the column, the position of the other entity, and what the field is called
/// without `_id`.
fn bases(entity: &Entity) -> Vec<(usize, usize, String)> {
    let references = entity.field_references();
    let found = references.filter_map(|(column, named)| {
        let name = &entity.field(column)?.name;
        let base = name.strip_suffix("_id").unwrap_or(name);
        Some((column, named.reference.target, base.to_owned()))
    });
    found.collect()
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
