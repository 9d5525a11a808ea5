/**
 * How far a call is. It only moves forward, and may go to `done` from each phase.
 * - `receiving`: the provider has received nothing; the request body or a connection is awaited
 * - `sending`: a connection carries the request
 * - `responding`: the final response has begun
 * - `finishing`: the response is complete; its end is being journalled and written to the client
 * - `done`: everything was written to the client, its socket is closed, or the call failed; later events are ignored
 */
export type ExchangePhase = 'receiving' | 'sending' | 'responding' | 'finishing' | 'done';
