//! The stored form of a learner: bytes with a version and a checksum, and the checks that its parts fit each other.
//!
//! What is stored is what the learner was told and what it has seen. What follows from both is made anew, or compared
//! with what is made anew, so that bytes of another origin cannot give a learner other bonuses than its own.

use postcard::ser_flavors::Size;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::confidence::constants::Schedule;
use crate::confidence::{OptimisticCost, OptimisticReward, PessimisticCost};
use crate::error::{Error, Result};
use crate::learn::{AnyLearner, Learner, LiveLearner, OptPessLp, OptPessMix, OptPessPrimalDual};
use crate::plan::{ActionPoint, ChordSearch, GreedyPlan};
use crate::shape::{Shape, with_stored_bytes};
use crate::table::zeros;

/// The first bytes of everything that is stored here; the last one is the version of the form.
const TAG: [u8; 8] = *b"optpess\x02";
const HEADER: usize = TAG.len() + size_of::<u64>();

/// A value as bytes: the tag, a checksum, and the value in postcard's form.
pub(crate) fn to_bytes<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>> {
    let failed = |_| Error::StoredState { what };
    let size = postcard::serialize_with_flavor(value, Size::default()).map_err(failed)?;
    let mut bytes: Vec<u8> = zeros(what, HEADER + size)?;
    postcard::to_slice(value, &mut bytes[HEADER..]).map_err(failed)?;
    let checksum = checksum(&bytes[HEADER..]);
    bytes[..TAG.len()].copy_from_slice(&TAG);
    bytes[TAG.len()..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// The value in bytes of [`to_bytes`], which are used up.
pub(crate) fn from_bytes<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    let refused = Error::StoredState { what };
    let Some((header, value)) = bytes.split_at_checked(HEADER) else {
        return Err(refused);
    };
    let (tag, sum) = header.split_at(TAG.len());
    if tag != TAG || sum != checksum(value).to_le_bytes() {
        return Err(refused);
    }
    match with_stored_bytes(value.len(), || postcard::take_from_bytes(value)) {
        Ok((found, [])) => Ok(found),
        _ => Err(refused),
    }
}

/// The 64-bit hash of Fowler, Noll and Vo, variant 1a. It differs for any two texts that differ in one byte.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Refuses a part that does not fit the others.
pub(crate) fn check(what: &'static str, fits: bool) -> Result<()> {
    if fits {
        Ok(())
    } else {
        Err(Error::StoredState { what })
    }
}

/// Refuses a search of another shape.
pub(crate) fn check_search<P: ActionPoint>(search: &ChordSearch<P>, shape: Shape) -> Result<()> {
    let chord = search.chord();
    let ends = [chord.below(), chord.above()];
    let fits = ends.iter().all(|point| point.fits(shape));
    check("the last plan of a learner", fits)
}

impl LiveLearner {
    /// The learner as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        to_bytes("a learner", self)
    }

    /// The learner of [`LiveLearner::to_bytes`]. Refuses bytes that are damaged or whose parts do not fit each other.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let live: Self = from_bytes("a learner", bytes)?;
        live.check_stored()?;
        Ok(live)
    }

    /// A copy, or an error if there is no memory for it.
    pub fn try_clone(&self) -> Result<Self> {
        self.learner().check_memory()?;
        Ok(self.clone())
    }
}

impl AnyLearner {
    /// Refuses a learner whose parts do not fit each other.
    pub(crate) fn check_stored(&self) -> Result<()> {
        let shape = self.shape();
        self.experience().check_stored()?;
        check("the policy of a learner", self.policy().shape() == shape)?;
        if let Some((baseline, _)) = self.claimed_baseline() {
            check("the baseline of a learner", baseline.shape() == shape)?;
        }
        if let Some(mixture) = self.mixture() {
            mixture.check_stored(shape, &self.cost_limits())?;
        }
        match self {
            Self::OptPessLp(learner) => learner.check_stored(),
            Self::OptPessPrimalDual(learner) => learner.check_stored(),
            Self::OptPessMix(learner) => learner.check_stored(),
            Self::AlwaysBaseline(learner) => learner.check_stored(),
            Self::UnconstrainedOptimistic(learner) => learner.check_stored(),
            Self::OptCmdp(learner) => learner.check_stored(),
            Self::OptCmdpBonus(learner) => learner.check_stored(),
            Self::OptDualCmdp(learner) => learner.check_stored(),
            Self::OptPrimalDualCmdp(learner) => learner.check_stored(),
            Self::Opdop(learner) => learner.check_stored(),
            Self::Cucrl(learner) => learner.check_stored(),
            Self::Sops(learner) => learner.check_stored(),
        }
    }

    /// Refuses if the memory of a copy cannot be allocated. It is allocated once and given back: a copy that fails
    /// half-way would end the process.
    pub(crate) fn check_memory(&self) -> Result<()> {
        // Tables [H, S, A]: signals, policies and plans; sets and bets with several hundred bytes a row.
        let a_row = match self {
            Self::OptPessMix(_) => 1024,
            _ => 256,
        };
        let tables = self.shape().triples().saturating_mul(a_row);
        let bytes = self.estimates().bytes().saturating_add(tables);
        check_memory("a copy of a learner", bytes)
    }
}

/// Refuses if so many bytes cannot be allocated.
fn check_memory(what: &'static str, bytes: usize) -> Result<()> {
    let mut probe: Vec<u8> = Vec::new();
    match probe.try_reserve_exact(bytes) {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::TooLarge {
            what,
            sizes: vec![bytes],
            allowed: usize::MAX,
        }),
    }
}

impl OptPessLp {
    /// Refuses stored parts that do not fit each other.
    fn check_stored(&self) -> Result<()> {
        let (shape, terms) = (self.shape(), self.terms());
        let first = terms.bonus(shape).at(0);
        let reward = |margin| OptimisticReward::for_zero_violation(shape, &margin, first);
        let reward = self.margin().map(reward).transpose()?;
        let cost = PessimisticCost::new(shape, first)?;
        self.model.check_stored(reward.as_ref(), &cost)?;
        check(
            "the safe cost of a learner",
            self.safe_cost.fits(&self.baseline, terms),
        )?;
        check("the last plan of a learner", self.planned.shape() == shape)?;
        check_search(&self.search, shape)
    }
}

impl OptPessPrimalDual {
    /// Refuses stored parts that do not fit each other.
    fn check_stored(&self) -> Result<()> {
        let (shape, terms) = (self.shape(), self.terms());
        self.margin.check_horizon(shape.horizon())?;
        let first = terms.bonus(shape).at(0);
        let reward = OptimisticReward::for_bounded_violation(shape, first)?;
        let cost = OptimisticCost::new(shape, first)?;
        self.model.check_stored(Some(&reward), &cost)?;
        let schedule = Schedule::new(shape, &self.margin, terms.failure_probability());
        check("the schedule of a learner", self.schedule == schedule)?;
        let multipliers = [self.multiplier, self.next_multiplier];
        let multipliers = multipliers
            .iter()
            .all(|lambda| (0.0..f64::INFINITY).contains(lambda));
        check("the multiplier of a learner", multipliers)?;
        let induction = GreedyPlan::new(shape)?;
        check("the workspace of a learner", self.induction == induction)
    }
}

impl OptPessMix {
    /// Refuses stored parts that do not fit each other.
    fn check_stored(&self) -> Result<()> {
        let num_limits = self.baseline.limits().len();
        self.model.check_stored(num_limits)?;
        let totals = self.totals.is_empty() || self.totals.len() == num_limits;
        check("the last costs of a learner", totals)
    }
}
