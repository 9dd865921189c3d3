//! The SQL of the tables that show one feature each.

use crate::{
    draw::Chance,
    operation::{
        Cell, Operation,
        Sees::{FirstRow, Rows},
    },
};

pub(crate) fn upsert(chance: &mut Chance<'_>) -> Operation {
    if chance.random.once_in(2) {
        let args = vec![
            chance.key().into(),
            chance.below(5).into(),
            chance.below(9).into(),
        ];
        return Operation::write(
            "INSERT INTO item (id, grp, val) VALUES (?, ?, ?)
             ON CONFLICT (id) DO UPDATE SET val = val + excluded.val RETURNING id, val",
            args,
        )
        .seeing(Rows);
    }
    Operation::write(
        "INSERT INTO item (id, grp, val, tag) VALUES (?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET tag = excluded.tag ON CONFLICT (tag) DO NOTHING",
        vec![
            chance.key().into(),
            chance.below(5).into(),
            chance.below(9).into(),
            Some(format!("t{}", chance.key())).into(),
        ],
    )
}

pub(crate) fn clash(chance: &mut Chance<'_>) -> Operation {
    let tag: Cell = Some(format!("t{}", chance.key())).into();
    let key = chance.key().into();
    match chance.below(3) {
        0 => Operation::write("UPDATE item SET tag = ? WHERE id = ?", vec![tag, key]),
        1 => Operation::write(
            "INSERT OR IGNORE INTO item (id, grp, val, tag) VALUES (?, 0, 0, ?)",
            vec![key, tag],
        ),
        _ => Operation::write(
            "INSERT INTO item (id, grp, val, tag) VALUES (?, 0, 0, ?)",
            vec![key, tag],
        ),
    }
}

pub(crate) fn returning(chance: &mut Chance<'_>) -> Operation {
    match chance.below(3) {
        0 => Operation::write(
            "UPDATE item SET val = val + 1 WHERE id BETWEEN ? AND ? RETURNING id, val",
            chance.range(),
        ),
        1 => Operation::write(
            "DELETE FROM item WHERE id = ? RETURNING grp, val, tag",
            vec![chance.key().into()],
        ),
        _ => Operation::write(
            "INSERT INTO item (grp, val) SELECT grp, val FROM item WHERE id = ? RETURNING id, val",
            vec![chance.key().into()],
        ),
    }
    .seeing(Rows)
}

pub(crate) fn first_written(chance: &mut Chance<'_>) -> Operation {
    let group = chance.below(5).into();
    let key = chance.key().into();
    match chance.below(3) {
        0 => Operation::write(
            "UPDATE item SET val = val + 1 WHERE grp = ? AND id = ? RETURNING val",
            vec![group, key],
        ),
        1 => Operation::write(
            "DELETE FROM item WHERE grp = ? AND id = ? RETURNING val",
            vec![group, key],
        ),
        _ => Operation::write(
            "INSERT INTO item (grp, val) SELECT grp, 1 FROM item WHERE grp = ? AND id = ? RETURNING val",
            vec![group, key],
        ),
    }
    .seeing(FirstRow)
}

pub(crate) fn pairs(chance: &mut Chance<'_>) -> Operation {
    let (a, b) = (Cell::from(chance.key()), Cell::from(chance.below(3)));
    match chance.below(6) {
        0 => Operation::read("SELECT b, val FROM pair WHERE a = ? ORDER BY b", vec![a]),
        1 => Operation::write("INSERT INTO pair (a, b, val) VALUES (?, ?, 1)", vec![a, b]),
        2 => Operation::write("DELETE FROM pair WHERE a = ? AND b = ?", vec![a, b]),
        3 => Operation::write(
            "INSERT OR REPLACE INTO pair (a, b, val) VALUES (?, ?, 7)",
            vec![a, b],
        ),
        4 => Operation::write("UPDATE pair SET b = ? WHERE a = ?", vec![b, a]),
        _ => Operation::write("UPDATE pair SET val = val + 1 WHERE a = ?", vec![a]),
    }
}

pub(crate) fn families(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(1 + chance.below(8));
    let child = Cell::from(chance.key());
    match chance.below(7) {
        0 => Operation::read(
            "SELECT id FROM child WHERE parent_id = ? ORDER BY id",
            vec![key],
        ),
        1 => Operation::write("DELETE FROM parent WHERE id = ?", vec![key]),
        2 => Operation::write("INSERT INTO parent (id, val) VALUES (?, 1)", vec![key]),
        3 => Operation::write(
            "UPDATE child SET parent_id = ? WHERE id = ?",
            vec![key, child],
        ),
        4 => Operation::read(
            "SELECT p.id, count(c.id) FROM parent p LEFT JOIN child c ON c.parent_id = p.id GROUP BY p.id ORDER BY p.id",
            vec![],
        ),
        _ => Operation::write(
            "INSERT INTO child (id, parent_id) VALUES (?, ?)",
            vec![child, key],
        ),
    }
}

pub(crate) fn deferred(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(1 + chance.below(8));
    let child = Cell::from(chance.key());
    match chance.below(3) {
        0 => Operation::write("UPDATE child SET later = ? WHERE id = ?", vec![key, child]),
        1 => Operation::write(
            "INSERT OR IGNORE INTO parent (id, val) VALUES (?, 2)",
            vec![key],
        ),
        _ => Operation::write("UPDATE child SET later = NULL WHERE later = ?", vec![key]),
    }
}

pub(crate) fn logged(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(chance.key());
    match chance.below(6) {
        0 => Operation::write("INSERT INTO logged (id, val) VALUES (?, 5)", vec![key]),
        1 => Operation::write("DELETE FROM logged WHERE id = ?", vec![key]),
        2 => Operation::read(
            "SELECT what, old, new FROM log WHERE of = ? ORDER BY id",
            vec![key],
        ),
        3 => Operation::write(
            "UPDATE logged SET val = val + 1 WHERE id BETWEEN ? AND ?",
            chance.range(),
        ),
        _ => Operation::write("UPDATE logged SET val = val - 10 WHERE id = ?", vec![key]),
    }
}

pub(crate) fn counted(chance: &mut Chance<'_>) -> Operation {
    let key = chance.key().into();
    match chance.below(5) {
        0 => Operation::read("SELECT max(id) FROM log", vec![]),
        1 => Operation::read("SELECT seq FROM sqlite_sequence WHERE name = 'log'", vec![]),
        2 => Operation::write(
            "DELETE FROM log WHERE id = (SELECT max(id) FROM log)",
            vec![],
        ),
        3 => Operation::write(
            "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'log'",
            vec![key],
        ),
        _ => Operation::write(
            "UPDATE item SET val = (SELECT seq FROM sqlite_sequence WHERE name = 'log') WHERE id = ?",
            vec![key],
        ),
    }
}

pub(crate) fn seats(chance: &mut Chance<'_>) -> Operation {
    let (key, a) = (Cell::from(chance.key()), Cell::from(chance.key()));
    match chance.below(6) {
        0 | 1 => {
            let (b, c) = (chance.key().into(), chance.key().into());
            Operation::write(
                "INSERT INTO seat (id, a, b, c) VALUES (?, ?, ?, ?)",
                vec![key, a, b, c],
            )
        }
        2 => Operation::write("UPDATE seat SET a = ? WHERE id = ?", vec![a, key]),
        3 => Operation::read("SELECT a, b, c FROM seat WHERE id = ?", vec![key]),
        _ => Operation::write("DELETE FROM seat WHERE id = ?", vec![key]),
    }
}

pub(crate) fn stocks(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(chance.key());
    match chance.below(5) {
        0 => Operation::read("SELECT val FROM stock WHERE id = ?", vec![key]),
        1 => Operation::write(
            "UPDATE stock SET val = val + 1 WHERE id BETWEEN ? AND ?",
            chance.range(),
        ),
        2 => Operation::write(
            "INSERT OR REPLACE INTO stock (id, val, seq) VALUES (?, 100, 0)",
            vec![key],
        ),
        3 => Operation::write("DELETE FROM stock WHERE id = ?", vec![key]),
        _ => Operation::write(
            "UPDATE stock SET val = val - 1 WHERE id = ? RETURNING val",
            vec![key],
        )
        .seeing(FirstRow),
    }
}

pub(crate) fn raise(chance: &mut Chance<'_>) -> Operation {
    let value = [-1, -2000, 1_000_000, -5][usize::try_from(chance.below(4)).unwrap()];
    Operation::write(
        "UPDATE logged SET val = ? WHERE id = ?",
        vec![value.into(), chance.key().into()],
    )
}

pub(crate) fn computed(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(chance.key());
    match chance.below(5) {
        0 => Operation::write("INSERT INTO computed (id, val) VALUES (?, 5)", vec![key]),
        1 => Operation::write(
            "UPDATE computed SET val = double + third WHERE id = ? AND val < 1000000",
            vec![key],
        ),
        2 => Operation::read(
            "SELECT id, double FROM computed WHERE third = ? ORDER BY id",
            vec![chance.below(3).into()],
        ),
        3 => Operation::write(
            "DELETE FROM computed WHERE third = ? AND id > ?",
            vec![chance.below(3).into(), key],
        ),
        _ => Operation::write(
            "UPDATE computed SET val = val + 1 WHERE id = ? RETURNING double, third",
            vec![key],
        )
        .seeing(Rows),
    }
}

pub(crate) fn docs(chance: &mut Chance<'_>) -> Operation {
    let key = Cell::from(chance.key());
    let word = Cell::Text(format!("word{}", chance.below(4)));
    match chance.below(5) {
        0 => Operation::write(
            "INSERT OR REPLACE INTO docs (rowid, body) VALUES (?, ?)",
            vec![key, word],
        ),
        1 => Operation::write("DELETE FROM docs WHERE rowid = ?", vec![key]),
        2 => Operation::write(
            "UPDATE docs SET body = body || ' ' || ? WHERE rowid = ?",
            vec![word, key],
        ),
        3 => Operation::read("SELECT count(*) FROM docs WHERE docs MATCH ?", vec![word]),
        _ => Operation::read(
            "SELECT rowid, body FROM docs WHERE docs MATCH ? ORDER BY rowid LIMIT 5",
            vec![word],
        ),
    }
}

pub(crate) fn schema(chance: &mut Chance<'_>) -> Operation {
    match chance.below(3) {
        0 => Operation::write("DROP INDEX IF EXISTS item_val", vec![]).seeing(Rows),
        1 => Operation::write("CREATE INDEX IF NOT EXISTS item_val ON item (val)", vec![])
            .seeing(Rows),
        _ => Operation::read(
            "SELECT id FROM item WHERE val = ? ORDER BY id",
            vec![chance.below(110).into()],
        ),
    }
}
