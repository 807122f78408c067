//! Counters, gauges and histograms of the data plane, and their Prometheus text form.
