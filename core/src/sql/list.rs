//! The values of an IN list, of any length.
//!
//! A few values are parameters of their own. More are one parameter, a JSON array, so that neither the number
//! of parameters nor that of different statements grows with the list. All values arrive exactly:
//!
//! * integers and text are what JSON has;
//! * blobs travel as hexadecimal digits;
//! * a real travels as two integers m and e, it being m × 2^e. SQLite does not promise to read decimal digits
//!   exactly, while a product with a power of two is exact. The powers are doubled up from the smallest, which is
//!   a parameter too, in as many rows as there are exponents.

use std::fmt::Write as _;

use serde_json::Value as JsonValue;

use crate::{sql::render::Renderer, value::Value};

/// The most values that are parameters of their own.
const FEW: usize = 8;

/// Writes what stands between the parentheses of `IN ()`.
pub(in crate::sql) fn render(renderer: &mut Renderer, values: Vec<Value>) {
    if values.len() > FEW {
        match values[0] {
            Value::Integer(_) | Value::Text(_) if all_alike(&values) => {
                renderer.push("SELECT value FROM json_each(");
                renderer.value(Value::Text(plain_array(values)));
                return renderer.push(")");
            }
            Value::Blob(_) if all_alike(&values) => {
                renderer.push("SELECT unhex(value) FROM json_each(");
                renderer.value(Value::Text(hex_array(&values)));
                return renderer.push(")");
            }
            Value::Real(_) if all_alike(&values) => return reals(renderer, &values),
            // A list of several storage classes, which no column type of this crate makes.
            _ => {}
        }
    }
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            renderer.push(", ");
        }
        renderer.value(value);
    }
}

fn all_alike(values: &[Value]) -> bool {
    let class = values[0].as_ref().class();
    values.iter().all(|value| value.as_ref().class() == class)
}

fn plain_array(values: Vec<Value>) -> String {
    let items: Vec<JsonValue> = values
        .into_iter()
        .filter_map(|value| match value {
            Value::Integer(integer) => Some(integer.into()),
            Value::Text(text) => Some(text.into()),
            _ => None,
        })
        .collect();
    JsonValue::Array(items).to_string()
}

fn hex_array(values: &[Value]) -> String {
    array(values, |array, value| {
        if let Value::Blob(bytes) = value {
            array.push('"');
            for byte in bytes {
                let _ = write!(array, "{byte:02x}");
            }
            array.push('"');
        }
    })
}

fn reals(renderer: &mut Renderer, values: &[Value]) {
    renderer.push("WITH RECURSIVE scale (exponent, power) AS (SELECT -1074, ");
    renderer.value(Value::Real(f64::from_bits(1)));
    renderer.push(
        " UNION ALL SELECT exponent + 1, power * 2.0 FROM scale WHERE exponent < 1024) \
         SELECT (value ->> 0) * power FROM json_each(",
    );
    renderer.value(Value::Text(array(values, |array, value| {
        if let Value::Real(real) = value {
            let (significand, exponent) = split(*real);
            let _ = write!(array, "[{significand},{exponent}]");
        }
    })));
    renderer.push(") JOIN scale ON exponent = value ->> 1");
}

/// Two integers of which the number is significand × 2^exponent; both zeros, which are equal, are one.
fn split(real: f64) -> (i64, i64) {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = real.to_bits();
    let fraction = (bits & FRACTION).cast_signed();
    let (significand, exponent) = match (bits >> 52 & 0x7ff).cast_signed() {
        0 => (fraction, -1074),
        0x7ff => (1, 1024),
        exponent => (fraction | 1 << 52, exponent - 1075),
    };
    let sign = if real.is_sign_negative() { -1 } else { 1 };
    (sign * significand, exponent)
}

fn array(values: &[Value], write_item: impl Fn(&mut String, &Value)) -> String {
    let mut array = String::from("[");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            array.push(',');
        }
        write_item(&mut array, value);
    }
    array.push(']');
    array
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{
        sql::{Predicate, Select, Statement, Term, fixture::Memory, list::FEW},
        value::Value,
    };

    /// A fixed sequence of scattered numbers (splitmix64).
    fn scattered(count: u64) -> impl Iterator<Item = u64> {
        (1..=count).map(|step| {
            let mut bits = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^ (bits >> 31)
        })
    }

    fn table(storage: &str, values: impl IntoIterator<Item = Value>) -> Memory {
        let memory = Memory::with_schema(&format!(
            "CREATE TABLE t (v {storage} NOT NULL) STRICT; CREATE INDEX t_v ON t (v); BEGIN;"
        ));
        for value in values {
            memory.insert("INSERT INTO t VALUES (?1)", vec![value]);
        }
        memory
    }

    fn count(memory: &Memory, values: &[Value], negated: bool) -> usize {
        let rows = memory.run(&select(values, negated).into_count()).unwrap();
        let Value::Integer(count) = rows[0][0] else {
            panic!("{rows:?}")
        };
        usize::try_from(count).unwrap()
    }

    fn select(values: &[Value], negated: bool) -> Select {
        Select {
            conditions: vec![Predicate::In {
                term: Term::Column("v"),
                values: values.to_vec(),
                negated,
            }],
            ..Select::of("t", Term::Column("v"))
        }
    }

    /// Puts every other value into a table, looks for all of them, and for those that are not there.
    fn look_up(storage: &str, values: &[Value]) {
        let present: Vec<_> = values.iter().step_by(2).cloned().collect();
        let absent: Vec<_> = values.iter().skip(1).step_by(2).cloned().collect();
        let memory = table(storage, present.iter().cloned());
        assert_eq!(count(&memory, values, false), present.len());
        assert_eq!(count(&memory, &present, false), present.len());
        assert_eq!(count(&memory, &present, true), 0);
        assert_eq!(count(&memory, &absent, false), 0);
        assert_eq!(count(&memory, &absent, true), present.len());
        let rows = select(values, false).into_rows();
        let plan = memory
            .run(&Statement {
                text: format!("EXPLAIN QUERY PLAN {rows}").into(),
                args: rows.args,
            })
            .unwrap();
        assert!(
            format!("{:?}", plan[0]).contains("SEARCH t USING COVERING INDEX t_v (v=?)"),
            "{plan:?}"
        );
    }

    #[test]
    fn integers_arrive_exactly() {
        let extremes = [
            i64::MIN,
            i64::MIN + 1,
            -1,
            0,
            1,
            (1 << 53) + 1,
            i64::MAX - 1,
            i64::MAX,
        ];
        let integers: BTreeSet<_> = scattered(100_000)
            .map(u64::cast_signed)
            .chain(extremes)
            .collect();
        look_up(
            "INTEGER",
            &integers.into_iter().map(Value::Integer).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn reals_arrive_exactly() {
        let neighbours = scattered(30_000).flat_map(|bits| [bits, bits + 1]);
        let subnormal = scattered(20_000).map(|bits| bits >> 12);
        let extremes = [
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            0.0,
            0.1,
            9_007_199_254_740_993.0,
        ];
        let whole =
            scattered(20_000).map(|bits| f64::from(u32::try_from(bits >> 32).unwrap()).to_bits());
        let bits: BTreeSet<_> = neighbours
            .chain(subnormal)
            .chain(whole)
            .chain(extremes.map(f64::to_bits))
            .filter(|bits| !f64::from_bits(*bits).is_nan())
            .collect();
        assert!(bits.len() > 99_000);
        let reals: Vec<_> = bits
            .into_iter()
            .map(f64::from_bits)
            .map(Value::Real)
            .collect();
        look_up("REAL", &reals);
    }

    #[test]
    fn the_two_zeros_are_one() {
        let memory = table("REAL", [Value::Real(-0.0), Value::Real(0.0)]);
        let many = vec![Value::Real(-0.0); FEW + 1];
        assert_eq!(count(&memory, &many, false), 2);
    }

    #[test]
    fn texts_arrive_exactly() {
        let mut texts: BTreeSet<_> = scattered(100_000).map(|bits| format!("{bits:x}")).collect();
        texts.extend(
            [
                "",
                "007",
                "7",
                "7.0",
                "1e3",
                "null",
                "[1]",
                "'",
                "\"",
                "\\",
                "\u{1}",
                "\u{fffe}",
                "\u{10ffff}",
            ]
            .map(str::to_owned),
        );
        look_up(
            "TEXT",
            &texts.into_iter().map(Value::Text).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn blobs_arrive_exactly() {
        let mut blobs: BTreeSet<_> = scattered(100_000)
            .map(|bits| bits.to_le_bytes()[..usize::try_from(bits % 4).unwrap() + 5].to_vec())
            .collect();
        blobs.extend([vec![], vec![0], vec![0, 0], vec![b'a'], vec![0xff; 1_000]]);
        look_up(
            "BLOB",
            &blobs.into_iter().map(Value::Blob).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn mixed_lists_stay_parameters() {
        let mixed: Vec<_> = (0..9)
            .map(Value::Integer)
            .chain([
                Value::Text("a".into()),
                Value::Real(0.5),
                Value::Blob(vec![1]),
            ])
            .collect();
        let memory = table("ANY", mixed.iter().cloned());
        assert_eq!(count(&memory, &mixed, false), mixed.len());
    }
}
