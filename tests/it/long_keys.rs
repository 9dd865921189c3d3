//! Keys of many columns: saved, found, referred to and followed like any other.

use anabranch::{error::Result, prelude::*, value::Value};
use anabranch_tests::Mode;
use uuid::Uuid;

/// Twelve columns, of every type that a key can have.
#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(without_rowid, has_many(readings: Reading))]
struct Sensor {
    #[entity(id)]
    region: String,
    #[entity(id)]
    site: i64,
    #[entity(id)]
    hall: Hall,
    #[entity(id)]
    row: Uuid,
    #[entity(id)]
    rack: Value,
    #[entity(id)]
    shelf: i64,
    #[entity(id)]
    slot: i64,
    #[entity(id)]
    board: i64,
    #[entity(id)]
    bus: i64,
    #[entity(id)]
    port: i64,
    #[entity(id)]
    pin: i64,
    #[entity(id)]
    channel: String,
    label: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EntityNewtype)]
#[entity(key)]
struct Hall(i64);

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(foreign_key(
    columns(region, site, hall, row, rack, shelf, slot, board, bus, port, pin, channel),
    references = Sensor,
    relation = sensor,
    on_delete = Cascade
))]
struct Reading {
    #[entity(id)]
    id: i64,
    region: String,
    site: i64,
    hall: Hall,
    row: Uuid,
    rack: Value,
    shelf: i64,
    slot: i64,
    board: i64,
    bus: i64,
    port: i64,
    pin: i64,
    channel: Option<String>,
    degrees: f64,
}

/// They differ in the last column of the key alone.
fn sensor(channel: &str) -> Sensor {
    Sensor {
        region: "north".into(),
        site: 1,
        hall: Hall(2),
        row: Uuid::from_u128(3),
        rack: Value::Text("four".into()),
        shelf: 5,
        slot: 6,
        board: 7,
        bus: 8,
        port: 9,
        pin: 10,
        channel: channel.into(),
        label: format!("of {channel}"),
    }
}

fn reading(of: &Sensor, degrees: f64) -> Reading {
    let of = of.clone();
    Reading {
        id: 0,
        region: of.region,
        site: of.site,
        hall: of.hall,
        row: of.row,
        rack: of.rack,
        shelf: of.shelf,
        slot: of.slot,
        board: of.board,
        bus: of.bus,
        port: of.port,
        pin: of.pin,
        channel: Some(of.channel),
        degrees,
    }
}

#[tokio::test]
async fn a_key_of_twelve_columns_is_a_key_like_any_other() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Sensor, Reading)>().await?;
    let mut ctx = db.context();
    // The children first, so that the order is that of the references.
    for degrees in [20.5, 21.5] {
        ctx.add(reading(&sensor("a"), degrees));
    }
    let nobodys = ctx.add(Reading {
        channel: None,
        ..reading(&sensor("b"), 0.0)
    });
    let (first, second) = (ctx.add(sensor("a")), ctx.add(sensor("b")));
    assert_eq!(ctx.save_changes().await?.inserted, 5);

    let key = sensor("b").key();
    assert_eq!(key.11, "b");
    let found = Sensor::find(&db, key.clone()).await?;
    assert_eq!(found, Some(sensor("b")));
    assert_eq!(ctx.find::<Sensor>(key).await?, Some(second));
    let mut other = sensor("b").key();
    other.0 = "south".into();
    assert_eq!(Sensor::find(&db, other).await?, None);

    let query = Sensor::query().order_by(Sensor::CHANNEL.asc());
    let with = query.with(Sensor::READINGS).all(&db).await?;
    let counts: Vec<_> = (with.iter())
        .map(|(sensor, readings)| (&sensor.channel[..], readings.len()))
        .collect();
    assert_eq!(counts, [("a", 2), ("b", 0)]);
    let of_first = Reading::query().filter(Reading::SENSOR.any(Sensor::LABEL.eq("of a")));
    assert_eq!(of_first.count(&db).await?, 2);

    ctx[second].label = "renamed".into();
    ctx.remove(first); // and its readings
    ctx.save_changes().await?;
    let left = Reading::query().all(&db).await?;
    assert_eq!(left, [ctx[nobodys].clone()]);
    let mut another = db.context();
    another.add(sensor("b"));
    let twice = another.save_changes().await.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Unique, "{twice}");
    ctx.add(reading(&sensor("none such"), 1.0));
    let error = ctx.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignKey);
    Ok(())
}
