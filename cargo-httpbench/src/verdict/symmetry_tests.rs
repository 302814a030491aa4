//! What holds for every comparison, whatever was measured: exchanged arms flip every sign and nothing else; a larger family, more
//! looks and fresh rounds make a verdict more careful, never bolder.
//!
//! Whole comparisons, from made-up rounds of both arms through the family to the verdicts. Exact, down to the last bit.

use std::ops::Range;

use httpbench_core::model::{Metric, Nanos};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{CellReport, Comparison, Family, Looks, Reason, Verdict};
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::measure::sample::{beside, package, round, scenario};
use crate::measure::{BASELINE, CANDIDATE, Disturbance, MeasuredPackage, MeasuredRound, MeasuredScenario};
use crate::stats::Interval;

/// What one arm did in one round: good exchanges, exchanges that failed, time of an exchange and CPU time of one, in microseconds.
type ArmRound = (u64, u64, u64, u64);

/// With exchanges that fail and rounds without any good one, or without.
fn arm_round(flawed: bool) -> impl Strategy<Value = ArmRound> {
    let (good, failed) = if flawed {
        (prop_oneof![4 => 40..60u64, 1 => Just(0)].boxed(), prop_oneof![8 => Just(0), 1 => 1..30u64].boxed())
    } else {
        ((40..60u64).boxed(), Just(0).boxed())
    };
    (good, failed, 100..140u64, 100..104u64)
}

fn measured(&(good, failed, micros, cpu): &ArmRound) -> MeasuredRound {
    let mut made = round(good, Nanos::from_micros(micros));
    let counts = &mut made.recording.arms[0].counts;
    counts.started += failed;
    counts.check_failures = failed;
    made.recording.slices[0].cpu = vec![Some(Nanos::from_micros(cpu) * good)];
    made
}

/// Both arms in ABBA, so that pairs, orders and whole rounds all have something to say.
fn both(candidate: &ArmRound, baseline: &ArmRound) -> MeasuredRound {
    let mut made = beside(measured(candidate), measured(baseline));
    let slices = &mut made.recording.slices;
    slices.extend(slices.clone().into_iter().rev());
    made
}

/// Rounds in which one arm is slower by so many per cent, or neither.
fn some_rounds(count: Range<usize>, flawed: bool, slower: (usize, u64)) -> impl Strategy<Value = Vec<MeasuredRound>> {
    let worse = move |arm: usize, (good, failed, micros, cpu): ArmRound| {
        let by = if arm == slower.0 { slower.1 } else { 0 };
        (good - good * by / 100, failed, micros + micros * by / 100, cpu + cpu * by / 100)
    };
    proptest::collection::vec((arm_round(flawed), arm_round(flawed)), count).prop_map(move |rounds| {
        rounds.iter().map(|&(one, other)| both(&worse(CANDIDATE, one), &worse(BASELINE, other))).collect()
    })
}

fn some_scenario() -> impl Strategy<Value = MeasuredScenario> {
    let slower = || (0..2usize, prop_oneof![Just(0u64), Just(30), Just(60)]);
    let drawn = (slower(), slower(), any::<bool>(), any::<bool>(), prop_oneof![3 => Just(false), 1 => Just(true)]);
    drawn.prop_flat_map(|(first, other, has_fresh, same, flawed)| {
        let fresh = if has_fresh { 5..9 } else { 0..1 };
        (
            some_rounds(1..15, flawed, first),
            some_rounds(fresh, flawed, if same { first } else { other }),
            prop_oneof![8 => Just(0usize), 1 => 1..6usize],
            prop_oneof![12 => Just(false), 1 => Just(true)],
            prop_oneof![Just(10_000.0), Just(1_500.0), Just(150.0)],
            any::<bool>(),
        )
            .prop_map(made)
    })
}

/// Its rounds, fresh rounds, discarded ones, whether it broke off, exchanges in a round, and whether failures are accepted.
type Drawn = (Vec<MeasuredRound>, Vec<MeasuredRound>, usize, bool, f64, bool);

fn made((rounds, fresh, discarded, failed, exchanges_a_round, accepts_failures): Drawn) -> MeasuredScenario {
    let limits: &[(Metric, f64)] = if accepts_failures { &[(Metric::Errors, 1.0)] } else { &[] };
    let mut made = scenario("some", limits, rounds);
    made.confirmation = fresh;
    made.discarded = vec![Disturbance::Suspended; discarded];
    made.failure = failed.then(|| Error::new(ExitCode::ServerFailed, "it died"));
    if let Some(pilot) = &mut made.pilot {
        pilot.exchanges_a_round = exchanges_a_round;
    }
    made
}

fn some_package() -> impl Strategy<Value = MeasuredPackage> {
    proptest::collection::vec(some_scenario(), 1..4).prop_map(package)
}

/// The family as it was fixed after the pilot, when nothing had failed yet.
fn family(package: &mut MeasuredPackage) -> Family {
    let failures: Vec<Option<Error>> = package.scenarios.iter_mut().map(|scenario| scenario.failure.take()).collect();
    let family = Family::fix(package, 1.0, &[]).expect("no tolerance was written");
    for (scenario, failure) in package.scenarios.iter_mut().zip(failures) {
        scenario.failure = failure;
    }
    family
}

fn exchange(package: &mut MeasuredPackage) {
    for scenario in &mut package.scenarios {
        for round in scenario.rounds.iter_mut().chain(&mut scenario.confirmation) {
            round.recording.arms.swap(CANDIDATE, BASELINE);
            round.memory.swap(CANDIDATE, BASELINE);
            for slice in &mut round.recording.slices {
                slice.arm = if slice.arm == CANDIDATE { BASELINE } else { CANDIDATE };
                slice.cpu.swap(CANDIDATE, BASELINE);
            }
        }
    }
}

fn flipped(mut cell: CellReport) -> CellReport {
    std::mem::swap(&mut cell.baseline, &mut cell.candidate);
    let decision = &mut cell.decision;
    for verdict in [&mut cell.verdict, &mut decision.verdict] {
        *verdict = match *verdict {
            Verdict::Regressed => Verdict::Improved,
            Verdict::Improved => Verdict::Regressed,
            other => other,
        };
    }
    cell.reason = match cell.reason {
        Some(Reason::BaselineFails) => Some(Reason::CandidateFails),
        Some(Reason::CandidateFails) => Some(Reason::BaselineFails),
        other => other,
    };
    if let Some(estimate) = &mut decision.estimate {
        estimate.0 = -estimate.0;
    }
    decision.interval = decision.interval.map(|Interval { low, high }| Interval { low: -high, high: -low });
    std::mem::swap(&mut decision.p_worse, &mut decision.p_better);
    cell
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exchanged_arms_flip_every_sign_and_nothing_else(mut package in some_package(), planned in 1..3u32) {
        let looks = Looks::first_of(planned);
        let family = family(&mut package);
        let there = Comparison::look(&package, &family, looks);
        exchange(&mut package);
        let back = Comparison::look(&package, &family, looks);
        let flipped = Comparison { cells: back.cells.iter().cloned().map(flipped).collect(), ..back.clone() };
        prop_assert_eq!(&there, &flipped);
        prop_assert_eq!(there.is_settled(), back.is_settled());
        prop_assert_eq!(there.changed_scenarios(), back.changed_scenarios());
    }

    #[test]
    fn larger_family_makes_nothing_more_certain(one in some_scenario(), others in some_package()) {
        let alone = {
            let mut package = package(vec![one]);
            let family = family(&mut package);
            (Comparison::look(&package, &family, Looks::ONLY), package)
        };
        let (alone, package_alone) = alone;
        let mut scenarios = package_alone.scenarios;
        scenarios.extend(others.scenarios);
        let mut package = package(scenarios);
        let family = family(&mut package);
        let among = Comparison::look(&package, &family, Looks::ONLY);
        for (alone, among) in alone.cells.iter().zip(among.of_scenario(0)) {
            prop_assert_eq!(alone.decision.estimate, among.decision.estimate);
            prop_assert!(among.decision.p_worse >= alone.decision.p_worse);
            prop_assert!(among.decision.p_better >= alone.decision.p_better);
            prop_assert!(is_no_bolder(among, alone), "{among:?} {alone:?}");
        }
    }

    #[test]
    fn second_look_makes_each_of_both_more_careful(mut package in some_package()) {
        let family = family(&mut package);
        let one = Comparison::look(&package, &family, Looks::ONLY);
        let two = Comparison::look(&package, &family, Looks::first_of(2));
        prop_assert!(two.confidence() > one.confidence());
        for (one, two) in one.cells.iter().zip(&two.cells) {
            prop_assert!(is_no_bolder(two, one), "{two:?} {one:?}");
        }
    }

    #[test]
    fn fresh_rounds_confirm_or_take_back_and_never_find_a_change(mut package in some_package()) {
        // Undisturbed fresh rounds make disturbed first ones weigh less: that is another matter.
        package.scenarios.iter_mut().for_each(|scenario| scenario.discarded.clear());
        let family = family(&mut package);
        let with = Comparison::look(&package, &family, Looks::ONLY);
        for scenario in &mut package.scenarios {
            scenario.confirmation.clear();
        }
        let without = Comparison::look(&package, &family, Looks::ONLY);
        for (with, without) in with.cells.iter().zip(&without.cells) {
            prop_assert!(is_no_bolder(with, without), "{with:?} {without:?}");
        }
    }
}

#[test]
fn made_up_packages_come_to_every_verdict() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Vec::new();
    for _ in 0..64 {
        let mut package = some_package().new_tree(&mut runner).expect("nothing is filtered out").current();
        let family = family(&mut package);
        seen.extend(Comparison::look(&package, &family, Looks::ONLY).cells.iter().map(|cell| cell.verdict));
    }
    for verdict in [Verdict::Regressed, Verdict::Improved, Verdict::Unchanged, Verdict::Inconclusive, Verdict::Invalid]
    {
        assert!(seen.contains(&verdict), "the properties above say nothing of {}", verdict.name());
    }
}

/// Whether a cell says `regressed` or `improved` only where the other one does.
fn is_no_bolder(cell: &CellReport, other: &CellReport) -> bool {
    let changed = matches!(cell.verdict, Verdict::Regressed | Verdict::Improved);
    !changed || cell.verdict == other.verdict
}
