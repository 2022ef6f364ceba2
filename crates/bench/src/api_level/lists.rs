//! Lists over the API, in pages and whole.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::client::{Received, text_of};
use super::requests::{Subject, create_range};
use super::{Client, Server};
use crate::args::Sizes;
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::raw::tls::RawServer;
use crate::report::Outcome;
use crate::stats::{Latencies, median};

/// Concurrent requests while objects are created.
const IN_FLIGHT: usize = 64;

/// The continue token is searched in this many bytes at both ends of the list.
const ENDS: usize = 4096;

/// A server that is filled step by step, and the raw server for comparison.
pub struct Bench {
    client: Client,
    raw: Client,
    pids: Vec<u32>,
    subject: Subject,
    objects: usize,
}

impl Bench {
    /// Measures a server whose namespace has this number of objects.
    pub async fn new(server: &Server, raw: &RawServer, subject: Subject, objects: usize) -> Result<Self> {
        Ok(Self {
            client: Client::connect(&server.endpoint, 4).await?.speaking(subject.media),
            raw: Client::connect(&raw.endpoint, 1).await?,
            pids: server.pids(),
            subject,
            objects,
        })
    }

    /// Creates objects up to this number.
    pub async fn fill(&mut self, count: usize) -> Result<()> {
        create_range(&self.client, self.subject, self.objects..count, IN_FLIGHT).await?;
        self.objects = count;
        Ok(())
    }

    /// Lists page by page.
    pub async fn pages(&self, sizes: Sizes) -> Result<Outcome> {
        let outcome = self.beside_raw(sizes, async || self.list_in_pages().await).await?;
        // The goal is defined for this number of objects.
        let goal = if self.objects >= 100_000 { Goal::Below(0.5) } else { Goal::None };
        Ok(outcome.goal(goal))
    }

    /// Lists in one response.
    pub async fn whole(&self, sizes: Sizes) -> Result<Outcome> {
        self.beside_raw(sizes, async || Ok(self.list_whole().await?.bytes)).await
    }

    async fn beside_raw(
        &self,
        sizes: Sizes,
        mut list: impl AsyncFnMut() -> Result<usize>,
    ) -> Result<Outcome> {
        let (mut limits, mut own) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for _ in 0..sizes.rounds {
            let started = Instant::now();
            bytes = list().await?;
            own.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            self.raw.connection().receive(&format!("/bytes/{bytes}")).await?;
            limits.push(started.elapsed().as_secs_f64());
        }
        ensure!(bytes > self.objects * 800, "{bytes} bytes are too few for {} objects", self.objects);
        let size = show(bytes as f64, Unit::Bytes);
        Ok(Outcome::of(Figure::time(median(own)?).with(size))
            .beside(Figure::time(median(limits)?), "raw TLS download"))
    }

    async fn list_whole(&self) -> Result<Received> {
        self.client.connection().receive(self.subject.collection).await
    }

    async fn list_in_pages(&self) -> Result<usize> {
        let connection = self.client.connection();
        let first = format!("{}?limit=500", self.subject.collection);
        let mut path = first.clone();
        let (mut bytes, mut pages) = (0, 0);
        loop {
            let page = connection.receive(&path).await?;
            bytes += page.bytes;
            pages += 1;
            match continue_token(&page) {
                Some(token) => {
                    path = format!("{first}&continue={}", token.replace('+', "%2B").replace('/', "%2F"))
                }
                None => break,
            }
        }
        // A controller may have created an object in the namespace.
        let expected = self.objects.div_ceil(500)..=(self.objects + 1).div_ceil(500);
        ensure!(expected.contains(&pages), "there were {pages} pages");
        Ok(bytes)
    }

    /// The time to the first byte of the list.
    pub async fn first_byte(&self, sizes: Sizes) -> Result<Outcome> {
        let mut latencies = Latencies::default();
        for _ in 0..sizes.rounds * 3 {
            latencies.push(self.list_whole().await?.first_byte);
        }
        let mut limit = Latencies::default();
        for _ in 0..sizes.rounds * 10 {
            limit.push(self.raw.connection().receive("/bytes/1000").await?.first_byte);
        }
        Ok(Outcome::of(Figure::time(latencies.median()))
            .beside(Figure::time(limit.median()), "a small raw TLS answer")
            .goal(Goal::Below(0.005)))
    }

    /// The increase of the server's peak memory during a list.
    pub async fn growth(&self) -> Result<Outcome> {
        // Waits until the allocator has returned the memory of earlier lists.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let pid = *self.pids.last().context("the server has no process")?;
        let before = machine::resident(pid)?;
        machine::forget_peak(pid)?;
        let size = show(self.list_whole().await?.bytes as f64, Unit::Bytes);
        let growth = machine::peak(pid)? - before;
        let detail = format!("for {size}, from {}", show(before, Unit::Bytes));
        Ok(Outcome::of(Figure::bytes(growth.max(0.0)).with(detail)).goal(Goal::Below(32e6)))
    }
}

fn continue_token(page: &Received) -> Option<String> {
    let head = &page.head[..page.head.len().min(ENDS)];
    let tail = &page.tail[page.tail.len().saturating_sub(ENDS)..];
    let token = text_of(head, "continue").or_else(|| text_of(tail, "continue"))?;
    (!token.is_empty()).then(|| token.to_owned())
}
