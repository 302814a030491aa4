//! Micro-benchmarks of what the engine does for every exchange: decoding an answer, recording it.
//!
//! `cargo bench -p httpbench-core --bench engine`. What a whole exchange costs, `tests/engine-cost.sh` counts exactly.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use httpbench_core::engine::microbench::{Codec, Times};
use httpbench_core::model::Nanos;

fn answer(date: u32) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nDate: {date:08}\r\nContent-Length: 100\r\n\r\n"
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
    group.bench_function("remembered head", |bencher| {
        let (mut codec, answer) = (Codec::default(), answer(1));
        bencher.iter(|| codec.decode(black_box(&answer)));
    });
    group.bench_function("new head each time", |bencher| {
        let (mut codec, answers) = (Codec::default(), [answer(1), answer(2)]);
        let mut next = answers.iter().cycle();
        bencher.iter_batched(
            || next.next().expect("a cycle has no end"),
            |answer| codec.decode(black_box(answer)),
            BatchSize::SmallInput,
        );
    });
    let answer = chunked(16);
    group.throughput(Throughput::Bytes(answer.len() as u64));
    group.bench_function("16 chunks of 1 KiB", |bencher| {
        let mut codec = Codec::default();
        bencher.iter(|| codec.decode(black_box(&answer)));
    });
    group.finish();
}

fn record(criterion: &mut Criterion) {
    criterion.bench_function("record a good exchange", |bencher| {
        let (mut times, mut service) = (Times::default(), 1_000_u64);
        bencher.iter(|| {
            service = service.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) % 10_000_000;
            times.record(black_box(Nanos(service)));
        });
    });
}

criterion_group!(benches, decode, record);
criterion_main!(benches);
