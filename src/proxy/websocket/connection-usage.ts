import { PlainCopy } from '../../bodies/usage/plain-copy.js';
import { type ProviderError, readEventError } from '../../bodies/usage/provider-error.js';
import { readStreamUsage } from '../../bodies/usage/stream-usage.js';
import type { StreamFraming } from '../../bodies/usage/framing/stream-events.js';
import { ResponseSums } from '../../bodies/usage/response-sums.js';
import { NO_USAGE, type ResponseUsage } from '../../bodies/usage/token-usage.js';
import { CLOSE, type FrameHead, type FrameSink, isData } from './frame-reader.js';
import { MessageInflater } from './message-inflater.js';

/** Messages with the usage of a response: of the Realtime API, and of the Responses API. */
const FINAL_EVENTS = [
  '"response.done"',
  '"response.completed"',
  '"response.incomplete"',
  '"response.failed"',
];
const ERROR_EVENT = '"error"';
/** Where the type of a message is. */
const START_BYTES = 256;
const FIRST_EVENT = '"response.created"';
/** A message is one event of the Responses API, whole or with its end. */
const EVENT: StreamFraming = {
  events: (head) => [head.toString()],
  lastEvents: (tail) => ({ events: [], broken: tail.toString() }),
};
const ENDPOINT = '/v1/responses';

/** Adds up the usage of the responses on one WebSocket, from a copy of the provider's frames. */
export class ConnectionUsage implements FrameSink {
  /** A close frame of the provider has passed. */
  closeSeen = false;
  /** Increases with each response that was counted. */
  responses = 0;
  /** Responses that have begun and not ended. */
  private underWay = 0;
  private readonly sums = new ResponseSums();
  private known = true;
  /** The last one that the provider reported. */
  private error: ProviderError | null = null;
  private message: PlainCopy | null = null;
  private inflater: MessageInflater | null = null;
  private isCompressed = false;
  private frame: FrameHead | null = null;

  /** @param compresses permessage-deflate was agreed on */
  constructor(private readonly compresses: boolean) {}

  /** The sum so far; without counts if a message could not be read. The model is null if there were several. */
  get total(): ResponseUsage {
    const { counted, error } = this;
    if (this.known && this.underWay <= 0) return { ...counted, closing: 'event' };
    return this.known ? counted : { ...NO_USAGE, model: counted.model, ...(error !== null && { error }) };
  }

  /** The sum of what could be read. */
  get counted(): ResponseUsage {
    const { total } = this.sums;
    return this.error === null ? total : { ...total, error: this.error };
  }

  /** False once a message could not be read. */
  get isKnown(): boolean {
    return this.known;
  }

  /** True between responses: a client that leaves now, as Codex does without a close frame, misses nothing. */
  get isBetweenResponses(): boolean {
    return this.known && this.responses > 0 && this.underWay <= 0;
  }

  /** Settles when everything that has arrived is counted. */
  async settled(): Promise<void> {
    await this.inflater?.settled();
  }

  /** Releases what reading takes. */
  close(): void {
    this.inflater?.close();
  }

  onFrame(head: FrameHead): void {
    this.frame = head;
    if (head.opcode === CLOSE) this.closeSeen = true;
    if (!isData(head) || this.message !== null) return;
    this.message = new PlainCopy();
    this.isCompressed = head.compressed;
    if (head.compressed && !this.compresses) this.known = false;
  }

  onPayload(part: Buffer): void {
    if (!isData(this.frame!)) return;
    if (!this.isCompressed) this.message!.add(part);
    else if (this.compresses) this.deflated.add(part);
  }

  onFrameEnd(): void {
    const head = this.frame!;
    if (!isData(head) || !head.fin) return;
    const message = this.message!;
    this.message = null;
    if (!this.isCompressed) this.read(message);
    else if (this.compresses) this.deflated.end();
  }

  /** The provider's bytes are no frames. */
  broken(): void {
    this.known = false;
  }

  private get deflated(): MessageInflater {
    if (this.inflater !== null) return this.inflater;
    let copy = new PlainCopy();
    return (this.inflater = new MessageInflater({
      onInflated: (part) => copy.add(part),
      onInflatedEnd: () => {
        this.read(copy);
        copy = new PlainCopy();
      },
      onFailed: () => (this.known = false),
    }));
  }

  private read(copy: PlainCopy): void {
    const kept = copy.take();
    if (!FINAL_EVENTS.some((name) => kept.head.includes(name))) {
      if (kept.head.includes(FIRST_EVENT)) this.underWay++;
      else if (kept.head.subarray(0, START_BYTES).includes(ERROR_EVENT))
        this.error = readEventError([kept.head.toString()]) ?? this.error;
      return;
    }
    const usage = readStreamUsage(kept, ENDPOINT, EVENT);
    this.error = usage.error ?? this.error;
    this.sums.add(usage);
    this.responses++;
    this.underWay--;
  }
}
