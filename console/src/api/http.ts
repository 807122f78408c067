// One way to ask the API: problem documents become errors, a lost session leads to the login, a server that is
// gone is told and tried again.

import type { ProblemBody, Session } from './types.ts';

const PREFIX = '/api/v1';

/** An answer that is no success, or no answer at all (status 0). */
export class Problem extends Error {
  readonly status: number;
  readonly body: ProblemBody | null;

  constructor(status: number, body: ProblemBody | null) {
    super(body?.detail ?? body?.title ?? (status === 0 ? 'no answer' : `status ${status}`));
    this.status = status;
    this.body = body;
  }

  /** The end of the name of the kind: `not-found`. */
  get kind(): string {
    return this.body?.type.split(':').pop() ?? '';
  }
}

type Listener = () => void;
let session: Session | null = null;
let gone = false;
const listeners = new Set<Listener>();

export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}

export function currentSession(): Session | null {
  return session;
}

export function setSession(next: Session | null): void {
  session = next;
  tell();
}

/** The server did not answer the last request. */
export function isGone(): boolean {
  return gone;
}

function setGone(next: boolean): void {
  if (gone !== next) {
    gone = next;
    tell();
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export function url(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return PREFIX + path + (text ? `?${text}` : '');
}

export interface Ask { method?: string; query?: Query; body?: unknown; etag?: string; signal?: AbortSignal }
export interface Answer<T> { value: T; etag: string | null }

/** Asks, and gives the answer with its entity tag. */
export async function askTagged<T>(path: string, { method = 'GET', query, body, etag, signal }: Ask = {}): Promise<Answer<T>> {
  const response = await send(path, { method, query, body, etag, signal });
  const type = response.headers.get('content-type') ?? '';
  const value = type.includes('json') ? ((await response.json()) as T) : ((await response.text()) as unknown as T);
  return { value, etag: response.headers.get('etag')?.replaceAll('"', '') ?? null };
}

/** Asks, and gives the answer. */
export async function ask<T>(path: string, options: Ask = {}): Promise<T> {
  return (await askTagged<T>(path, options)).value;
}

/** Asks for bytes. */
export async function askBytes(path: string): Promise<{ bytes: Uint8Array; omitted: number }> {
  const response = await send(path, { method: 'GET' });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, omitted: Number(response.headers.get('x-omitted-bytes') ?? 0) };
}

async function send(path: string, { method = 'GET', query, body, etag, signal }: Ask): Promise<Response> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (etag) headers['If-Match'] = etag === '*' ? '*' : `"${etag}"`;
  if (method !== 'GET' && session) headers['X-CSRF-Token'] = session.csrf_token;
  let response: Response;
  try {
    response = await fetch(url(path, query), {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: 'same-origin',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    setGone(true);
    throw new Problem(0, null);
  }
  setGone(false);
  if (response.ok) return response;
  const type = response.headers.get('content-type') ?? '';
  const problem = new Problem(response.status, type.includes('json') ? ((await response.json()) as ProblemBody) : null);
  // A wrong password is no end of a session.
  if (problem.kind === 'unauthenticated' && session) setSession(null);
  throw problem;
}
