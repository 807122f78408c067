//! The facade: phases in, verdict and event out.
