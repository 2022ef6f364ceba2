//! The manager: runs the selected controllers of a table, each with a client of its own.

use std::sync::Arc;

use kube::Client;
use process::Shutdown;
use tasks::{TaskFailure, Tasks};
use thiserror::Error;

use crate::{Metrics, Run, SharedInformers};

/// A controller that can be selected by its name. `S` is the configuration that all controllers of the process share.
pub struct Entry<S: 'static> {
    /// Its name.
    pub name: &'static str,
    /// The service account that it acts as.
    pub account: &'static str,
    /// Constructs it.
    pub controller: fn(&Setup<S>) -> Box<dyn Run>,
}

/// The parts that a controller is constructed from.
pub struct Setup<S> {
    /// A client that acts as the controller.
    pub client: Client,
    /// A client that acts as the process that runs all of them. It may list and watch everything: some controllers may only write.
    pub manager: Client,
    /// The informers of that process, which all controllers share.
    pub informers: SharedInformers,
    /// The configuration of the process.
    pub settings: Arc<S>,
}

/// The selection of controllers that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Vec<String>);

/// A name that no controller has.
#[derive(Debug, Error)]
#[error("{name:?} is not in the list of known controllers: {}", known.join(", "))]
pub struct UnknownController {
    name: String,
    known: Vec<&'static str>,
}

impl Selection {
    /// Parses a list such as `*`, `-garbage-collector-controller`: the first item that names a controller counts, and a star means all
    /// others. An empty list selects none. `beside` has the names of controllers that the process runs by itself.
    ///
    /// # Errors
    /// When it names an unknown controller.
    pub fn new<S>(
        list: &[String],
        entries: &[Entry<S>],
        beside: &[&'static str],
    ) -> Result<Self, UnknownController> {
        let list: Vec<String> = list.iter().filter(|item| !item.is_empty()).cloned().collect();
        let known: Vec<&str> = entries.iter().map(|entry| entry.name).chain(beside.iter().copied()).collect();
        for item in &list {
            let name = item.strip_prefix('-').unwrap_or(item);
            if item != "*" && !known.contains(&name) {
                return Err(UnknownController { name: name.to_owned(), known });
            }
        }
        Ok(Self(list))
    }

    /// Whether a controller is selected.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        let says = |item: &String| match item.strip_prefix('-') {
            None if item == name => Some(true),
            Some(off) if off == name => Some(false),
            _ => None,
        };
        self.0.iter().find_map(says).unwrap_or_else(|| self.0.iter().any(|item| item == "*"))
    }
}

/// Runs the selected controllers until a stop is requested. `client` makes a client that acts as a service account, or
/// as the process that runs them.
///
/// # Errors
/// A controller or an informer that ended before the request.
pub async fn run<S>(
    entries: &[Entry<S>],
    selection: Selection,
    client: impl Fn(Option<&str>) -> Client + Send,
    settings: S,
    metrics: &Metrics,
    shutdown: Shutdown,
) -> Result<(), TaskFailure> {
    let settings = Arc::new(settings);
    let (tasks, manager) = (Tasks::default(), client(None));
    // As in kube-controller-manager the process lists and watches; controllers write with the rights of their own accounts.
    let informers = SharedInformers::paused(manager.clone());
    for Entry { name, account, controller } in entries.iter().filter(|entry| selection.is_on(entry.name)) {
        let setup = Setup {
            client: client(Some(account)),
            manager: manager.clone(),
            informers: informers.clone(),
            settings: Arc::clone(&settings),
        };
        let controller = controller(&setup);
        metrics.show(controller.name(), controller.metrics());
        tasks.start(format!("the controller {name}"), controller.run(shutdown.clone()));
    }
    informers.start();
    tokio::select! {
        // First, because a controller sees the request at the same time and may end before this is polled.
        biased;
        () = shutdown.requested() => {}
        failure = tasks.failed() => return Err(failure),
        failure = informers.failed() => return Err(failure),
    }
    tasks.stop();
    tasks.join().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;
    use crate::{QueueMetrics, WorkQueue};

    fn selection(list: &[&str]) -> Result<Selection, UnknownController> {
        fn never(_: &Setup<()>) -> Box<dyn Run> {
            unreachable!("only names are looked at")
        }
        let entries = ["one", "two"].map(|name| Entry { name, account: name, controller: never });
        let list: Vec<String> = list.iter().map(|item| (*item).to_owned()).collect();
        Selection::new(&list, &entries, &["three"])
    }

    #[test]
    fn the_first_that_says_something_counts_and_a_star_is_all_others() {
        let cases: [(&[&str], [bool; 3]); 7] = [
            (&[""], [false, false, false]),
            (&["*"], [true, true, true]),
            (&["*", "-two"], [true, false, true]),
            (&["-two", "*"], [true, false, true]),
            (&["two"], [false, true, false]),
            (&["-two"], [false, false, false]),
            (&["two", "-two", "*"], [true, true, true]),
        ];
        for (list, expected) in cases {
            let selection = selection(list).unwrap();
            assert_eq!(["one", "two", "three"].map(|name| selection.is_on(name)), expected, "{list:?}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = selection(&["*", "-four"]).unwrap_err().to_string();
        assert_eq!(error, "\"four\" is not in the list of known controllers: one, two, three");
    }

    /// A controller that ends as its name says.
    struct Ending(&'static str);

    impl Run for Ending {
        fn name(&self) -> Cow<'static, str> {
            self.0.into()
        }

        fn metrics(&self) -> QueueMetrics {
            QueueMetrics(WorkQueue::<u32>::default().measured())
        }

        fn run(self: Box<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()> {
            match self.0 {
                "panics" => async { panic!("a defect") }.boxed(),
                "returns" => std::future::ready(()).boxed(),
                _ => shutdown.requested().boxed(),
            }
        }
    }

    static ENTRIES: [Entry<()>; 3] = [
        Entry { name: "panics", account: "", controller: |_| Box::new(Ending("panics")) },
        Entry { name: "returns", account: "", controller: |_| Box::new(Ending("returns")) },
        Entry { name: "works", account: "", controller: |_| Box::new(Ending("works")) },
    ];

    async fn ended(selected: &str, shutdown: Shutdown) -> Result<(), TaskFailure> {
        let selection = Selection::new(&["works".to_owned(), selected.to_owned()], &ENTRIES, &[]).unwrap();
        let client = |_: Option<&str>| {
            Client::try_from(kube::Config::new(http::Uri::from_static("http://[::1]:9"))).unwrap()
        };
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        run(&ENTRIES, selection, client, (), &metrics, shutdown).await
    }

    #[tokio::test]
    async fn a_controller_that_ends_early_ends_the_manager_with_its_name() {
        let failure = ended("panics", Shutdown::new()).await.unwrap_err();
        assert_eq!(
            failure.to_string(),
            "the controller panics panicked: a defect; this is a defect of the program"
        );
        let failure = ended("returns", Shutdown::new()).await.unwrap_err();
        assert_eq!((&*failure.task, failure.cause), ("the controller returns", tasks::Cause::Returned));
        let shutdown = Shutdown::new();
        shutdown.request();
        assert_eq!(ended("works", shutdown).await, Ok(()));
    }
}
