//! Evaluation, induction, the chord method, mixing and certification in the plainest way, for `plain`. Shares no
//! code with the core.

use crate::plain::Inputs;

/// A deterministic policy with its cost and reward.
#[derive(Clone)]
pub struct Vertex {
    actions: Vec<usize>, // [H, S]
    cost: f64,
    reward: f64,
}

/// A kernel with the way in which its rows are summed.
pub struct Kernel {
    pub rows: Vec<f64>, // [H, S, A, S]
    pub listed: bool,
}

impl Kernel {
    /// sum over s' of P(s'|row) v(s').
    fn expect(&self, row: usize, values: &[f64]) -> f64 {
        let row = self.row(row, values.len());
        if self.listed {
            let likely = row.iter().zip(values).filter(|(p, _)| **p > 0.0);
            likely.fold(0.0, |sum, (p, value)| sum + p * value)
        } else {
            dot(row, values)
        }
    }

    fn row(&self, row: usize, states: usize) -> &[f64] {
        &self.rows[row * states..][..states]
    }
}

/// Positions modulo 4 are added up apart, then sums 0 and 2, 1 and 3, both of these, and what is left over.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let whole = x.len() - x.len() % 4;
    let mut sums = [0.0; 4];
    for place in 0..whole {
        sums[place % 4] += x[place] * y[place];
    }
    let sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    (whole..x.len()).fold(sum, |sum, place| sum + x[place] * y[place])
}

/// Two signals on one kernel.
pub struct Problem<'a> {
    pub inputs: &'a Inputs,
    pub kernel: &'a Kernel,
    pub reward: &'a [f64],
    pub cost: &'a [f64],
}

impl Inputs {
    /// Backward recursion: `choose` is given step, state and the action values of each signal there, and says which
    /// value each signal takes. Returns the values from the start.
    fn sweep<const N: usize>(
        &self,
        kernel: &Kernel,
        signals: [&[f64]; N],
        mut choose: impl FnMut(usize, [&[f64]; N]) -> [f64; N],
    ) -> [f64; N] {
        let (states, actions) = (self.states, self.actions);
        let mut next = [(); N].map(|()| vec![0.0; states]);
        for step in (0..self.horizon).rev() {
            let mut here = [(); N].map(|()| vec![0.0; states]);
            for state in 0..states {
                let place = step * states + state;
                let mut own = [(); N].map(|()| vec![0.0; actions]);
                for (which, signal) in signals.iter().enumerate() {
                    for action in 0..actions {
                        let row = place * actions + action;
                        own[which][action] = signal[row];
                        if step + 1 < self.horizon {
                            own[which][action] += kernel.expect(row, &next[which]);
                        }
                    }
                }
                let chosen = choose(place, own.each_ref().map(Vec::as_slice));
                for (values, value) in here.iter_mut().zip(chosen) {
                    values[state] = value;
                }
            }
            next = here;
        }
        next.each_ref().map(|values| dot(&self.initial, values))
    }

    /// V of a policy `[H, S, A]`.
    pub fn evaluate(&self, policy: &[f64], signal: &[f64], kernel: &Kernel) -> f64 {
        let [value] = self.sweep(kernel, [signal], |place, [own]| {
            let choice = &policy[place * self.actions..][..self.actions];
            [own.iter().zip(choice).fold(0.0, |sum, (q, p)| sum + q * p)]
        });
        value
    }

    /// The best actions for one signal, ties to the lowest, and their value.
    pub fn maximise(&self, signal: &[f64], kernel: &Kernel) -> (Vec<usize>, f64) {
        let mut actions = vec![0; self.horizon * self.states];
        let [value] = self.sweep(kernel, [signal], |place, [own]| {
            for action in 1..own.len() {
                if own[action] > own[actions[place]] {
                    actions[place] = action;
                }
            }
            [own[actions[place]]]
        });
        (actions, value)
    }

    /// Probabilities `[H, S, A]` of a deterministic policy.
    pub fn policy(&self, actions: &[usize]) -> Vec<f64> {
        let row = |&taken: &usize| (0..self.actions).map(move |a| f64::from(u8::from(a == taken)));
        actions.iter().flat_map(row).collect()
    }

    /// Where a deterministic policy arrives, d_h(s).
    fn arrivals(&self, actions: &[usize], kernel: &Kernel) -> Vec<f64> {
        let mut arrivals = self.initial.clone();
        for step in 0..self.horizon {
            let mut next = vec![0.0; self.states];
            for state in 0..self.states {
                let place = step * self.states + state;
                let row = kernel.row(place * self.actions + actions[place], self.states);
                for (target, p) in next.iter_mut().zip(row) {
                    *target += arrivals[place] * p;
                }
            }
            arrivals.extend(next);
        }
        arrivals
    }
}

/// Actions whose first criterion differs by less than this, relatively, are told apart by the second.
const TIE_WIDTH: f64 = 1e-13;

impl Problem<'_> {
    /// The most reward and then the least cost, or the other way round.
    fn extreme(&self, cost_first: bool) -> Vertex {
        let mut actions = vec![0; self.inputs.horizon * self.inputs.states];
        let [reward, cost] =
            self.inputs
                .sweep(self.kernel, [self.reward, self.cost], |place, own| {
                    let [gains, losses] =
                        [own[0].to_vec(), own[1].iter().map(|cost| -cost).collect()];
                    let [first, second] = if cost_first {
                        [losses, gains]
                    } else {
                        [gains, losses]
                    };
                    let most = first.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let size = first
                        .iter()
                        .fold(0.0_f64, |size, value| size.max(value.abs()));
                    let mut best = f64::NEG_INFINITY;
                    for action in 0..first.len() {
                        if first[action] >= most - TIE_WIDTH * size && second[action] > best {
                            (best, actions[place]) = (second[action], action);
                        }
                    }
                    own.map(|values| values[actions[place]])
                });
        Vertex {
            actions,
            cost,
            reward,
        }
    }

    fn locate(&self, actions: Vec<usize>) -> Vertex {
        let signals = [self.reward, self.cost];
        let [reward, cost] = self.inputs.sweep(self.kernel, signals, |place, own| {
            own.map(|values| values[actions[place]])
        });
        Vertex {
            actions,
            cost,
            reward,
        }
    }

    /// The chord method: the two policies that the best one within the limit mixes, the weight of the second, and
    /// whether the next search may start from them.
    pub fn best_within(&self, limit: f64, last: Option<[Vertex; 2]>) -> ([Vertex; 2], f64, bool) {
        let last = last.map(|ends| ends.map(|end| self.locate(end.actions)));
        let brackets = |ends: &[Vertex; 2]| ends[0].cost <= limit && limit < ends[1].cost;
        let [mut below, mut above] = match last.filter(brackets) {
            Some(ends) => ends,
            None => {
                let most_reward = self.extreme(false);
                if most_reward.cost <= limit {
                    return ([most_reward.clone(), most_reward], 0.0, false);
                }
                [self.extreme(true), most_reward]
            }
        };
        assert!(below.cost <= limit, "pi0 is within the limit");
        let noise = 4.0 * f64::EPSILON * (self.inputs.horizon as f64 + 8.0);
        loop {
            let (rise, run) = (above.reward - below.reward, above.cost - below.cost);
            let slope = if rise > 0.0 && run > 0.0 {
                rise / run
            } else {
                0.0
            };
            let signals = self.reward.iter().zip(self.cost);
            let lagrangian: Vec<f64> = signals.map(|(r, c)| r - slope * c).collect();
            let (actions, most) = self.inputs.maximise(&lagrangian, self.kernel);
            let height = |end: &Vertex| end.reward - slope * end.cost;
            let size = |end: &Vertex| end.reward.abs() + slope * end.cost.abs();
            let chord = height(&below).max(height(&above));
            let size_of_ends = size(&below).max(size(&above));
            let trial = self.locate(actions);
            let rises = height(&trial) - chord > noise * size(&trial).max(size_of_ends);
            if most - chord > noise * size_of_ends && rises {
                if trial.cost <= limit {
                    below = trial;
                } else {
                    above = trial;
                }
                continue;
            }
            let weight = if slope > 0.0 {
                ((limit - below.cost) / (above.cost - below.cost)).clamp(0.0, 1.0)
            } else {
                0.0
            };
            return ([below, above], weight, true);
        }
    }

    /// The Markov policy with the occupancy (1 - w) q^below + w q^above; pi0 where neither arrives.
    pub fn mix(&self, ends: &[Vertex; 2], weight: f64) -> Vec<f64> {
        let inputs = self.inputs;
        let mut mixed = inputs.baseline.clone();
        let arrivals = ends
            .each_ref()
            .map(|end| inputs.arrivals(&end.actions, self.kernel));
        for place in 0..inputs.horizon * inputs.states {
            let masses = [
                (1.0 - weight) * arrivals[0][place],
                weight * arrivals[1][place],
            ];
            let total = masses[0] + masses[1];
            if total > 0.0 {
                let row = &mut mixed[place * inputs.actions..][..inputs.actions];
                row.fill(0.0);
                for (end, mass) in ends.iter().zip(masses) {
                    row[end.actions[place]] += mass / total;
                }
            }
        }
        mixed
    }

    /// Nothing above the limit is played. Repairing a policy that rounding has put above it is left to the core's
    /// own tests: no run that is compared with this one needs it.
    pub fn certified(&self, policy: Vec<f64>, limit: f64) -> Vec<f64> {
        let cost = self.inputs.evaluate(&policy, self.cost, self.kernel);
        assert!(cost <= limit, "{cost} is above {limit}");
        policy
    }
}
