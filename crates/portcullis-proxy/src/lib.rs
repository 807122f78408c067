//! The data plane: listeners, routes, upstream pools.
