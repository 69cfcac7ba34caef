//! A model of a fleet: workers that run orders, and a database that has so much to do for each.
//!
//! ```text
//! cargo bench -p code-commit-fleet-store --bench simulate -- ORDERS ORDER_SECONDS MS_OF_THE_DATABASE CONNECTIONS
//! ```
//!
//! The database is CONNECTIONS servers with one queue; each order takes MS of one of them, in eleven parts: lease, six beats
//! and four others spread over its time. Times are exponential. The parameters are what `cycle` measures.

#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "this prints figures"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts of the database's work for an order.
const PARTS: u32 = 11;

/// Deterministic: a linear congruential generator, good enough for means.
struct Random(u64);

impl Random {
    fn exponential(&mut self, mean: f64) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let unit = ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -mean * unit.ln()
    }
}

/// Microseconds since the beginning.
type Time = u64;

struct Fleet {
    orders: u64,
    order_s: f64,
    part_s: f64,
    servers: usize,
}

struct Figures {
    rate: f64,
    busy: f64,
    lease_ms: f64,
}

impl Fleet {
    /// Each event is a worker that asks the database for the next part of its order.
    fn run(&self, workers: usize) -> Figures {
        let mut random = Random(28);
        let micros = |seconds: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive and small"
            )]
            let micros = (seconds * 1e6) as Time;
            micros
        };
        let mut asking: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
        let mut part = vec![0_u32; workers];
        for worker in 0..workers {
            asking.push(Reverse((micros(random.exponential(self.order_s)), worker)));
        }
        // When each server is free.
        let mut free: BinaryHeap<Reverse<Time>> = (0..self.servers).map(|_| Reverse(0)).collect();
        let (mut done, mut busy, mut waited, mut leases, mut now) = (0, 0, 0, 0_u64, 0);
        while done < self.orders {
            let (Some(Reverse((at, worker))), Some(Reverse(server))) = (asking.pop(), free.pop())
            else {
                break;
            };
            let service = micros(random.exponential(self.part_s));
            let end = at.max(server) + service;
            free.push(Reverse(end));
            (busy, now) = (busy + service, now.max(end));
            let Some(part) = part.get_mut(worker) else {
                break;
            };
            if *part == 0 {
                (leases, waited) = (leases + 1, waited + end - at);
            }
            *part = (*part + 1) % PARTS;
            done += u64::from(*part == 0);
            // After the verdict it asks for the next order at once.
            let think = if *part == 0 {
                0.0
            } else {
                random.exponential(self.order_s / f64::from(PARTS - 1))
            };
            asking.push(Reverse((end + micros(think), worker)));
        }
        let seconds = now as f64 / 1e6;
        Figures {
            rate: done as f64 / seconds,
            busy: busy as f64 / 1e6 / seconds / self.servers as f64,
            lease_ms: waited as f64 / 1e3 / leases.max(1) as f64,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds a flag of its own.
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let number = |at: usize, default: f64| given.get(at).map_or(Ok(default), |word| word.parse());
    let (orders, order_s, ms, servers) = (
        number(0, 1e6)?,
        number(1, 60.0)?,
        number(2, 10.0)?,
        number(3, 2.0)?,
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts"
    )]
    let (orders, servers) = (orders as u64, servers as usize);
    let fleet = Fleet {
        orders,
        order_s,
        part_s: ms / 1e3 / f64::from(PARTS),
        servers,
    };
    println!(
        "{:>8} {:>14} {:>9} {:>12}",
        "workers", "orders/second", "database", "mean lease"
    );
    for workers in [1, 10, 100, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000] {
        let Figures {
            rate,
            busy,
            lease_ms,
        } = fleet.run(workers);
        println!(
            "{workers:>8} {rate:>14.2} {:>8.1}% {lease_ms:>9.2} ms",
            busy * 100.0
        );
    }
    Ok(())
}
