//! What tasks did and saw, in the order of the clock.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use adya::{
    History, Opts, Report, Workload, check,
    history::{Id, Interner, Mop, Op, OpType, ReadValue, Scalar},
};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All that was appended to it.
    Lists,
    /// What was written last.
    Registers,
}

/// Where tasks write down when a transaction begins and ends.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Recorded>);

/// A history, with the commit numbers of its transactions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded {
    pub(crate) ops: Vec<Op>,
    numbers: HashMap<u64, i64>,
}

impl Log {
    pub(crate) fn begins(&self, process: i64, plan: &[Mop]) {
        self.push(process, OpType::Invoke, plan.to_vec(), None);
    }

    pub(crate) fn committed(&self, process: i64, seen: Vec<Mop>, number: Option<i64>) {
        self.push(process, OpType::Ok, seen, number);
    }

    pub(crate) fn failed(&self, process: i64, plan: &[Mop]) {
        self.push(process, OpType::Fail, plan.to_vec(), None);
    }

    fn push(&self, process: i64, kind: OpType, value: Vec<Mop>, number: Option<i64>) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.push(process, kind, value);
        if let Some(number) = number {
            let index = recorded.ops.len() as u64 - 1;
            recorded.numbers.insert(index, number);
        }
    }

    pub(crate) fn into_recorded(self) -> Recorded {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    pub(crate) fn push(&mut self, process: i64, kind: OpType, value: Vec<Mop>) {
        self.ops.push(Op {
            index: self.ops.len() as u64,
            kind,
            process: Some(process),
            value,
            time: None,
        });
    }

    /// A transaction that did this, begun and ended at once.
    pub(crate) fn push_whole(&mut self, process: i64, seen: Vec<Mop>) {
        let plan = seen.iter().map(unread).collect();
        self.push(process, OpType::Invoke, plan);
        self.push(process, OpType::Ok, seen);
    }

    pub(crate) fn check(&self, kind: Kind, model: &str) -> Report {
        let history = History::from_ops(self.ops.clone(), self.numbers_as_names());
        let opts = Opts {
            models: vec![model.to_owned()],
            wfr_keys: true,
            transaction_order: Some(self.numbers.clone()),
            ..Opts::default()
        };
        let workload = match kind {
            Kind::Lists => Workload::ListAppend,
            Kind::Registers => Workload::RwRegister,
        };
        check(&history, workload, &opts)
    }

    /// Keys and elements are numbers, and each is its own name.
    fn numbers_as_names(&self) -> Interner {
        let largest = self.largest();
        let mut interner = Interner::default();
        for number in 0..=largest {
            assert_eq!(interner.intern(Scalar::Int(i64::from(number))), number);
        }
        interner
    }

    /// The largest key or element.
    pub(crate) fn largest(&self) -> Id {
        let of = |mop: &Mop| match mop {
            Mop::Append { key, value } | Mop::Write { key, value } => *key.max(value),
            Mop::Read { key, .. } => *key,
        };
        let all = self.ops.iter().flat_map(|op| &op.value);
        all.map(of).max().unwrap_or(0)
    }

    pub(crate) fn committed(&self) -> usize {
        self.count(OpType::Ok)
    }

    pub(crate) fn failed(&self) -> usize {
        self.count(OpType::Fail)
    }

    fn count(&self, kind: OpType) -> usize {
        self.ops.iter().filter(|op| op.kind == kind).count()
    }
}

/// The same step before it was run.
fn unread(mop: &Mop) -> Mop {
    match mop {
        Mop::Read { key, .. } => Mop::Read {
            key: *key,
            value: ReadValue::Nil,
        },
        write => write.clone(),
    }
}
