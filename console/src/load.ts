// Values that come from the API: loading, there, or failed; asked for again when what they depend on changes.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { isGone, onChange, Problem } from './api/http.ts';

export interface Loaded<T> { value: T | null; error: unknown; busy: boolean; again: () => void }

/** `ask` is called at first, whenever `key` changes, every `everyMs`, and by `again`. The last value stays meanwhile. */
export function useLoad<T>(ask: (signal: AbortSignal) => Promise<T>, key: string, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; error: unknown; busy: boolean }>(
    { key, value: null, error: null, busy: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const control = new AbortController();
    setState((old) => ({ ...old, busy: true }));
    latest.current(control.signal).then(
      (value) => !control.signal.aborted && setState({ key, value, error: null, busy: false }),
      (error: unknown) => {
        if (control.signal.aborted) return;
        // The last value stays while the server is gone.
        const gone = error instanceof Problem && error.status === 0;
        setState((old) => ({ key, value: gone ? old.value : null, error, busy: false }));
      });
    return () => control.abort();
  }, [key, turn]);
  const again = useCallback(() => setTurn((old) => old + 1), []);
  useReturn(state.error, again);
  useEffect(() => {
    if (everyMs === 0) return undefined;
    const timer = setInterval(() => !document.hidden && again(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, again]);
  return { value: state.value, error: state.error, busy: state.busy, again };
}

/** Asks again when the server is back, if it was gone when asked last. */
export function useReturn(error: unknown, again: () => void): void {
  const missed = error instanceof Problem && error.status === 0;
  useEffect(() => (missed ? onChange(() => { if (!isGone()) again(); }) : undefined), [missed, again]);
}

/** An action with its progress. */
export function useAction(): { busy: boolean; error: unknown; run: (work: () => Promise<void>) => Promise<void>; clear: () => void } {
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({ busy: false, error: null });
  const run = useCallback(async (work: () => Promise<void>) => {
    setState({ busy: true, error: null });
    try {
      await work();
      setState({ busy: false, error: null });
    } catch (error) {
      setState({ busy: false, error });
    }
  }, []);
  const clear = useCallback(() => setState({ busy: false, error: null }), []);
  return { ...state, run, clear };
}
