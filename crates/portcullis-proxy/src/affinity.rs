//! Workers that keep to a core each. Connections follow them where the kernel knows how: see
//! [`Sockets::steer`].
//!
//! [`Sockets::steer`]: crate::listener::Sockets::steer

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::StartError;

/// The core of each worker: the first ones that this process may use.
pub(crate) fn cores_of(workers: usize) -> Result<Vec<usize>, StartError> {
    let usable = sched_getaffinity(None).map_err(|error| {
        StartError::new(format!("cannot read the cores that this process may use: {error}"))
    })?;
    let mut cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| usable.is_set(*core)).collect();
    if cores.len() < workers {
        let message = format!(
            "`worker_affinity` gives each worker a core of its own, and there are {workers} workers for {} cores: \
             lower `workers`",
            cores.len()
        );
        return Err(StartError::new(message));
    }
    cores.truncate(workers);
    Ok(cores)
}

/// From now on this thread runs on this core only.
pub(crate) fn keep_to(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_a_core_of_its_own_or_the_start_fails() {
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(cores_of(1).unwrap().len(), 1);
        let error = cores_of(CpuSet::MAX_CPU + 1).unwrap_err().to_string();
        assert!(error.contains("lower `workers`"), "{error}");
        let all = cores_of(cores).unwrap();
        assert!(all.is_sorted_by(|one, other| one < other), "{all:?}");
    }

    #[test]
    fn a_thread_keeps_to_its_core() {
        let core = *cores_of(1).unwrap().last().unwrap();
        let kept = std::thread::spawn(move || {
            keep_to(core).unwrap();
            cores_of(1).unwrap()
        });
        assert_eq!(kept.join().unwrap(), [core]);
    }
}
