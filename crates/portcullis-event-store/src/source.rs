//! Questions about stored events, wherever they are stored.

use std::time::Duration;

use portcullis_query::Filter;

use crate::facets::{FacetRequest, Facets};
use crate::histogram::{Histogram, HistogramRequest};
use crate::query::{After, Page, PageRequest, QueryError, Store, StoredEvent};

/// Stored events that can be asked for: those of a folder ([`Store`]), or of a database that many nodes write
/// to. Answers to the same question are the same wherever the same events are stored; cursors are those of
/// one implementation.
pub trait EventSource: Send + Sync {
    /// A page of events that pass a filter, newest first.
    fn page(&self, request: &PageRequest<'_>) -> Result<Page, QueryError>;

    /// The event of a request.
    fn event(&self, id: &str) -> Result<Option<StoredEvent>, QueryError>;

    /// Counts of values of fields among the events that pass a filter.
    fn facets(&self, request: &FacetRequest<'_>) -> Result<Facets, QueryError>;

    /// How many events that pass a filter fall into each step of time, by outcome.
    fn histogram(&self, request: &HistogramRequest<'_>) -> Result<Histogram, QueryError>;

    /// Events that pass a filter, oldest first: from the beginning, or from [`After::place`] of the piece
    /// before.
    fn oldest(&self, request: &OldestRequest<'_>) -> Result<After, QueryError>;
}

/// A piece of all events that pass a filter, from the oldest on.
#[derive(Clone, Debug)]
pub struct OldestRequest<'f> {
    /// Filter that events have to pass.
    pub filter: &'f Filter,
    /// [`After::place`] of the piece before; none: from the beginning.
    pub from: Option<&'f str>,
    /// Events at most.
    pub limit: usize,
    /// Longest time of looking, where a database is asked.
    pub patience: Duration,
}

impl EventSource for Store {
    fn page(&self, request: &PageRequest<'_>) -> Result<Page, QueryError> {
        Store::page(self, request)
    }

    fn event(&self, id: &str) -> Result<Option<StoredEvent>, QueryError> {
        Store::event(self, id)
    }

    fn facets(&self, request: &FacetRequest<'_>) -> Result<Facets, QueryError> {
        Store::facets(self, request)
    }

    fn histogram(&self, request: &HistogramRequest<'_>) -> Result<Histogram, QueryError> {
        Store::histogram(self, request)
    }

    fn oldest(&self, request: &OldestRequest<'_>) -> Result<After, QueryError> {
        let beginning = self.beginning();
        self.after(request.filter, Some(request.from.unwrap_or(&beginning)), request.limit)
    }
}
