//! Micro-benchmarks of what the engine does by itself, without a socket: decoding an answer, encoding a request, recording
//! an exchange, and finding the next start of a schedule.
//!
//! `cargo bench -p httpbench-core --bench engine`. All but the encoding, which is done once a round, happens in every
//! exchange. What a whole exchange costs, `tests/engine-cost.sh` counts exactly.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use httpbench_core::Request;
use httpbench_core::engine::microbench::{Codec, Pacer, Record};
use httpbench_core::model::{Nanos, Schedule};

/// An answer of 100 bytes with such a field among the others of its head.
fn answer(field: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n{field}\r\n\
         Content-Length: 100\r\n\r\n"
    );
    [head.as_bytes(), &[b'x'; 100]].concat()
}

fn chunked(chunks: usize) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [b"400\r\n".as_slice(), &[b'x'; 1_024], b"\r\n"].concat();
    [head.as_bytes(), &chunk.repeat(chunks), b"0\r\n\r\n"].concat()
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(1));
    for (name, fields) in [
        ("head like the last one", ["X-Id: 1", "X-Id: 1"]),
        ("head with another value", ["X-Id: 17", "X-Id: 18"]),
        ("head with a longer or shorter value", ["X-Id: 9", "X-Id: 10"]),
        ("head with another field", ["X-Id: 1", "X-Ie: 1"]),
    ] {
        group.bench_function(name, |bencher| {
            let (mut codec, answers) = (Codec::default(), fields.map(answer));
            let mut next = answers.iter().cycle();
            bencher.iter(|| codec.decode(black_box(next.next().expect("a cycle has no end"))));
        });
    }
    let answer = chunked(16);
    group.throughput(Throughput::Bytes(answer.len() as u64));
    group.bench_function("16 chunks of 1 KiB", |bencher| {
        let mut codec = Codec::default();
        bencher.iter(|| codec.decode(black_box(&answer)));
    });
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let get = Request::get("/search?q=rust").header("accept", "application/json");
    let post = Request::post("/items").header("content-type", "application/json").body([b'x'; 1_024]);
    let mut group = criterion.benchmark_group("encode");
    for (name, request) in [("GET with one field", get), ("POST of 1 KiB", post)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(&request).render("127.0.0.1:8080").expect("a sound request"));
        });
    }
    group.finish();
}

/// Times between 0 and 10 ms, in no order.
fn times() -> impl FnMut() -> Nanos {
    let mut state = 1_000_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Nanos((state >> 33) % 10_000_000)
    }
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    for (name, in_parts) in [("closed loop, answer in one read", false), ("closed loop, answer in parts", true)] {
        group.bench_function(name, |bencher| {
            let (mut record, mut time) = (Record::default(), times());
            bencher.iter(|| record.closed(black_box(time()), in_parts));
        });
    }
    group.bench_function("open loop", |bencher| {
        let (mut record, mut time) = (Record::default(), times());
        bencher.iter(|| record.open(black_box(time())));
    });
    group.finish();
}

fn pace(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pace");
    for (name, schedule) in [
        ("constant", Schedule::Constant { per_second: 10_000.0 }),
        ("poisson", Schedule::Poisson { per_second: 10_000.0, seed: 1 }),
        ("ramp", Schedule::Ramp { from: 1_000.0, to: 100_000.0, over: Nanos::from_secs(3_600) }),
    ] {
        group.bench_function(name, |bencher| {
            let mut pacer = Pacer::new(schedule);
            bencher.iter(|| pacer.take());
        });
    }
    group.finish();
}

criterion_group!(benches, decode, encode, record, pace);
criterion_main!(benches);
