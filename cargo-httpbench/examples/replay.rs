//! Makes the decisions of a recorded soak again, by other rules.
//!
//!     cargo run --release -p cargo-httpbench --example replay -- FILE [--speed 3000] [--mean iqm|median|mean]
//!         [--join N] [--pairs N] [--rounds N] [--looks 1|2] [--tolerance 3%]
//!
//! `FILE` is what `cargo httpbench selftest --long` keeps. All rounds of a kind (fresh ones, too) are put in a row and cut into blocks of
//! `--rounds`; each block is decided as one comparison, without confirmation, by the product's own `decide`. `--join` makes one slice
//! of N neighbouring ones of an arm, `--pairs` takes the first N pairs of each round alone: so one recording with short slices stands for
//! plans with fewer and longer ones. What is printed is what `docs/verdict.md` shows: the spread of a round's value, raw and as a
//! ratio, and how often each verdict on throughput comes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use cargo_httpbench::selftest::{Record, RoundRecord, SliceRecord, Speed, read_records};
use cargo_httpbench::stats::{interquartile_mean, median, standard_deviation};
use cargo_httpbench::verdict::{ALPHA, Compared, Evidence, Looks, Verdict, decide, fewest_rounds};
use httpbench_core::model::{Metric, Ratio};

/// Cells of a closed loop: throughput, stalls, CPU time and one quantile.
const CELLS: usize = 4;

/// How a round's value is made of its pairs.
#[derive(Clone, Copy, Debug)]
enum Mean {
    Interquartile,
    Median,
    Plain,
}

#[derive(Debug)]
struct Rules {
    file: PathBuf,
    speed: Option<Speed>,
    mean: Mean,
    join: usize,
    pairs: usize,
    rounds: usize,
    looks: u32,
    tolerance: Ratio,
}

fn main() -> ExitCode {
    let done = rules(std::env::args().skip(1)).and_then(|rules| {
        let records = read_records(&rules.file).map_err(|error| error.to_string())?;
        print!("{}", replay(&records, &rules));
        Ok(())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn rules(arguments: impl Iterator<Item = String>) -> Result<Rules, String> {
    let mut arguments = arguments;
    let file = arguments.next().ok_or("which file? the first argument names it")?.into();
    let mut rules = Rules {
        file,
        speed: None,
        mean: Mean::Interquartile,
        join: 1,
        pairs: usize::MAX,
        rounds: 16,
        looks: 2,
        tolerance: Ratio(0.03),
    };
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{option}` needs a value"))?;
        let number = || value.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{value}` is no number"));
        match option.as_str() {
            "--speed" => rules.speed = Some(value.parse().map_err(|error| format!("{error}"))?),
            "--mean" => {
                rules.mean = match value.as_str() {
                    "iqm" => Mean::Interquartile,
                    "median" => Mean::Median,
                    "mean" => Mean::Plain,
                    _ => return Err(format!("`--mean` is iqm, median or mean, not `{value}`")),
                }
            }
            "--join" => rules.join = number()?,
            "--pairs" => rules.pairs = number()?,
            "--rounds" => rules.rounds = number()?,
            "--looks" => rules.looks = if number()? == 1 { 1 } else { 2 },
            "--tolerance" => rules.tolerance = value.parse().map_err(|error| format!("{error}"))?,
            _ => return Err(format!("`{option}` is unknown")),
        }
    }
    Ok(rules)
}

/// A table of every kind in the file.
fn replay(records: &[Record], rules: &Rules) -> String {
    let mut kinds: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| rules.speed.is_none_or(|speed| speed == record.speed)) {
        let order = format!("{:?}, {:?}", record.order, record.neighbour).to_lowercase();
        let kind = format!("{:<24} {:>14}  {order}", record.speed.to_string(), record.change.to_string());
        kinds.entry(kind).or_default().push(record);
    }
    let mut text = format!("{rules:?}\nkind: rounds; SD of raw throughput, of a round's ratio; blocks: verdicts\n");
    for (kind, records) in kinds {
        let rounds: Vec<&RoundRecord> =
            records.iter().flat_map(|record| record.rounds.iter().chain(&record.fresh)).collect();
        let differences: Vec<f64> = rounds.iter().filter_map(|round| difference(round, rules)).collect();
        let raw: Vec<f64> = rounds.iter().filter_map(|round| raw(round)).collect();
        let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut looks: Vec<f64> = Vec::new();
        for block in differences.chunks_exact(rules.rounds) {
            let (verdict, used) = decide_block(block, rules);
            *verdicts.entry(verdict.name()).or_default() += 1;
            looks.push(used as f64);
        }
        let percent = |values: &[f64]| {
            standard_deviation(values).map_or_else(|| "–".to_owned(), |spread| format!("{:.1} %", spread * 100.0))
        };
        text.push_str(&format!(
            "{kind}: {} rounds; {}, {}; {} blocks, median {} rounds used: {verdicts:?}\n",
            rounds.len(),
            percent(&raw),
            percent(&differences),
            looks.len(),
            median(&looks).unwrap_or(0.0),
        ));
    }
    text
}

/// One comparison of throughput, among [`CELLS`] cells of which the others say nothing.
fn decide_block(block: &[f64], rules: &Rules) -> (Verdict, usize) {
    let first = fewest_rounds(CELLS, rules.looks, ALPHA) as usize;
    let plan = if rules.looks == 2 && first + 3 <= block.len() { vec![first, block.len()] } else { vec![block.len()] };
    let planned = u32::try_from(plan.len()).unwrap_or(1);
    let mut said = (Verdict::Inconclusive, block.len());
    let looks = std::iter::successors(Some(Looks::first_of(planned)), |looks| looks.next());
    for (looks, until) in looks.zip(plan) {
        let evidence = |differences: &[f64]| Evidence {
            compared: Compared::Metric(Metric::Throughput),
            tolerance: rules.tolerance,
            differences: differences.to_vec(),
        };
        let mut family = vec![evidence(&[]); CELLS];
        family[0] = evidence(&block[..until]);
        let verdict = decide(&family, ALPHA, looks)[0].verdict;
        said = (verdict, until);
        if verdict != Verdict::Inconclusive {
            break;
        }
    }
    said
}

/// The logarithm of the baseline's throughput, which wanders with the machine.
fn raw(round: &RoundRecord) -> Option<f64> {
    let slices: Vec<SliceRecord> = round.slices.iter().filter(|slice| slice.arm == 1).copied().collect();
    throughput(&slices).map(f64::ln)
}

/// How much worse the candidate's throughput was, by these rules.
fn difference(round: &RoundRecord, rules: &Rules) -> Option<f64> {
    let of = |arm: usize| round.slices.iter().filter(move |slice| slice.arm == arm).copied().collect::<Vec<_>>();
    let (candidate, baseline) = (of(0), of(1));
    let joined = candidate.chunks(rules.join).zip(baseline.chunks(rules.join)).take(rules.pairs);
    let pairs: Vec<f64> = joined
        .filter_map(|(candidate, baseline)| Some((throughput(baseline)? / throughput(candidate)?).ln()))
        .collect();
    match rules.mean {
        Mean::Interquartile => interquartile_mean(&pairs),
        Mean::Median => median(&pairs),
        Mean::Plain => (!pairs.is_empty()).then(|| pairs.iter().sum::<f64>() / pairs.len() as f64),
    }
}

fn throughput(slices: &[SliceRecord]) -> Option<f64> {
    let (good, span) = slices.iter().fold((0, 0), |(good, span), slice| (good + slice.good, span + slice.span_ns));
    (good > 0 && span > 0).then(|| good as f64 / (span as f64 / 1e9))
}
