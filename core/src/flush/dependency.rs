//! Order among rows that need each other.

/// Puts `0..needs.len()` in an order in which each comes after those it needs, else in its own order; and
/// whether there was one. On a circle one of them comes before what it needs.
pub(crate) fn in_order(needs: &[Vec<usize>]) -> (Vec<usize>, bool) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        Open,
        Done,
    }

    let mut marks = vec![Mark::Unseen; needs.len()];
    let mut order = Vec::with_capacity(needs.len());
    let mut possible = true;
    // Not by recursion: a chain may be as long as the save.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..needs.len() {
        if marks[start] != Mark::Unseen {
            continue;
        }
        marks[start] = Mark::Open;
        path.push((start, 0));
        while let Some((at, next)) = path.last_mut() {
            let at = *at;
            let Some(&need) = needs[at].get(*next) else {
                marks[at] = Mark::Done;
                order.push(at);
                path.pop();
                continue;
            };
            *next += 1;
            match marks[need] {
                Mark::Unseen => {
                    marks[need] = Mark::Open;
                    path.push((need, 0));
                }
                Mark::Open if need != at => possible = false,
                Mark::Open | Mark::Done => {}
            }
        }
    }
    (order, possible)
}

#[cfg(test)]
mod tests {
    use crate::flush::dependency::in_order;

    #[test]
    fn each_comes_after_what_it_needs() {
        assert_eq!(in_order(&[vec![2], vec![], vec![1]]), (vec![1, 2, 0], true));
        assert_eq!(in_order(&[vec![], vec![], vec![]]), (vec![0, 1, 2], true));
    }

    #[test]
    fn a_row_may_need_itself_but_not_a_circle() {
        assert_eq!(in_order(&[vec![0]]), (vec![0], true));
        assert_eq!(in_order(&[vec![1], vec![0]]), (vec![1, 0], false));
    }

    #[test]
    fn a_long_chain_is_no_deep_call() {
        let needs: Vec<_> = (0..100_000)
            .map(|at| if at < 99_999 { vec![at + 1] } else { vec![] })
            .collect();
        let (order, possible) = in_order(&needs);
        assert!(possible);
        assert_eq!((order[0], order[99_999]), (99_999, 0));
    }
}
