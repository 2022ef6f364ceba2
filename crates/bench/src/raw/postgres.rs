//! PostgreSQL without Orlop's schema.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, future, pin_mut};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::stats::Latencies;

/// A table of a number and a value.
pub struct RawPostgres {
    client: Client,
    /// Drives the connection; aborted on drop.
    _connection: JoinSet<()>,
}

/// Connects; notifications go to the channel.
async fn connect(url: &str) -> Result<(Client, JoinSet<()>, mpsc::UnboundedReceiver<AsyncMessage>)> {
    let (client, mut connection) =
        tokio_postgres::connect(url, NoTls).await.context("no connection to PostgreSQL")?;
    let (sender, messages) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut incoming = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = incoming.next().await {
            // Sending fails if the caller dropped the receiver because it does not listen.
            let _ = sender.send(message);
        }
    });
    Ok((client, tasks, messages))
}

/// Runs statements on a new connection.
pub async fn execute(url: &str, sql: &str) -> Result<()> {
    let (client, _connection, _) = connect(url).await?;
    client.batch_execute(sql).await.with_context(|| format!("PostgreSQL refused: {sql}"))
}

impl RawPostgres {
    /// Creates the table in an empty database.
    pub async fn new(url: &str) -> Result<Self> {
        let (client, connection, _) = connect(url).await?;
        let table = |name| format!("CREATE TABLE {name} (id bigint PRIMARY KEY, value bytea NOT NULL);");
        client.batch_execute(&(table("written") + &table("listed"))).await?;
        client.batch_execute("CREATE SEQUENCE numbers CACHE 1000").await?;
        Ok(Self { client, _connection: connection })
    }

    pub(super) async fn commits(&self, value: usize, stretch: Duration) -> Result<Latencies> {
        let value = vec![b'a'; value];
        let insert =
            self.client.prepare("INSERT INTO written (id, value) VALUES (nextval('numbers'), $1)").await?;
        let mut latencies = Latencies::default();
        let begin = Instant::now();
        while begin.elapsed() < stretch {
            let started = Instant::now();
            self.client.execute(&insert, &[&value]).await?;
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }

    pub(super) async fn batches(&self, rows: usize, value: usize, stretch: Duration) -> Result<f64> {
        let values = vec![vec![b'a'; value]; rows];
        let sql =
            "INSERT INTO written (id, value) SELECT nextval('numbers'), v FROM unnest($1::bytea[]) AS v";
        let insert = self.client.prepare(sql).await?;
        let begin = Instant::now();
        let mut written = 0;
        while begin.elapsed() < stretch {
            self.client.execute(&insert, &[&values]).await?;
            written += rows;
        }
        Ok(written as f64 / begin.elapsed().as_secs_f64())
    }

    pub(super) async fn fill(&self, rows: usize, value: usize) -> Result<()> {
        let there: i64 = self.client.query_one("SELECT count(*) FROM listed", &[]).await?.get(0);
        if there > 0 {
            return Ok(());
        }
        let sql = "INSERT INTO listed (id, value) SELECT i, $2 FROM generate_series(0, $1::bigint - 1) AS i";
        self.client.execute(sql, &[&i64::try_from(rows)?, &vec![b'a'; value]]).await?;
        self.client.batch_execute("VACUUM ANALYZE listed").await?;
        Ok(())
    }

    pub(super) async fn read(&self, rows: usize) -> Result<usize> {
        let rows = i64::try_from(rows)?;
        let stream = self.client.query_raw("SELECT value FROM listed ORDER BY id LIMIT $1", [rows]).await?;
        pin_mut!(stream);
        let mut bytes = 0;
        while let Some(row) = stream.try_next().await? {
            bytes += std::hint::black_box(row.get::<_, Vec<u8>>(0)).len();
        }
        Ok(bytes)
    }

    pub(super) async fn look_ups(&self, count: usize) -> Result<Latencies> {
        let rows: i64 = self.client.query_one("SELECT count(*) FROM listed", &[]).await?.get(0);
        let select = self.client.prepare("SELECT value FROM listed WHERE id = $1").await?;
        let mut latencies = Latencies::default();
        for turn in 0..i64::try_from(count)? {
            let started = Instant::now();
            let id = turn.wrapping_mul(7_919) % rows.max(1);
            std::hint::black_box(self.client.query_one(&select, &[&id]).await?);
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }
}

/// The time from a commit to the arrival of its notification in another session.
pub async fn notifications(url: &str, count: usize, pause: Duration) -> Result<Latencies> {
    let (listener, _listening, mut messages) = connect(url).await?;
    listener.batch_execute("LISTEN raw").await?;
    let (client, _sending, _) = connect(url).await?;
    let mut latencies = Latencies::default();
    for _ in 0..count {
        tokio::time::sleep(pause).await;
        // Awaited together, because the notification may arrive before the answer.
        let (committed, heard) = future::join(
            async { client.batch_execute("NOTIFY raw").await.map(|()| Instant::now()) },
            async { messages.recv().await.map(|_| Instant::now()) },
        )
        .await;
        let heard = heard.context("the listening connection broke")?;
        latencies.push(heard.saturating_duration_since(committed?));
    }
    Ok(latencies)
}
