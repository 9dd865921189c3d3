//! Enums with data as columns, and enums whose columns have a CHECK.

use anabranch::{
    entity::Entity,
    error::{ErrorKind, Result},
    prelude::*,
    schema::create_tables,
};
use anabranch_tests::{Mode, execute, outsider, try_execute};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Entity)]
#[entity(index(columns(payment.card.number), name = "by_card"))]
struct Order {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    payment: Payment,
    #[entity(embed, prefix = "old_")]
    refund: Option<Payment>,
    note: String,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
#[entity(rename_all = "snake_case", check)]
enum Payment {
    Cash,
    Card {
        number: String,
        #[entity(column = "expires")]
        expiry: Option<i64>,
        #[entity(skip)]
        cached: i64,
    },
    #[entity(rename = "IBAN")]
    Transfer(Iban),
    Voucher(#[entity(embed)] Voucher),
    Both {
        #[entity(json)]
        parts: Vec<i64>,
        #[entity(embed, prefix = "first_")]
        first: Option<Voucher>,
    },
}

#[derive(Debug, Clone, PartialEq, EntityNewtype)]
struct Iban(String);

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Voucher {
    code: String,
    #[entity(embed, prefix = "")]
    valid: Valid,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
#[entity(tag = "type")]
enum Valid {
    Always,
    Until(i64),
}

fn card(number: &str) -> Payment {
    Payment::Card {
        number: number.to_owned(),
        expiry: None,
        cached: 0,
    }
}

fn voucher(code: &str) -> Voucher {
    Voucher {
        code: code.to_owned(),
        valid: Valid::Until(9),
    }
}

fn payments() -> Vec<Payment> {
    vec![
        Payment::Cash,
        card("1"),
        Payment::Transfer(Iban("NL1".to_owned())),
        Payment::Voucher(voucher("a")),
        Payment::Voucher(Voucher {
            valid: Valid::Always,
            ..voucher("b")
        }),
        Payment::Both {
            parts: vec![1, 2],
            first: Some(voucher("c")),
        },
        Payment::Both {
            parts: vec![],
            first: None,
        },
    ]
}

const fn order(payment: Payment, refund: Option<Payment>) -> Order {
    Order {
        id: 0,
        payment,
        refund,
        note: String::new(),
    }
}

async fn open(mode: Mode) -> Database {
    let db = mode.temporary().await;
    db.create_tables::<Order>().await.unwrap();
    db
}

#[test]
fn an_enum_with_data_is_its_kind_and_the_columns_of_every_variant() {
    let payment = Order::PAYMENT.index()..Order::REFUND.index();
    let names: Vec<_> = (Order::TABLE.columns[payment].iter())
        .map(|column| (column.name, column.field, column.nullable))
        .collect();
    assert_eq!(
        names,
        [
            ("payment_kind", "payment.kind", false),
            ("payment_card_number", "payment.card.number", true),
            ("payment_expires", "payment.card.expiry", true),
            ("payment_transfer", "payment.transfer", true),
            ("payment_voucher_code", "payment.voucher.code", true),
            ("payment_voucher_type", "payment.voucher.valid.type", true),
            ("payment_voucher_until", "payment.voucher.valid.until", true),
            ("payment_both_parts", "payment.both.parts", true),
            ("payment_first_code", "payment.both.first.code", true),
            ("payment_first_type", "payment.both.first.valid.type", true),
            (
                "payment_first_until",
                "payment.both.first.valid.until",
                true
            ),
        ]
    );
    assert!(Order::REFUND.then(Payment::KIND).definition().nullable);
    let number = Order::PAYMENT.then(Payment::CARD_NUMBER);
    assert_eq!(number.definition().name, "payment_card_number");
    let code = Order::PAYMENT
        .then(Payment::VOUCHER)
        .then(Voucher::VALID)
        .then(Valid::TYPE);
    assert_eq!(code.definition().name, "payment_voucher_type");
}

#[tokio::test]
async fn every_variant_comes_back_and_may_become_every_other() {
    for mode in Mode::ALL {
        let db = open(mode).await;
        for before in payments() {
            for after in payments() {
                let mut ctx = db.context();
                let order = ctx.add(order(before.clone(), Some(after.clone())));
                ctx.save_changes().await.unwrap();
                let read = Order::find(&db, ctx[order].id).await.unwrap().unwrap();
                assert_eq!(read, ctx[order]);
                ctx[order].payment = after.clone();
                ctx[order].refund = None;
                ctx.save_changes().await.unwrap();
                let read = Order::find(&db, ctx[order].id).await.unwrap().unwrap();
                assert_eq!((read.payment, read.refund), (after.clone(), None));
            }
        }
        let cards = Order::query()
            .filter(Order::PAYMENT.then(Payment::KIND).eq("card".to_owned()))
            .filter(Order::PAYMENT.then(Payment::CARD_NUMBER).starts_with("1"))
            .filter(Order::REFUND.then(Payment::KIND).is_null());
        assert_eq!(cards.count(&db).await.unwrap(), 7);
    }
}

#[tokio::test]
async fn a_row_that_is_no_variant_is_a_decode_error_that_names_the_column() -> Result<()> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let db = Database::open(file.path()).await?;
    db.create_tables::<Order>().await?;
    let mut ctx = db.context();
    ctx.add(order(card("1"), None));
    ctx.save_changes().await?;
    let other = outsider(file.path());
    other
        .execute_batch("PRAGMA ignore_check_constraints = 1")
        .unwrap();
    for (sql, column, message) in [
        (
            "UPDATE \"order\" SET payment_card_number = NULL",
            "payment_card_number",
            "expected text, found null",
        ),
        (
            "UPDATE \"order\" SET payment_card_number = '1', payment_transfer = 'NL1'",
            "payment_transfer",
            "NULL is expected: the row is of another variant",
        ),
        (
            "UPDATE \"order\" SET payment_kind = 'voucher', payment_card_number = NULL, payment_transfer = NULL",
            "payment_voucher_code",
            "expected text, found null",
        ),
        (
            "UPDATE \"order\" SET payment_kind = 'Cash'",
            "payment_kind",
            "the stored value is no variant of Payment",
        ),
        (
            "UPDATE \"order\" SET payment_kind = 'cash', old_card_number = '1'",
            "old_kind",
            "expected text, found null",
        ),
    ] {
        other.execute_batch(sql).unwrap();
        let error = Order::find(&db, 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert_eq!(error.column(), Some(column));
        assert_eq!(error.to_string(), format!("order.{column}: {message}"));
    }
    Ok(())
}

#[test]
fn single_columns_change_within_the_variant_only() {
    let mut one = order(card("1"), None);
    let index =
        |column: anabranch::entity::Column<Payment, String>| Order::PAYMENT.then(column).index();
    let number = index(Payment::CARD_NUMBER);
    one.assign(number, "2".as_text()).unwrap();
    one.assign(index(Payment::KIND), "card".as_text()).unwrap();
    one.assign(Order::PAYMENT.then(Payment::TRANSFER).index(), NULL)
        .unwrap();
    assert_eq!(one.payment, card("2"));
    let kind = one.assign(index(Payment::KIND), "cash".as_text());
    assert_eq!(
        kind.unwrap_err().to_string(),
        "another variant is there: the enum can only be set as a whole"
    );
    let other = one.assign(
        Order::PAYMENT.then(Payment::TRANSFER).index(),
        "NL".as_text(),
    );
    assert_eq!(
        other.unwrap_err().to_string(),
        "is of another variant than is there: the enum can only be set as a whole"
    );
    assert!(one.assign(number, NULL).is_err());
    assert_eq!(one.payment, card("2"));
}

#[tokio::test]
async fn json_sets_fields_of_the_variant_or_the_whole() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    let one = ctx.add(order(card("1"), None));
    ctx.save_changes().await?;
    ctx.set_values(
        one,
        &json!({"payment": {"card": {"number": "2", "expiry": 7}}}),
    )?;
    let Payment::Card { number, expiry, .. } = &ctx[one].payment else {
        panic!("it is a card")
    };
    assert_eq!((number.as_str(), *expiry), ("2", Some(7)));

    let before = ctx[one].clone();
    for refused in [
        json!({"note": "x", "payment": {"kind": "IBAN"}}),
        json!({"note": "x", "payment": {"kind": "Card"}}),
        json!({"note": "x", "payment": {"transfer": "NL1"}}),
        json!({"note": "x", "payment": {"card": {"number": null}}}),
        json!({"note": "x", "refund": {"card": {"number": "3"}}}),
    ] {
        let error = ctx.set_values(one, &refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{refused}");
        assert_eq!(ctx[one], before, "all of it, or none");
    }

    let whole = json!({
        "payment": {"kind": "IBAN", "card": null, "transfer": "NL1"},
        "refund": {"kind": "card", "card": {"number": "3"}},
    });
    ctx.set_values(one, &whole)?;
    ctx.save_changes().await?;
    let read = Order::find(&db, ctx[one].id).await?.unwrap();
    assert_eq!(read.payment, Payment::Transfer(Iban("NL1".to_owned())));
    assert_eq!(read.refund, Some(card("3")));
    ctx.set_values(one, &json!({"refund": null}))?;
    assert_eq!(ctx[one].refund, None);
    Ok(())
}

/// Two contexts without a version: the columns of an enum are written together, so the last save is a whole.
#[tokio::test]
async fn two_saves_at_once_leave_one_variant_not_a_mixture() -> Result<()> {
    let db = open(Mode::Inline).await;
    let mut ctx = db.context();
    let one = ctx.add(order(card("1"), Some(card("1"))));
    ctx.save_changes().await?;
    let mut other = db.context();
    let same = other.find::<Order>(ctx[one].id).await?.unwrap();
    other[same].payment = Payment::Cash;
    other[same].refund = None;
    other.save_changes().await?;

    ctx[one].payment = card("2");
    ctx[one].refund = Some(card("2"));
    ctx.save_changes().await?;
    assert_eq!(Order::find(&db, ctx[one].id).await?.unwrap(), ctx[one]);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Parcel {
    #[entity(id)]
    id: i64,
    #[entity(embed)]
    payment: Payment,
    note: String,
    #[entity(version)]
    version: i64,
}

#[tokio::test]
async fn a_merge_takes_an_enum_as_a_whole() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<Parcel>().await?;
    let mut ctx = db.context();
    let parcel = |payment| Parcel {
        id: 0,
        payment,
        note: String::new(),
        version: 0,
    };
    let one = ctx.add(parcel(card("1")));
    ctx.save_changes().await?;
    for (ours, theirs) in [
        (None, Payment::Cash),
        (Some(card("2")), Payment::Transfer(Iban("NL1".to_owned()))),
    ] {
        let mut other = db.context();
        let same = other.find::<Parcel>(ctx[one].id).await?.unwrap();
        other[same].payment = theirs.clone();
        other.save_changes().await?;
        ctx[one].note.push('x');
        if let Some(ours) = &ours {
            ctx[one].payment = ours.clone();
        }
        let error = ctx.save_changes().await.unwrap_err();
        if ours.is_some() {
            let clashing = ctx.merge(&error).unwrap_err();
            assert_eq!(clashing.conflicts()[0].clashing, ["payment_kind"]);
        }
        ctx.merge_with(&error, |clash| {
            assert!(clash.is(Parcel::PAYMENT.then(Payment::CARD_NUMBER)));
            Winner::Store
        })?;
        assert_eq!(ctx[one].payment, theirs);
        ctx.save_changes().await?;
        let read = Parcel::find(&db, ctx[one].id).await?.unwrap();
        assert_eq!(read, ctx[one]);
    }
    ctx[one].payment = card("9");
    ctx.reset_column(one, Parcel::PAYMENT.then(Payment::CARD_NUMBER));
    assert_eq!(ctx[one].payment, Payment::Transfer(Iban("NL1".to_owned())));
    assert!(!ctx.has_changes());
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Entity)]
struct Task {
    #[entity(id)]
    id: i64,
    #[entity(default = Status::New)]
    status: Status,
    last: Option<Status>,
    level: Level,
    #[entity(embed)]
    inner: Inner,
}

#[derive(Debug, Clone, PartialEq, EntityEmbed)]
struct Inner {
    #[entity(column = "the \"state\"")]
    state: Wrapped,
    free: Free,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
#[entity(check)]
enum Status {
    New,
    #[entity(rename = "it's done")]
    Done,
}

#[derive(Debug, Clone, PartialEq, EntityNewtype)]
struct Wrapped(Status);

#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
#[entity(integer, check)]
enum Level {
    Low = -1,
    High = 1 << 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EntityEnum)]
enum Free {
    One,
}

#[test]
fn a_check_of_an_enum_names_its_stored_values() {
    let statements = create_tables(&[Task::TABLE]).unwrap();
    expect_test::expect![[r#"
        CREATE TABLE IF NOT EXISTS "task" (
          "id" INTEGER PRIMARY KEY,
          "status" TEXT NOT NULL DEFAULT 'New' CHECK ("status" IN ('New', 'it''s done')),
          "last" TEXT CHECK ("last" IN ('New', 'it''s done')),
          "level" INTEGER NOT NULL CHECK ("level" IN (-1, 8)),
          "inner_the ""state""" TEXT NOT NULL CHECK ("inner_the ""state""" IN ('New', 'it''s done')),
          "inner_free" TEXT NOT NULL
        ) STRICT"#]]
    .assert_eq(&statements[0]);
}

#[tokio::test]
async fn a_check_of_an_enum_refuses_what_other_programs_write() -> Result<()> {
    let db = Mode::Inline.temporary().await;
    db.create_tables::<(Task, Order)>().await?;
    let mut ctx = db.context();
    let task = ctx.add(Task {
        id: 0,
        status: Status::Done,
        last: None,
        level: Level::High,
        inner: Inner {
            state: Wrapped(Status::New),
            free: Free::One,
        },
    });
    ctx.add(order(Payment::Cash, None));
    ctx.save_changes().await?;
    assert_eq!(Task::find(&db, ctx[task].id).await?.unwrap(), ctx[task]);
    for sql in [
        "UPDATE task SET status = 'done'",
        "UPDATE task SET last = ''",
        "UPDATE task SET level = 0",
        "UPDATE task SET \"inner_the \"\"state\"\"\" = 'Old'",
        "UPDATE \"order\" SET payment_kind = 'iban'",
        "UPDATE \"order\" SET old_kind = 'iban'",
    ] {
        let error = try_execute(&db, sql).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Check, "{sql}");
    }
    execute(&db, "UPDATE task SET inner_free = 'anything'").await;
    Ok(())
}

/// A value as it stands in a row.
trait AsText {
    fn as_text(&self) -> anabranch::value::ValueRef<'_>;
}

impl AsText for str {
    fn as_text(&self) -> anabranch::value::ValueRef<'_> {
        anabranch::value::ValueRef::Text(self.as_bytes())
    }
}

const NULL: anabranch::value::ValueRef<'static> = anabranch::value::ValueRef::Null;
