//! Confidence sets for means and rows that hold for all numbers of observations at once; sets of plausible kernels.

mod beta_mixture;
mod bounded_mean;
mod dirichlet;
mod episode_cost;
mod gamma;
mod kernel_box;
mod optimism;
mod plausible;
mod played_cost;
mod sub_gaussian;
#[cfg(test)]
mod testing;

pub use beta_mixture::BetaMixture;
pub(super) use beta_mixture::deviation;
pub use bounded_mean::BoundedMean;
pub use dirichlet::DirichletSet;
pub use episode_cost::EpisodeCost;
pub use kernel_box::KernelBox;
pub use optimism::OptimisticSets;
pub(super) use plausible::ENDPOINT_MASS;
pub use plausible::{ConfidenceSets, Entry, Levels, Observations, PlausibleRow};
pub use played_cost::PlayedCost;
pub use sub_gaussian::SubGaussianMixture;
