//! Corpora, go-ftw files, demo and test upstreams, suite runner. Development only.
