//! Order among tables: those that are referred to come first.

use crate::entity::TableDef;

/// The place of a table in the order of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Tables that refer to each other, in a circle, share one.
    pub(crate) level: usize,
    /// Whether the table refers to itself, or is on such a circle: then rows have an order too.
    pub(crate) circular: bool,
}

/// The ranks of tables.
///
/// It walks through tables beyond those asked for: deleting a row may cascade through a table that is not part
/// of the save to one that is.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    nodes: Vec<Node>,
    stack: Vec<usize>,
    levels: usize,
}

#[derive(Debug)]
struct Node {
    table: &'static TableDef,
    low: usize,
    rank: Option<Rank>,
}

impl Ranks {
    /// The rank of a table.
    pub(crate) fn of(&mut self, table: &'static TableDef) -> Rank {
        let node = match self.find(table) {
            Some(node) => node,
            None => self.visit(table),
        };
        self.nodes[node].rank.unwrap_or(Rank {
            level: 0,
            circular: false,
        })
    }

    fn find(&self, table: &'static TableDef) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| node.table.name.eq_ignore_ascii_case(table.name))
    }

    /// Tarjan's strongly connected components; they come out with those referred to first.
    fn visit(&mut self, table: &'static TableDef) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Node {
            table,
            low: at,
            rank: None,
        });
        self.stack.push(at);
        let mut refers_to_itself = false;
        for foreign_key in table.foreign_keys() {
            let target = (foreign_key.reference.table)();
            refers_to_itself |= target.name.eq_ignore_ascii_case(table.name);
            match self.find(target) {
                None => {
                    let node = self.visit(target);
                    self.nodes[at].low = self.nodes[at].low.min(self.nodes[node].low);
                }
                Some(node) if self.nodes[node].rank.is_none() => {
                    self.nodes[at].low = self.nodes[at].low.min(node);
                }
                Some(_) => {}
            }
        }
        if self.nodes[at].low == at {
            let level = self.levels;
            self.levels += 1;
            let circular = refers_to_itself || self.stack.last() != Some(&at);
            while let Some(node) = self.stack.pop() {
                self.nodes[node].rank = Some(Rank { level, circular });
                if node == at {
                    break;
                }
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        entity::{
            Entity,
            samples::{Customer, Folder, Order, Player, Team},
        },
        schema::Ranks,
    };

    #[test]
    fn those_referred_to_come_first() {
        let mut ranks = Ranks::default();
        assert!(ranks.of(Order::TABLE).level > ranks.of(Customer::TABLE).level);
        assert!(!ranks.of(Order::TABLE).circular);
    }

    #[test]
    fn circles_share_a_rank() {
        let mut ranks = Ranks::default();
        assert_eq!(ranks.of(Team::TABLE), ranks.of(Player::TABLE));
        assert!(ranks.of(Team::TABLE).circular);
        assert!(ranks.of(Folder::TABLE).circular);
    }
}
