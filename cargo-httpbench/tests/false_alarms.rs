//! How often the verdict cries wolf, and what it finds: simulated runs with a fixed seed, decided by the command's own rules.
//!
//! A run is 12 cells in 16 rounds with two looks and eight fresh rounds for what regressed. The noise of a round is Student's t
//! with three degrees of freedom, whose tails are heavier than any that were recorded, at a standard deviation of 3 %.

use cargo_httpbench::stats::interquartile_mean;
use cargo_httpbench::verdict::{ALPHA, Compared, Evidence, Looks, Verdict, confirms, decide, fewest_rounds};
use httpbench_core::model::{Metric, Ratio};

const CELLS: usize = 12;
const ROUNDS: usize = 16;
const FRESH: usize = 8;
const SPREAD: f64 = 0.03;
/// The default of throughput.
const TOLERANCE: Ratio = Ratio(0.03);

/// Accepts nothing, so that only the tests stand between noise and an alarm.
const NO_TOLERANCE: Ratio = Ratio(0.0);

/// What a simulated run came to.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Cells that were `regressed` at a look.
    at_a_look: usize,
    /// Those of them that fresh rounds confirmed.
    confirmed: usize,
    /// Whether the first cell was `regressed` at the first look.
    first_cell_at_once: bool,
}

/// Student's t with three degrees of freedom, scaled to a standard deviation of 1 (its own is √3).
fn heavy_tailed(random: &mut fastrand::Rng) -> f64 {
    let normal = |random: &mut fastrand::Rng| {
        let (radius, angle) = (random.f64().max(1e-300), random.f64());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    };
    let chi_squared: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (chi_squared / 3.0).sqrt() / 3.0_f64.sqrt()
}

fn run(cells: usize, tolerance: Ratio, round_of: &mut dyn FnMut(usize) -> f64) -> Outcome {
    let first = fewest_rounds(cells, 2, ALPHA) as usize;
    let mut family: Vec<Evidence> = (0..cells)
        .map(|_| Evidence { compared: Compared::Metric(Metric::P99), tolerance, differences: Vec::new() })
        .collect();
    let mut verdicts = Vec::new();
    let mut outcome = Outcome::default();
    let looks = std::iter::successors(Some(Looks::first_of(2)), |looks| looks.next());
    for (looks, until) in looks.zip([first, ROUNDS]) {
        for (cell, evidence) in family.iter_mut().enumerate() {
            evidence.differences.extend((evidence.differences.len()..until).map(|_| round_of(cell)));
        }
        let decisions = decide(&family, ALPHA, looks);
        verdicts = decisions.iter().map(|decision| decision.verdict).collect();
        outcome.first_cell_at_once |= looks.this() == 1 && verdicts[0] == Verdict::Regressed;
        if verdicts.iter().all(|verdict| *verdict != Verdict::Inconclusive) {
            break;
        }
    }
    for (cell, evidence) in family.iter().enumerate().filter(|(cell, _)| verdicts[*cell] == Verdict::Regressed) {
        outcome.at_a_look += 1;
        let fresh: Vec<f64> = (0..FRESH).map(|_| round_of(cell)).collect();
        outcome.confirmed += usize::from(confirms(evidence, &fresh));
    }
    outcome
}

/// The share of runs in which any cell was `regressed`, before and after confirmation.
fn false_alarms(
    suites: usize,
    tolerance: Ratio,
    seed: u64,
    mut noise: impl FnMut(&mut fastrand::Rng) -> f64,
) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let outcomes: Vec<Outcome> = (0..suites).map(|_| run(CELLS, tolerance, &mut |_| noise(&mut random))).collect();
    let share =
        |of: fn(&Outcome) -> usize| outcomes.iter().filter(|outcome| of(outcome) > 0).count() as f64 / suites as f64;
    (share(|outcome| outcome.at_a_look), share(|outcome| outcome.confirmed))
}

#[test]
fn runs_in_which_nothing_changed_rarely_regress_and_almost_never_after_confirmation() {
    for tolerance in [TOLERANCE, NO_TOLERANCE] {
        let (at_a_look, confirmed) = false_alarms(2_000, tolerance, 20_261_130, |random| SPREAD * heavy_tailed(random));
        println!(
            "2,000 null runs of {CELLS} cells, heavy tails, tolerance {tolerance}: {:.2} % at a look, {:.2} % confirmed",
            at_a_look * 100.0,
            confirmed * 100.0
        );
        assert!(at_a_look <= 0.05, "{tolerance}: {at_a_look}");
        assert!(confirmed <= 0.005, "{tolerance}: {confirmed}");
    }
}

/// A round built from its slices: a drift of 20 % over the run and an advantage of 1 % for whoever is loaded second.
#[test]
fn drift_and_order_within_a_round_raise_no_alarm() {
    const PAIRS: usize = 16;
    const DRIFT: f64 = 0.2;
    const SECOND: f64 = 0.01;
    let (at_a_look, confirmed) = false_alarms(300, NO_TOLERANCE, 7, |random| {
        let round = random.f64();
        let mut candidate_first = random.bool();
        let pairs: Vec<f64> = (0..PAIRS)
            .map(|pair| {
                candidate_first = if pair % 2 == 0 { random.bool() } else { !candidate_first };
                let slice = |place: usize, random: &mut fastrand::Rng| {
                    let time = round + (2 * pair + place) as f64 / (2 * PAIRS * ROUNDS) as f64;
                    DRIFT * time + SECOND * place as f64 + 4.0 * SPREAD * heavy_tailed(random) / (PAIRS as f64).sqrt()
                };
                let (first, second) = (slice(0, random), slice(1, random));
                if candidate_first { first - second } else { second - first }
            })
            .collect();
        interquartile_mean(&pairs).expect("sixteen pairs")
    });
    println!(
        "300 null runs with drift and order: {:.2} % at a look, {:.2} % confirmed",
        at_a_look * 100.0,
        confirmed * 100.0
    );
    assert!(at_a_look <= 0.05, "{at_a_look}");
    assert!(confirmed <= 0.005, "{confirmed}");
}

#[test]
fn looks_do_not_add_up_beyond_alpha() {
    let mut random = fastrand::Rng::with_seed(99);
    let alarms =
        (0..10_000).filter(|_| run(1, NO_TOLERANCE, &mut |_| SPREAD * heavy_tailed(&mut random)).at_a_look > 0);
    let share = alarms.count() as f64 / 10_000.0;
    println!("10,000 null sequences of one cell, two looks: {:.2} %", share * 100.0);
    assert!(share <= ALPHA, "{share}");
}

/// One changed cell among 12: how often it is found, and how often another one is blamed.
#[test]
fn power_grows_with_the_effect_and_nobody_else_is_blamed() {
    println!("change   SD of a round   found   at the first look   others blamed");
    let mut random = fastrand::Rng::with_seed(1);
    for (change, spread, least, most) in [
        (0.02, 0.01, 0.0, 0.10),
        (0.05, 0.01, 0.95, 1.0),
        (0.05, 0.02, 0.60, 1.0),
        (0.10, 0.03, 0.85, 1.0),
        (0.30, 0.03, 0.99, 1.0),
    ] {
        const RUNS: usize = 200;
        let (mut found, mut early, mut blamed) = (0, 0, 0);
        for _ in 0..RUNS {
            let mut others = 0;
            let mut hit = false;
            let mut round =
                |cell: usize| f64::ln_1p(if cell == 0 { change } else { 0.0 }) + spread * heavy_tailed(&mut random);
            let outcome = run(CELLS, TOLERANCE, &mut round);
            // The changed cell is the first one: a run with one confirmed cell has found it unless nothing else could be meant.
            if outcome.confirmed > 0 {
                hit = true;
                others = outcome.confirmed - 1;
            }
            found += usize::from(hit);
            early += usize::from(outcome.first_cell_at_once);
            blamed += others;
        }
        let share = found as f64 / RUNS as f64;
        println!(
            "{:>5.0} %   {:>11.0} %   {:>4.0} %   {:>15.0} %   {blamed:>13}",
            change * 100.0,
            spread * 100.0,
            share * 100.0,
            early as f64 / RUNS as f64 * 100.0
        );
        assert!((least..=most).contains(&share), "{change} at {spread}: {share}");
        assert!(change < 0.3 || early as f64 >= 0.99 * RUNS as f64, "{early} of {RUNS} at the first look");
        assert!(blamed <= 1, "{blamed} other cells were blamed");
    }
}
