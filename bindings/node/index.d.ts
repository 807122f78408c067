import type { IncomingMessage, ServerResponse } from 'node:http'

/** Settings of a policy. With `document` only `site`, `route` and `heldBytesMax` may be given as well. */
export interface Settings {
  /** Path of a configuration document. */
  document?: string
  /** The site of the document whose policy it is, or the name of the site in events. */
  site?: string
  /** The route of that site; by default the first one with a policy. */
  route?: string
  /** By default `crs` if there are rules, `semantic` if not. */
  mode?: 'semantic' | 'crs' | 'both'
  /** How sure the semantic detector must be. */
  level?: 'balanced' | 'strict'
  /** Folder of the CRS. */
  crs?: string
  /** Paranoia level of the CRS, 1 to 4. */
  paranoia?: number
  /** Files of rules behind the CRS. */
  rules?: string[]
  /** SecLang directives behind all files. */
  directives?: string
  /** Report what would be blocked, block nothing. */
  detectOnly?: boolean
  /** Bytes of a request body that are inspected; longer ones are refused. */
  requestBodyLimit?: number
  /** Inspect bodies of responses. */
  responseBodies?: boolean
  /** Let pass what cannot be inspected. */
  failOpen?: boolean
  /** HTML file of the block page. */
  blockPage?: string
  /** Bytes of memory for the bodies of all exchanges. */
  heldBytesMax?: number
}

/** The head of a request; texts are bytes as Latin-1. */
export interface RequestHead {
  method: string
  target: string
  version: string
  /** Names and values in turn. */
  fields: string[]
  client: string
  port: number
  tls: boolean
  mayHaveBody: boolean
}

/** An answer in place of the application's. */
export interface BlockAnswer {
  status: number
  /** Names and values in turn. */
  fields: string[]
  body: Buffer
}

/** A policy at work. The constructor throws an error that says what is wrong and what to do. */
export class Waf {
  constructor (settings?: Settings)
  begin (head: RequestHead): Exchange
  /** Reads the document or the rule files again; returns the number of the new settings. */
  reload (): number
  /** Metrics in the text form of Prometheus. */
  metrics (): string
  warnings (): string[]
  /** Events since the last call, as JSON. */
  takeEvents (): string[]
  eventsDropped (): number
}

/** One exchange: request and response are shown in order; after `end` nothing has an effect. */
export class Exchange {
  wantsRequestBody (): boolean
  requestBody (piece: Buffer): boolean
  requestBroken (late: boolean): void
  requestEnd (): void
  requestEndBeside (): Promise<void>
  responseHead (status: number, fields: string[], ended: boolean): void
  wantsResponseBody (): boolean
  responseWaitMax (): number | null
  responseBody (piece: Buffer): boolean
  responseEnd (isWhole: boolean): void
  passed (requestBytes: number, responseBytes: number): void
  answer (): BlockAnswer | null
  requestId (): string
  end (): void
}

export interface MiddlewareOptions {
  /** Address and port of the client; by default those of the connection. */
  client?: (request: IncomingMessage) => [address: string, port: number]
  /** Takes each event, a line of JSON; it must not block. */
  onEvent?: (event: string) => void
  /** Milliseconds for the next piece of a request body, 30,000 by default. */
  idleTimeout?: number
  /** Milliseconds for the whole of a request body, 300,000 by default. */
  bodyTimeout?: number
}

/** Middleware for Express, Connect, and `node:http` by hand. It has to be the first. */
export function middleware (
  waf: Waf,
  options?: MiddlewareOptions
): (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** A plugin of Fastify. It has to be registered first. */
export function fastify (
  instance: unknown,
  options: MiddlewareOptions & { waf: Waf },
  done: (error?: Error) => void
): void
