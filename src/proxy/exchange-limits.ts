/** Limits of one call. */
export interface ExchangeLimits {
  /** Largest request body in bytes. */
  maxBodyBytes: number;
  /** Milliseconds without a byte from or to the client while the call waits for the client. */
  clientIdleTimeoutMs: number;
  /** Milliseconds from the end of the request to the head of the provider's final response. */
  upstreamHeadersTimeoutMs: number;
}
