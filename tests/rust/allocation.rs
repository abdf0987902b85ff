//! A solver that is re-used allocates nothing. The allocator of the whole test binary counts, for each thread apart.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use optpess_core::confidence::KernelBox;
use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::plan::{
    ChordSearch, Extended, ExtendedOracle, ExtendedWork, PlainOracle, PlanningProblem, PlanningWork,
};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;

thread_local! {
    /// Of this thread alone: other tests allocate in theirs whenever they like.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn every_way_to_allocate_is_counted() {
    let before = ALLOCATIONS.get();
    let mut numbers = black_box(Vec::<u64>::with_capacity(4));
    assert_eq!(ALLOCATIONS.get() - before, 1);
    numbers.extend(0..5);
    black_box(&numbers);
    assert_eq!(ALLOCATIONS.get() - before, 2);
    black_box(vec![0_u8; 1000]);
    assert_eq!(ALLOCATIONS.get() - before, 3);
}

#[test]
fn a_solver_that_is_used_again_allocates_nothing() {
    let (horizon, states, actions) = (5, 4, 3);
    let shape = Shape::new(horizon, states, actions).unwrap();
    let rows = vec![0.25; shape.triples() * states];
    let kernel = Kernel::dense(states, actions, Slices::PerStep(horizon), rows).unwrap();
    let initial = InitialDistribution::new(states, vec![0.25; states]).unwrap();
    let signal = |phase: usize| {
        let entry = |index: usize| 0.5 + 0.5 * ((index * 13 + phase) as f64).sin();
        Signal::new("signal", shape, (0..shape.triples()).map(entry).collect()).unwrap()
    };
    let signals: Vec<[Signal; 2]> = (0..20)
        .map(|copy| [signal(copy), signal(5 * copy + 2)])
        .collect();
    let mut search = ChordSearch::new(shape).unwrap();
    let mut work = PlanningWork::new(shape).unwrap();
    let completion = MarkovPolicy::uniform(shape).unwrap();
    let mut mixed = completion.clone();
    let mut solved = 0;
    let before = ALLOCATIONS.get();
    for round in 0..3 {
        for [reward, cost] in &signals {
            let problem = PlanningProblem {
                shape,
                reward,
                cost,
                kernel: &kernel,
                initial: &initial,
            };
            if round == 1 {
                search.forget();
            }
            let mut oracle = PlainOracle::on(&problem, &mut work);
            let found = search.best_within(&mut oracle, 2.5, &completion, &mut mixed);
            solved += usize::from(found.is_ok());
            // Refusals are part of daily life too.
            solved += usize::from(search.solve(&mut oracle, -1.0).is_err());
        }
    }
    let after = ALLOCATIONS.get();
    assert_eq!(solved, 3 * 2 * signals.len());
    assert_eq!(after - before, 0);
}

#[test]
fn neither_does_one_that_chooses_the_kernel_too() {
    let shape = Shape::new(4, 5, 2).unwrap();
    let initial = InitialDistribution::new(5, vec![0.2; 5]).unwrap();
    let rows = vec![0.2; shape.triples() * 5];
    let signal = |phase: usize| {
        let entry = |index: usize| 0.5 + 0.5 * ((index * 13 + phase) as f64).sin();
        Signal::new("signal", shape, (0..shape.triples()).map(entry).collect()).unwrap()
    };
    let (reward, cost) = (signal(0), signal(2));
    let sets: Vec<KernelBox> = (1..=9)
        .map(|width| vec![0.02 * f64::from(width); rows.len()])
        .map(|radius| KernelBox::around(shape, &rows, &radius).unwrap())
        .collect();
    let mut search = ChordSearch::new(shape).unwrap();
    let mut work = ExtendedWork::new(shape).unwrap();
    let completion = MarkovPolicy::uniform(shape).unwrap();
    let mut mixed = completion.clone();
    let before = ALLOCATIONS.get();
    for kernels in &sets {
        let problem = Extended {
            reward: &reward,
            cost: &cost,
            kernels,
            initial: &initial,
        };
        let mut oracle = ExtendedOracle::on(&problem, &mut work);
        let found = search.best_within(&mut oracle, 1.8, &completion, &mut mixed);
        assert!(found.is_ok());
        assert!(search.solve(&mut oracle, -1.0).is_err());
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
