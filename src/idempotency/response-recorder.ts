/** Takes part in one forwarded call and may store its response. */
export interface ResponseRecorder {
  /** A chunk of the request body was read. */
  requested(chunk: Buffer): void;
  /** The whole request body was read. */
  requestArrived(): void;
  /** True while the call goes on even if its client disconnects. */
  readonly outlivesClient: boolean;
  /**
   * The head of the response has arrived.
   *
   * @param headers those the client gets @param declared bytes of body, or null @param raw headers as the provider sent them
   * @returns flat raw headers that tell the client that this response qualifies and is not stored; null if it may be
   */
  responded(
    status: number,
    reason: string,
    headers: readonly string[],
    declared: number | null,
    raw: readonly Buffer[],
  ): readonly string[] | null;
  /** A chunk of the response body has arrived. */
  add(chunk: Buffer): void;
  /** The response was received to its end. */
  complete(): void;
  /** What the end of the response waits for, or null. */
  readonly beingReleased: Promise<void> | null;
  /** The call has ended. @param interrupted this process aborted it */
  close(interrupted: boolean): Promise<void>;
}
