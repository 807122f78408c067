//! A timer that is precise to some microseconds. That of the runtime rounds up to milliseconds, which is a
//! hundred times what is to be measured.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::AsyncReadExt;
    use tokio::net::unix::pipe::Receiver;

    /// A timerfd. To the runtime it is a file that becomes readable, which is all that its type for pipes
    /// asks for, and that type takes the descriptor by value.
    pub(super) struct Timer(Receiver);

    impl Timer {
        pub(super) fn new() -> io::Result<Timer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Receiver::from_owned_fd_unchecked(timer).map(Timer)
        }

        pub(super) async fn sleep(&mut self, duration: Duration) -> io::Result<()> {
            let value = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec {
                    tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
                    // Zero would stop the timer.
                    tv_nsec: i64::from(duration.subsec_nanos()).max(1),
                },
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &value)?;
            self.0.read_u64().await.map(|_| ())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::time::Duration;

    /// To the millisecond: the report says how late the generator was.
    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Timer> {
            Ok(Timer)
        }

        pub(super) async fn sleep(&mut self, duration: Duration) -> io::Result<()> {
            tokio::time::sleep(duration).await;
            Ok(())
        }
    }
}

pub(crate) struct Timer(system::Timer);

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        system::Timer::new().map(Timer)
    }

    pub(crate) async fn sleep(&mut self, duration: Duration) -> io::Result<()> {
        self.0.sleep(duration).await
    }
}
