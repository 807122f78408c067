//! A connection of one worker to an agent. A task reads and writes; exchanges wait for what it tells them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use portcullis_agent::wire::{Decision, Done, Hello, To, ToAgent};
use portcullis_agent::{Framing, Session, VERSION, write_frame};
use portcullis_config::ResponseShown;
use tokio::io::ReadBuf;
use tokio::sync::Notify;

use super::call::PRODUCT;
use super::failed::{Ended, Failed};
use super::report::Report;
use super::transport::{Transport, framing};
use super::{Agent, OfAgent};
use portcullis_tls::UpstreamTls;

/// Bytes that wait for an agent that does not read, beyond which no more of bodies is sent.
const OUTPUT_BYTES_FULL: usize = 256 << 10;
/// Beyond this, which heads alone can reach, the connection is of no use.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// The connections of a worker to all agents.
#[derive(Default)]
pub(crate) struct Links(RefCell<Vec<LinksOf>>);

struct LinksOf {
    agent: OfAgent,
    links: Vec<Rc<Link>>,
    next: usize,
}

impl Links {
    /// A connection to `agent`, which may have yet to be made.
    pub(super) fn to(&self, agent: &Arc<Agent>) -> Rc<Link> {
        let mut all = self.0.borrow_mut();
        let same = |of: &LinksOf| std::ptr::eq(of.agent.as_ptr(), Arc::as_ptr(agent));
        let index = all.iter().position(same).unwrap_or_else(|| {
            all.push(LinksOf { agent: Arc::downgrade(agent), links: Vec::new(), next: 0 });
            all.len() - 1
        });
        let of = &mut all[index];
        of.links.retain(|link| link.is_usable());
        if of.links.len() < agent.settings.connections as usize {
            of.links.push(Link::open(agent));
        }
        of.next = (of.next + 1) % of.links.len();
        Rc::clone(&of.links[of.next])
    }

    /// Lets go of connections to agents that are no longer used.
    pub(crate) fn sweep(&self) {
        self.0.borrow_mut().retain(|of| {
            let stays = of.agent.strong_count() > 0;
            if !stays {
                of.links.iter().for_each(|link| link.retire());
            }
            stays
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Gone(Failed),
}

/// One connection.
pub(super) struct Link {
    session: RefCell<Session>,
    state: Cell<State>,
    /// No new exchange begins on it.
    retired: Cell<bool>,
    /// The time of the agent's last message.
    heard: Cell<Option<Instant>>,
    framing: Framing,
    /// While it is open. Never borrowed while others run.
    transport: RefCell<Option<Transport>>,
    /// Bytes that could not be written at once.
    output: RefCell<Vec<u8>>,
    /// There is output, or the connection is to end.
    stirred: Notify,
    /// Those who wait until it is open, and by exchange.
    opening: RefCell<Vec<Waker>>,
    waiting: RefCell<HashMap<u64, Waker>>,
    report: Arc<Report>,
}

impl Link {
    fn open(agent: &Arc<Agent>) -> Rc<Link> {
        let framing = framing(&agent.settings.address);
        let link = Rc::new(Link {
            session: RefCell::new(Session::new(framing)),
            state: Cell::new(State::Opening),
            retired: Cell::new(false),
            heard: Cell::new(None),
            framing,
            transport: RefCell::default(),
            output: RefCell::default(),
            stirred: Notify::new(),
            opening: RefCell::default(),
            waiting: RefCell::default(),
            report: Arc::clone(&agent.report),
        });
        tokio::task::spawn_local(run(Rc::clone(&link), agent.settings.clone(), agent.tls.clone()));
        link
    }

    fn is_usable(&self) -> bool {
        if self.transport.borrow_mut().as_mut().is_some_and(|transport| !transport.takes_more()) {
            self.retire();
        }
        !self.retired.get() && !matches!(self.state.get(), State::Gone(_))
    }

    /// No new exchange begins on it; with the last one it ends.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        self.stirred.notify_one();
    }

    /// The time of the agent's last message on it.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// Waits until exchanges can begin.
    pub(super) async fn opened(&self) -> Result<(), Failed> {
        poll_fn(|context| match self.state.get() {
            State::Opening => {
                self.opening.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
            State::Open => Poll::Ready(Ok(())),
            State::Gone(why) => Poll::Ready(Err(why)),
        })
        .await
    }

    /// Begins an exchange; its number.
    pub(super) fn begin(&self) -> u64 {
        self.session.borrow_mut().begin()
    }

    /// The response of an exchange is shown next.
    pub(super) fn begin_response(&self, exchange: u64) {
        self.session.borrow_mut().begin_response(exchange);
    }

    /// Bytes of one message that the agent accepts.
    pub(super) fn message_bytes_max(&self) -> usize {
        self.session.borrow().terms().map_or(0, |terms| terms.message_bytes_max)
    }

    /// Sends a message, or keeps it for when the agent reads.
    pub(super) fn send(&self, exchange: u64, message: To) {
        if self.state.get() != State::Open {
            return;
        }
        let mut output = self.output.borrow_mut();
        let is_idle = output.is_empty();
        write_frame(self.framing, &ToAgent::of(exchange, message), &mut output);
        if is_idle && let Some(transport) = &mut *self.transport.borrow_mut() {
            let written = transport.write_now(&output);
            output.drain(..written);
        }
        let (is_done, is_stuck) = (output.is_empty(), output.len() > OUTPUT_BYTES_MAX);
        drop(output);
        if is_stuck {
            self.report.line("the connection is given up: the agent does not read");
            self.close(Failed::Closed);
        } else if !is_done {
            self.stirred.notify_one();
        }
    }

    /// The number of `bytes` of a body that may be sent, once some may; 0 if the agent has decided already.
    /// Those that it gave credit for wait, too, while it does not read.
    pub(super) async fn credit(&self, exchange: u64, bytes: usize) -> Result<usize, Failed> {
        self.until(exchange, |session| match session.has_decided(exchange) {
            true => Some(0),
            false if self.is_full() => None,
            false => Some(session.spend(exchange, bytes)).filter(|granted| *granted > 0),
        })
        .await
    }

    /// The decision.
    pub(super) async fn decision(&self, exchange: u64) -> Result<Decision, Failed> {
        self.until(exchange, |session| session.take_decision(exchange)).await
    }

    async fn until<T>(
        &self,
        exchange: u64,
        mut look: impl FnMut(&mut Session) -> Option<T>,
    ) -> Result<T, Failed> {
        poll_fn(|context| {
            // A decision that came before the end counts.
            if let Some(found) = look(&mut self.session.borrow_mut()) {
                return Poll::Ready(Ok(found));
            }
            if let State::Gone(why) = self.state.get() {
                return Poll::Ready(Err(why));
            }
            self.waiting.borrow_mut().insert(exchange, context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Ends an exchange; `told`: the agent knows.
    pub(super) fn end(&self, exchange: u64, told: bool, cancelled: bool) {
        self.waiting.borrow_mut().remove(&exchange);
        self.session.borrow_mut().end(exchange);
        if !told {
            self.send(exchange, To::Done(Done { cancelled }));
        }
        if self.retired.get() {
            self.stirred.notify_one();
        }
    }

    /// Takes what the agent said.
    fn receive(&self, bytes: &[u8]) -> Result<(), String> {
        self.heard.set(Some(Instant::now()));
        let mut told = Vec::new();
        let result = self.session.borrow_mut().receive(bytes, &mut told);
        for exchange in told {
            let waker = self.waiting.borrow_mut().remove(&exchange);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        result.map_err(|broken| broken.to_string())
    }

    fn close(&self, why: Failed) {
        let before = self.state.replace(State::Gone(why));
        if before == State::Open {
            self.report.connected(-1);
        }
        if matches!(before, State::Gone(_)) {
            self.state.set(before);
            return;
        }
        self.wake_all();
        self.stirred.notify_one();
    }

    fn wake_all(&self) {
        let opening = std::mem::take(&mut *self.opening.borrow_mut());
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        opening.into_iter().chain(waiting.into_values()).for_each(Waker::wake);
    }

    fn is_full(&self) -> bool {
        self.output.borrow().len() >= OUTPUT_BYTES_FULL
    }

    /// Connects, and greets until the agent has answered.
    async fn greet(
        &self,
        settings: &portcullis_config::Agent,
        tls: Option<&UpstreamTls>,
    ) -> Result<(), Ended> {
        let transport = Transport::open(&settings.address, tls).await?;
        *self.transport.borrow_mut() = Some(transport);
        let hello = Hello {
            version_min: VERSION,
            version_max: VERSION,
            product: PRODUCT.to_string(),
            agent: settings.name.clone(),
            message_bytes_max: portcullis_agent::FROM_AGENT_BYTES_MAX as u32,
            request_body: settings.request_body,
            response_head: settings.response != ResponseShown::Nothing,
            response_body: settings.response == ResponseShown::Body,
        };
        write_frame(self.framing, &ToAgent::of(0, To::Hello(hello)), &mut self.output.borrow_mut());
        match self.work(|| self.session.borrow().terms().is_some()).await {
            // It is gone before it has said anything.
            Err(Ended { why: Failed::Closed, line: None }) => Err(Failed::Handshake.into()),
            result => result,
        }
    }

    /// Reads and writes until it is enough, or the connection ends.
    async fn work(&self, is_enough: impl Fn() -> bool) -> Result<(), Ended> {
        while !is_enough() {
            if let State::Gone(why) = self.state.get() {
                return Err(why.into());
            }
            tokio::select! {
                read = poll_fn(|context| self.poll_read(context)) => if !read? {
                    return Err(Failed::Closed.into());
                },
                written = poll_fn(|context| self.poll_write(context)) => written?,
                () = self.stirred.notified() => {}
            }
        }
        Ok(())
    }

    /// Takes what the agent said; false at an orderly end.
    fn poll_read(&self, context: &mut Context<'_>) -> Poll<Result<bool, Ended>> {
        let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut room);
        match &mut *self.transport.borrow_mut() {
            Some(transport) => ready!(transport.poll_read(context, &mut read))?,
            None => return Poll::Ready(Ok(false)),
        }
        let said = read.filled();
        if said.is_empty() {
            return Poll::Ready(Ok(false));
        }
        Poll::Ready(self.receive(said).map(|()| true).map_err(|why| {
            let is_open = self.session.borrow().terms().is_some();
            let line = Some(format!("the connection is given up: {why}"));
            Ended { why: if is_open { Failed::Invalid } else { Failed::Handshake }, line }
        }))
    }

    /// Writes some of what waits; never done while nothing does.
    fn poll_write(&self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let mut output = self.output.borrow_mut();
        let mut transport = self.transport.borrow_mut();
        let Some(transport) = transport.as_mut().filter(|_| !output.is_empty()) else { return Poll::Pending };
        let was_full = output.len() >= OUTPUT_BYTES_FULL;
        let count = ready!(transport.poll_write(context, &output))?;
        output.drain(..count);
        if was_full && output.len() < OUTPUT_BYTES_FULL {
            std::mem::take(&mut *self.waiting.borrow_mut()).into_values().for_each(Waker::wake);
        }
        Poll::Ready(Ok(()))
    }

    /// Every exchange is over: the agent hears that nothing more comes, and may end its side.
    async fn part(&self) {
        let awaited = self.transport.borrow_mut().as_mut().is_some_and(Transport::finish);
        while awaited && matches!(poll_fn(|context| self.poll_read(context)).await, Ok(true)) {}
    }
}

async fn run(link: Rc<Link>, settings: portcullis_config::Agent, tls: Option<Arc<UpstreamTls>>) {
    let greeted = tokio::time::timeout(settings.timeout, link.greet(&settings, tls.as_deref())).await;
    let result = match greeted {
        Ok(Ok(())) => {
            link.state.set(State::Open);
            link.report.connected(1);
            link.wake_all();
            link.work(|| link.retired.get() && link.session.borrow().open() == 0).await
        }
        Ok(Err(ended)) => Err(ended),
        Err(_) => Err(Failed::Timeout.into()),
    };
    match result {
        Ok(()) => {
            link.close(Failed::Closed);
            let _ = tokio::time::timeout(settings.timeout, link.part()).await;
        }
        Err(Ended { why, line }) => {
            line.inspect(|line| link.report.line(line));
            link.close(why);
        }
    }
    link.transport.borrow_mut().take();
}
