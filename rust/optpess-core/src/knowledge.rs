//! What a user declares to be known of the problem: stationarity, mean rewards, mean costs, possible successors.
//!
//! Each entry narrows the confidence sets of a learner. A guarantee that uses knowledge holds if the knowledge is true.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::error::{ArrayIndex, Error, Result};
use crate::shape::Shape;
use crate::table::Signal;

/// Declared facts; by default none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Knowledge {
    /// Whether transitions, rewards and costs are the same at every step.
    pub stationary: bool,
    /// The mean rewards.
    pub rewards: Option<Signal>,
    /// The mean costs, one signal a constraint.
    pub costs: Option<Vec<Signal>>,
    /// The possible successors.
    pub support: Option<Support>,
}

/// Which states may follow each pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Support {
    shape: Shape,
    /// Between the rows of two steps: |S| |A|, or 0 if all steps share their rows.
    stride: usize,
    rows: Vec<Vec<u32>>, // [H, S, A] or [S, A] lists of states, ascending
}

impl Support {
    /// From a mask `[H, S, A, S]`, or `[S, A, S]` for all steps. Refuses a pair without a successor.
    pub fn new(shape: Shape, mask: &[bool]) -> Result<Self> {
        let states = shape.num_states();
        let stride = if mask.len() == shape.pairs() * states {
            0
        } else {
            shape.pairs()
        };
        let rows = (shape.horizon() - 1) * stride + shape.pairs();
        if mask.len() != rows * states {
            return Err(Error::ShapeMismatch {
                array: "support",
                axes: "[H, S, A, S] or [S, A, S]",
                expected: [&shape.sizes()[..], &[states]].concat(),
                found: vec![mask.len()],
            });
        }
        let lists = mask.chunks_exact(states).map(|row| {
            let possible = (0_u32..).zip(row).filter(|(_, possible)| **possible);
            possible.map(|(state, _)| state).collect()
        });
        let rows: Vec<Vec<u32>> = lists.collect();
        if let Some(row) = rows.iter().position(Vec::is_empty) {
            let [step, state, action] = shape.triple_index(row);
            let index = if stride == 0 {
                vec![state, action]
            } else {
                vec![step, state, action]
            };
            return Err(Error::NotADistribution {
                place: ArrayIndex::new("support", &index),
                sum: 0.0,
                required: "at least one possible successor",
            });
        }
        Ok(Self {
            shape,
            stride,
            rows,
        })
    }

    /// The possible successors of a pair, ascending.
    #[must_use]
    #[inline(always)]
    pub fn successors(&self, step: usize, pair: usize) -> &[u32] {
        &self.rows[step * self.stride + pair]
    }

    /// Whether the list of a pair is the same at every step.
    #[must_use]
    pub fn is_stationary(&self) -> bool {
        self.stride == 0
    }
}

impl Knowledge {
    /// Refuses tables of another shape or number, and tables that vary over steps of a problem declared stationary.
    pub fn check(&self, shape: Shape, num_constraints: usize) -> Result<()> {
        let costs = self.costs.iter().flatten();
        let tables = self.rewards.iter().map(|table| ("rewards", table));
        for (array, table) in tables.chain(costs.map(|table| ("costs", table))) {
            if table.shape() != shape {
                return Err(Error::ShapeMismatch {
                    array,
                    axes: "[H, S, A]",
                    expected: shape.sizes().to_vec(),
                    found: table.shape().sizes().to_vec(),
                });
            }
            if self.stationary && !table.is_stationary() {
                return Err(varies(array, shape));
            }
        }
        if let Some(costs) = &self.costs
            && costs.len() != num_constraints
        {
            return Err(Error::ShapeMismatch {
                array: "costs",
                axes: "[M, H, S, A]",
                expected: vec![num_constraints],
                found: vec![costs.len()],
            });
        }
        match &self.support {
            Some(support) if support.shape != shape => Err(Error::ShapeMismatch {
                array: "support",
                axes: "[H, S, A, S]",
                expected: shape.sizes().to_vec(),
                found: support.shape.sizes().to_vec(),
            }),
            Some(support) if self.stationary && !support.is_stationary() => {
                Err(varies("support", shape))
            }
            _ => Ok(()),
        }
    }

    /// Gives the rows of actions that do not exist the entries of those they stand in for; what was declared of them is
    /// not read.
    pub(crate) fn restrict(&mut self, actions: &StandIns) {
        let costs = self.costs.iter_mut().flatten();
        for table in self.rewards.iter_mut().chain(costs) {
            actions.copy_rows(table.data_mut(), 1);
        }
        if let Some(support) = &mut self.support {
            actions.copy_rows(&mut support.rows, 1);
        }
    }

    /// Refuses a successor that was declared impossible.
    #[inline(always)]
    pub fn check_successor(
        &self,
        step: usize,
        pair: usize,
        next: u32,
        actions: usize,
    ) -> Result<()> {
        match &self.support {
            Some(support) if !support.successors(step, pair).contains(&next) => {
                Err(Error::KnowledgeContradicted {
                    place: ArrayIndex::new(
                        "support",
                        &[step, pair / actions, pair % actions, next as usize],
                    ),
                    declared: "impossible".to_owned(),
                    found: "was observed".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

fn varies(array: &'static str, shape: Shape) -> Error {
    Error::ShapeMismatch {
        array,
        axes: "[S, A] or [S, A, S] of a problem declared stationary",
        expected: shape.sizes()[1..].to_vec(),
        found: shape.sizes().to_vec(),
    }
}
