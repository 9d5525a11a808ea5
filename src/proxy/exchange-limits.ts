/** What a call may take of its client's patience and its provider's. */
export interface ExchangeLimits {
  /** Largest request body in bytes. */
  maxBodyBytes: number;
  /** Milliseconds without a byte from or to the client while it is the client that is waited for. */
  clientIdleTimeoutMs: number;
  /** Milliseconds from the end of the request to the head of the provider's final response. */
  upstreamHeadersTimeoutMs: number;
}
